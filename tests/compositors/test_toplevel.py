# SPDX-License-Identifier: MIT
"""The source foreign-toplevel, beside any compositor that is based on wlroots. COMPOSITOR: its command; sway if unset.
Control groups are imitated: folders, with what systemd and the kernel put there."""

import os
import pathlib
import shlex
import subprocess
import time

import wayland
from wayland import UID, desk, wait_for

COMPOSITOR = os.environ.get('COMPOSITOR', 'sway -c /dev/null')
GAME = 1091500
CGROUPS = '/sys/fs/cgroup'


class Toplevel(wayland.WaylandCase):
    def setUp(self):
        super().setUp()
        subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', CGROUPS], check=True)
        self.addCleanup(subprocess.run, ['umount', CGROUPS], check=True)
        self.slice = pathlib.Path(f'{CGROUPS}/user.slice/user-{UID}.slice/user@{UID}.service/app.slice')
        self.slice.mkdir(parents=True)

    def unit(self, name, *pids, within=''):
        path = self.slice / within / name
        path.mkdir(parents=True, exist_ok=True)
        (path / 'cgroup.procs').write_text(''.join(f'{pid}\n' for pid in pids))
        return path

    def end(self, unit):
        (unit / 'cgroup.procs').unlink()
        unit.rmdir()

    def start(self):
        compositor = self.compositor(COMPOSITOR)
        return compositor, self.desk.agent('--source', 'foreign-toplevel')

    def once(self):
        (_, place), line = next(iter(self.desk.once('--source', 'foreign-toplevel').items()))
        self.assertEqual(place, self.clients['WAYLAND_DISPLAY'])
        return line['front'], line['pid']

    def wait_once(self, *want):
        """What it says now; none of it is reported where it does not know."""
        wait_for(lambda: self.once() == want, f'{want}')

    def wait_game(self, what, game, **want):
        return self.wait_report(self.mock, what, source='foreign-toplevel', game=game and game.pid, **want)

    def test_windows(self):
        compositor, agent = self.start()
        self.wait_game('nobody', None, menu='unknown', compositor=compositor.pid)
        one = self.foot('org.example.One')
        self.unit('app-org.example.One-4711.scope', one.pid)
        self.wait_game('one', one, appid=None)
        two = self.foot(f'steam_app_{GAME}')
        self.unit(f'app-steam-app{GAME}-4712.scope', two.pid)
        self.wait_game('two, of Steam', two, appid=GAME)
        three = self.foot('three-3')
        self.unit(r'app-launcher-three\x2d3@12ab.service', three.pid, within='app-graphical.slice')
        self.wait_game('three, in a slice within', three)
        self.desk.show_once()
        time.sleep(0.3)
        self.assertEqual(agent.usage(2)[1], 0)
        for what, ends, left in (('two is left', three, two), ('one is left', two, one), ('nobody is', one, None)):
            ends.kill()
            self.wait_game(what, left)

    def test_never_a_guess(self):
        self.start()
        foot = self.foot('game')
        self.wait_once('unknown', None)
        other = self.desk.process().pid
        for name in ('app-game2-1.scope', 'app-agame-1.scope', 'app-game-more-1.scope', 'app-game.slice',
                     'game-1.scope', 'run-game-1.scope', 'app-game@1.socket', r'app-a\x2dgame-1.scope'):
            self.unit(name, other)
        self.wait_once('unknown', None)
        unit = self.unit('app-game-1.scope', foot.pid)
        self.wait_game('the only one that fits', foot)
        second = self.unit('app-other-game-2.scope', other)
        self.wait_once('unknown', None)
        self.end(second)
        self.wait_once('process', foot.pid)
        self.end(unit)
        self.wait_once('unknown', None)

    def test_a_unit_that_comes_late(self):
        """Its group is made first, and the process comes to it later; into a group within, as a service may do."""
        self.start()
        foot = self.foot('game')
        self.wait_once('unknown', None)
        unit = self.unit('app-game-1.scope')
        time.sleep(0.2)
        self.assertFalse([r for r in self.reports(self.mock) if r.get('game')])
        (unit / 'within').mkdir()
        (unit / 'within/cgroup.procs').write_text(f'{foot.pid}\n')
        (unit / 'cgroup.events').write_text('populated 1\n')
        self.wait_game('the game', foot)

    def test_a_process_that_is_not_ours(self):
        self.start()
        self.unit('app-game-1.scope', os.getpid())  # root's
        self.foot('game')
        wait_for(lambda: self.once()[0] == 'unknown', 'unknown')

    def test_killed_and_again(self):
        compositor, _ = self.start()
        foot = self.foot('game')
        unit = self.unit('app-game-1.scope', foot.pid)
        sender = self.wait_game('the game', foot)['sender']
        compositor.kill()
        compositor.wait()
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of the connection')
        self.end(unit)
        compositor = self.compositor(COMPOSITOR)
        foot = self.foot('game')
        self.unit('app-game-2.scope', foot.pid)
        self.wait_game('the game in the next one', foot, compositor=compositor.pid)


if __name__ == '__main__':
    desk.run_tests(wayland.missing(shlex.split(COMPOSITOR)[0], 'foot'))
