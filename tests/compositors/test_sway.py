# SPDX-License-Identifier: MIT
"""The source sway, beside the real one: clients of Wayland and of Xwayland, empty workspaces, and its end."""

import json
import subprocess
import time

import wayland
from wayland import desk, wait_for

GAME = 1091500


class Sway(wayland.WaylandCase):
    def sway(self, env=None):
        config = self.desk.runtime / 'config'
        config.write_text('xwayland enable\n')
        child = self.compositor(f'sway -c {config}', env)
        socket = self.desk.runtime / f'sway-ipc.{wayland.UID}.{child.pid}.sock'
        wait_for(socket.exists, 'the socket of sway')
        self.swaysock = {'SWAYSOCK': str(socket)}
        return child

    def say(self, *words):
        p = subprocess.run(['swaymsg', *words], env=dict(self.desk.env, **self.swaysock), user=wayland.UID,
                           capture_output=True, text=True, check=False, timeout=30)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return p.stdout

    def wait_game(self, what, game, **want):
        return self.wait_report(self.mock, what, source='sway', game=game and game.pid,
                                window=True if game else None, **want)

    def test_windows(self):
        sway = self.sway()
        agent = self.desk.agent()
        self.wait_game('an empty workspace', None, menu='unknown', compositor=sway.pid)
        foot = self.foot()
        self.wait_game('foot', foot, appid=None, compositor=sway.pid)
        xterm = self.xterm(f'steam_app_{GAME}')
        self.wait_game('xterm, by Xwayland', xterm, appid=GAME)
        for _ in range(3):
            self.say('[app_id=foot]', 'focus')
            self.wait_game('foot again', foot)
            self.say(f'[class=steam_app_{GAME}]', 'focus')
            self.wait_game('xterm again', xterm)
        time.sleep(0.3)
        self.assertEqual(agent.usage(2)[1], 0)
        self.say('workspace', '2')
        self.wait_game('an empty workspace', None)
        self.say('workspace', '1')
        self.wait_game('back', xterm)
        xterm.kill()
        self.wait_game('what is left', foot)
        foot.kill()
        self.wait_game('nothing', None)
        self.assertEqual(len({r['sender'] for r in self.reports(self.mock)}), 1)

    def test_no_xwayland_for_nothing(self):
        """To connect to it would start it."""
        self.sway()
        display = self.display()

        def is_started():
            return subprocess.run(['pgrep', '-f', f'^Xwayland {display} '], stdout=subprocess.DEVNULL,
                                  check=False).returncode == 0
        self.desk.agent(env=dict(self.clients, DISPLAY=display))
        foot = self.foot()
        self.wait_game('foot', foot)
        foot.kill()
        self.wait_game('nothing', None)
        self.assertFalse(is_started())
        self.desk.once('--source', 'x11', env=dict(self.clients, DISPLAY=display))
        wait_for(is_started, 'Xwayland, when somebody asks it')

    def test_containers_and_outputs(self):
        self.sway()
        self.desk.agent()
        foot = self.foot()
        self.wait_game('foot', foot)
        other = self.foot('other')
        self.wait_game('the other', other)
        self.say('splitv')
        self.say('focus', 'parent')
        self.wait_game('in a container that has the focus', other)
        self.say('[app_id=other]', 'focus')
        self.say('floating', 'enable')
        self.say('fullscreen')
        self.say('move', 'scratchpad')
        self.wait_game('what is not in the scratchpad', foot)
        self.say('scratchpad', 'show')
        self.wait_game('shown again', other)
        self.say('create_output')
        self.say('focus', 'output', 'HEADLESS-2')
        self.wait_game('another output', None)

    def test_titles(self):
        """A title that changes all the time is no news, and costs next to nothing."""
        self.sway()
        agent = self.desk.agent()
        foot = self.foot('foot', 'sh', '-c',
                         r'i=0; while sleep 0.01; do i=$((i + 1)); printf "\033]0;title %d\007" $i; done')
        self.wait_game('foot', foot)
        wait_for(lambda: 'title 5' in self.say('-t', 'get_tree'), 'titles')
        n = len(self.mock.log())
        seconds, wakeups = agent.usage(2)
        self.assertEqual(len(self.mock.log()), n)
        self.assertLess(seconds, 0.2)
        self.assertLess(wakeups, 400)

    def test_killed_and_again(self):
        sway = self.sway()
        self.desk.agent()
        foot = self.foot()
        sender = self.wait_game('foot', foot)['sender']
        n = len(self.mock.log())
        sway.kill()
        sway.wait()
        # The connection ends without a word: vramd's grace begins. Its socket stays behind.
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of the connection')
        self.assertEqual(len(self.mock.log()), n)
        old = self.swaysock
        sway = self.sway()
        foot = self.foot()
        self.wait_game('foot in the next one', foot, compositor=sway.pid)
        lines = self.desk.once('--source', 'sway')
        self.assertEqual(lines['sway', old['SWAYSOCK']]['why'], 'nobody listens')
        self.assertEqual(lines['sway', self.swaysock['SWAYSOCK']]['pid'], foot.pid)

    def test_ranks(self):
        """All that see this desktop: sway itself counts, and names the same process as the X server."""
        self.sway()
        xterm = self.xterm('One')
        wait_for(lambda: '"One"' in self.say('-t', 'get_tree'), 'xterm')
        lines = wait_for(lambda: (li := self.desk.once(env=self.clients)) and
                         any(s == 'x11' and v['pid'] for (s, _), v in li.items()) and li, 'all of them')
        found = {source: line for (source, place), line in lines.items() if place}
        self.assertLessEqual({'sway', 'x11', 'foreign-toplevel'}, set(found))
        self.assertEqual([s for s, line in found.items() if line['counts']], ['sway'])
        self.assertEqual((found['sway']['pid'], found['x11']['pid']), (xterm.pid, xterm.pid))
        # There is no unit of that name, and so it does not know.
        self.assertEqual(found['foreign-toplevel']['front'], 'unknown')

    def test_in_gamescope(self):
        """Inside of a gamescope that comes later, it is not asked any more; and nothing of what it said is used."""
        sway = self.sway({'WAYLAND_DISPLAY': 'gamescope-0'})
        foot = self.foot()
        self.desk.agent(env={'WAYLAND_DISPLAY': 'gamescope-0'})
        self.wait_game('foot', foot)
        self.desk.xserver(9)
        self.desk.gamescope(':9').plain(desk.XID, (desk.XID, desk.XID, sway.pid))
        self.wait_report(self.mock, 'sway', source='gamescope', game=sway.pid)

    def test_once(self):
        self.sway()
        foot = self.foot()
        wait_for(lambda: json.dumps(foot.pid) in self.say('-t', 'get_tree'), 'foot')
        self.desk.show_once()
        p = subprocess.run([desk.AGENT, '--once'], env=self.desk.env, user=wayland.UID, capture_output=True, text=True,
                           check=True)
        self.assertRegex(p.stdout, rf'(?m)^\* sway +{self.swaysock["SWAYSOCK"]} +{foot.pid} \(foot\) +- +unknown +0$')


if __name__ == '__main__':
    desk.run_tests(wayland.missing('sway', 'swaymsg', 'foot', 'Xwayland'))
