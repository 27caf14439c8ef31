# SPDX-License-Identifier: MIT
"""The source x11: Xvfb, openbox and real xterms; cookies; and what it does beside gamescope."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / 'agent'), str(TESTS / 'client')]
import desk  # noqa: E402
from desk import XID, wait_for  # noqa: E402
from test_gamescope import GAME, Case  # noqa: E402


class XCase(Case):
    def setUp(self):
        super().setUp()
        self.mock = self.vramd()

    def tool(self, *argv):
        return subprocess.run(argv, env=self.desk.env, check=False, capture_output=True, text=True).stdout

    def openbox(self, display=5, *options):
        server = self.desk.xserver(display, *options)
        self.desk.env['DISPLAY'] = f':{display}'  # of all that is started from now on
        # It says that it is there before it has looked for windows; one that comes in between it does not see.
        self.desk.spawn('openbox', '--startup', 'xprop -root -f OPENBOX_LOOKED 32c -set OPENBOX_LOOKED 1',
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: '= 1' in self.tool('xprop', '-root', 'OPENBOX_LOOKED'), 'openbox')
        return server

    def xterm(self, name):
        """In front when this returns: some window managers leave that to the mood of the moment."""
        p = self.desk.spawn('xterm', '-class', name, '-fn', 'fixed', '-e', 'sleep', 'infinity',
                            stderr=subprocess.DEVNULL)
        wait_for(lambda: self.tool('xdotool', 'search', '--onlyvisible', '--class', name), name)
        self.activate(name)
        return p

    def activate(self, name):
        def is_active():
            windows = {int(w) for w in self.tool('xdotool', 'search', '--class', name).split()}
            self.tool('xdotool', 'search', '--onlyvisible', '--class', name, 'windowactivate')
            time.sleep(0.05)
            active = self.tool('xprop', '-root', '_NET_ACTIVE_WINDOW').split()[-1]
            return active.startswith('0x') and int(active, 16) in windows
        wait_for(is_active, f'{name} in front')


class Desktop(XCase):
    def test_xterms(self):
        self.openbox()
        agent = self.desk.agent()
        first = self.xterm('One')
        self.wait_report(self.mock, 'the first', source='x11', game=first.pid, window=True, menu='unknown', compositor=None)
        second = self.xterm('Two')
        self.wait_report(self.mock, 'the second', game=second.pid)
        for name, p in (('One', first), ('Two', second), ('One', first)):
            self.activate(name)
            self.wait_report(self.mock, name, game=p.pid)
        proton = self.xterm('steam_app_730')
        self.wait_report(self.mock, "one of Proton's", game=proton.pid, appid=730)
        proton.kill()
        self.wait_report(self.mock, 'the one below', game=first.pid, appid=None)
        time.sleep(0.3)
        self.assertEqual(agent.usage(2)[1], 0)
        first.kill()
        self.wait_report(self.mock, 'what is left', game=second.pid)
        second.kill()
        self.wait_report(self.mock, 'nobody', game=None)
        self.assertEqual(len({r['sender'] for r in self.reports(self.mock)}), 1)

    def test_a_server_that_stands_still(self):
        """It has greeted, and then it answers nothing for longer than anybody waits."""
        server = self.openbox()
        log = self.desk.runtime / 'log'
        with open(log, 'w', encoding='utf-8') as f:
            self.desk.agent('-v', stderr=f)
        term = self.xterm('One')
        self.wait_report(self.mock, 'the window', source='x11', game=term.pid)
        self.desk.spawn('sh', '-c', 'xprop -root -f _NET_ACTIVE_WINDOW 32c -set _NET_ACTIVE_WINDOW 0; kill -STOP "$0"',
                        str(server.pid))
        wait_for(lambda: 'does not answer' in log.read_text(), 'the end of its patience', timeout=30)
        server.send_signal(signal.SIGCONT)
        other = self.xterm('Two')
        self.wait_report(self.mock, 'the next window', game=other.pid)

    def test_a_lie(self):
        """A window that claims to be another process's: the server knows better."""
        self.openbox()
        self.desk.agent()
        liar = self.xterm('Liar')
        window = self.tool('xdotool', 'search', '--class', 'Liar').split()[-1]
        self.tool('xprop', '-id', window, '-f', '_NET_WM_PID', '32c', '-set', '_NET_WM_PID', str(self.game))
        other = self.xterm('Other')
        self.wait_report(self.mock, 'the other', game=other.pid)
        self.activate('Liar')
        self.wait_report(self.mock, 'the liar', game=liar.pid)

    def test_i3(self):
        """What its own socket would say, it says to X: another window, and an empty workspace."""
        self.desk.xserver(5)
        self.desk.env['DISPLAY'] = ':5'
        config = self.desk.runtime / 'i3-config'
        config.write_text('# i3 config file (v4)\nfont pango:monospace 8\n')
        i3 = self.desk.spawn('i3', '-c', str(config), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: self.tool('i3-msg', '-t', 'get_version'), 'i3')
        agent = self.desk.agent()
        self.wait_report(self.mock, 'an empty workspace', source='x11', game=None)
        first, second = self.xterm('One'), self.xterm('Two')
        self.wait_report(self.mock, 'the second', game=second.pid)
        self.tool('i3-msg', '[class=One]', 'focus')
        self.wait_report(self.mock, 'the first', game=first.pid)
        self.tool('i3-msg', 'workspace', '2')
        self.wait_report(self.mock, 'an empty workspace', game=None)
        self.tool('i3-msg', 'workspace', '1')
        self.wait_report(self.mock, 'back', source='x11', game=first.pid, window=True)
        time.sleep(0.3)
        self.assertEqual(agent.usage(2)[1], 0)
        self.assertIsNone(i3.poll())

    def test_no_window_manager(self):
        self.desk.xserver(5)
        self.desk.env['DISPLAY'] = ':5'
        line = self.desk.once(status=3)['x11', ':5']
        self.assertEqual((line['front'], line['pid']), ('unknown', None))

    def test_wayland(self):
        """There, no X window in front does not mean nobody; and GNOME is vramd's own affair."""
        self.openbox()
        wayland = {'WAYLAND_DISPLAY': 'wayland-0'}
        self.assertEqual(self.desk.once()['x11', ':5']['front'], 'nobody')
        self.assertEqual(self.desk.once(env=wayland)['x11', ':5']['front'], 'unknown')
        self.assertNotIn(('x11', ':5'), self.desk.once(env=dict(wayland, XDG_CURRENT_DESKTOP='ubuntu:GNOME')))
        p = self.xterm('One')
        line = wait_for(lambda: (li := self.desk.once(env=wayland)['x11', ':5'])['front'] == 'process' and li, 'xterm')
        self.assertEqual(line['pid'], p.pid)

    def test_the_server_ends(self):
        server = self.openbox()
        self.desk.agent()
        p = self.xterm('One')
        self.wait_report(self.mock, 'the first', game=p.pid)
        sender = self.reports(self.mock)[-1]['sender']
        server.terminate()
        server.wait()
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of the connection')
        self.openbox()
        p = self.xterm('Again')
        self.wait_report(self.mock, 'the next', game=p.pid)

    def cookie(self, display, name):
        path = self.desk.runtime / name
        with open(path, 'wb') as f:
            for number, secret in ((b'77', b'wrong wrong wron'), (str(display).encode(), b'0123456789abcdef')):
                f.write(b'\1\0')  # FamilyLocal
                for part in (os.uname().nodename.encode(), number, b'MIT-MAGIC-COOKIE-1', secret):
                    f.write(len(part).to_bytes(2, 'big') + part)
        return path

    def test_cookies(self):
        """In $XAUTHORITY, where KDE puts it, where GNOME does, at home; and one that comes later."""
        path = self.cookie(5, 'cookie')
        self.desk.env['XAUTHORITY'] = str(path)
        self.openbox(5, '-auth', str(path))
        del self.desk.env['XAUTHORITY']
        line = self.desk.once(status=3)['x11', ':5']
        self.assertEqual(line['why'], 'it does not let us in')
        for name in ('xauth_AbCdEf', '.mutter-Xwaylandauth.XYZ', '.Xauthority'):
            copy = path.rename(self.desk.runtime / name)
            self.assertEqual(self.desk.once()['x11', ':5']['front'], 'nobody', name)
            path = copy.rename(self.desk.runtime / 'cookie')
        self.assertEqual(self.desk.once(env={'XAUTHORITY': str(path)})['x11', ':5']['front'], 'nobody')
        self.desk.agent()
        self.assertEqual(self.reports(self.mock), [])
        path.rename(self.desk.runtime / 'xauth_later')
        self.wait_report(self.mock, 'nobody', source='x11', game=None)


class Together(XCase):
    def start_both(self):
        """gamescope on another terminal than the desktop: its environment knows no display."""
        self.desk.xserver(1)
        gamescope = self.desk.gamescope(':1')
        self.openbox()
        return gamescope

    def test_hand_over(self):
        """gamescope is there: its word counts, and x11 is not even heard; it goes: x11's does, and its own ends."""
        gamescope = self.start_both()
        term = self.xterm('One')
        agent = self.desk.agent()
        self.wait_report(self.mock, 'x11 as gamescope knows nothing yet', source='x11', game=term.pid, window=True)
        self.show_game(gamescope)
        report = self.wait_report(self.mock, 'gamescope', source='gamescope', game=self.game)
        wait_for(lambda: len(self.mock.log('Withdraw')) == 1, 'the end of the word of x11')
        n = len(self.mock.log())
        self.xterm('Two')
        self.activate('One')
        time.sleep(0.2)
        self.assertEqual((len(self.mock.log()), agent.usage(1)[1]), (n, 0))
        gamescope.kill()
        self.wait_report(self.mock, 'x11 again', source='x11', game=term.pid, window=True)
        wait_for(lambda: len(self.mock.log('Withdraw')) == 2, 'the end of the word of gamescope')
        self.assertFalse(self.mock.bus.name_has_owner(report['sender']))

    def test_nested(self):
        """A gamescope in a window counts while that window is in front."""
        self.openbox()
        self.desk.xserver(1)
        gamescope = self.desk.gamescope(':1')
        gamescope.plain(XID, (XID, XID, self.game))
        gamescope.say('window', ':5')
        self.activate('gamescope')
        self.desk.agent()
        self.wait_report(self.mock, 'the game in there', source='x11', game=self.game)
        term = self.xterm('One')
        self.wait_report(self.mock, 'the terminal over it', source='x11', game=term.pid, window=True)
        term.kill()
        self.wait_report(self.mock, 'the game again', source='x11', game=self.game)
        self.assertTrue(self.desk.once()['gamescope', ':1']['nested'])

    def test_a_strangers_server(self):
        """He gets no cookie, nor anything else."""
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(f'{desk.SOCKETS}/X7')
            os.seteuid(65534)  # whose it is, is who listens
            s.listen()
            os.seteuid(0)
            line = self.desk.once('--source', 'x11', env={'DISPLAY': ':7'})['x11', ':7']
            self.assertEqual(line['why'], "somebody else's")
            self.assertEqual(s.accept()[0].recv(1), b'')

    def test_one_source_only(self):
        gamescope = self.start_both()
        self.show_game(gamescope)
        term = self.xterm('One')
        self.assertEqual({s for s, _ in self.desk.once('--source', 'x11')}, {'x11'})
        self.desk.agent('--source', 'x11')
        self.wait_report(self.mock, 'x11', source='x11', game=term.pid, window=True)

    def test_once(self):
        gamescope = self.start_both()
        self.show_game(gamescope)
        self.xterm('One')
        wait_for(lambda: self.desk.once()['x11', ':5']['front'] == 'process', 'xterm in front')
        lines = self.desk.once(status=0)
        self.assertEqual((lines['gamescope', ':1']['counts'], lines['x11', ':5']['counts']), (True, False))
        self.assertEqual(lines['gamescope', ':1']['appid'], GAME)
        self.desk.show_once()
        p = subprocess.run([desk.AGENT, '--once'], env=self.desk.env, capture_output=True, text=True, check=True)
        self.assert_clean(p.stdout)
        self.assertRegex(p.stdout, rf'(?m)^\* gamescope +:1 +{self.game} \(sleep\) +{GAME} +closed +0$')
        self.assertRegex(p.stdout, r'(?m)^  x11 +:5 +\d+ \(xterm\) +- +unknown +0$')


if __name__ == '__main__':
    desk.run_tests()
