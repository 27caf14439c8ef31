# SPDX-License-Identifier: MIT
"""The sources x11, foreign-toplevel, kwin and gamemode: what real programs once said is said again, and the agent says
what it has to."""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys

import conversation
import desk
from conversation import REPORTS, STEAM_CLASS
from desk import SOCKETS, wait_for
from test_gamescope import Case

CGROUPS = '/sys/fs/cgroup'
APPS = pathlib.Path(CGROUPS, 'user.slice/user-0.slice/user@0.service/app.slice')


def processes(reports):
    """Who was in front, one after the other."""
    return [game for game, _ in itertools.groupby(r['game'] for r in reports if r.get('game'))]


class Conversations(Case):
    def setUp(self):
        super().setUp()
        self.pids = {'One': self.game, 'Two': self.other, STEAM_CLASS: self.steam}

    def process(self, name):
        """One of this name: programs are asked for theirs."""
        path = self.desk.runtime / name
        shutil.copy(shutil.which('sleep'), path)
        return self.desk.spawn(path, 'infinity').pid

    def wait_step(self, mock, source, step):
        want = conversation.wanted(source, step, self.pids)
        if want:
            self.wait_report(mock, step, source=source, **want)
        else:
            sender = self.reports(mock)[-1]['sender']
            wait_for(lambda: not mock.bus.name_has_owner(sender), f'{step}: the end of its word')

    def play(self, source, path, env):
        mock = self.vramd()
        steps = conversation.load(source)
        self.assertEqual(list(steps), list(REPORTS[source]))
        player = conversation.Player(source, path, self.pids)
        self.addCleanup(player.close)
        agent = self.desk.spawn(desk.AGENT, '--source', source, env=env)
        player.accept()
        for step, items in steps.items():
            player.play(step, items)
            self.wait_step(mock, source, step)
        self.assertEqual(player.rest(), 0)
        self.assertIsNone(agent.poll())
        # No other process in between; nobody may have been, as window managers say for a moment.
        reports = self.reports(mock)
        want = [conversation.wanted(source, step, self.pids) for step in steps]
        self.assertEqual(processes(reports), processes(w for w in want if w))
        return reports

    def test_x11(self):
        self.play('x11', f'{SOCKETS}/X9', {'DISPLAY': ':9'})

    def test_foreign_toplevel(self):
        """With the units of the windows' programs, in control groups that are imitated."""
        subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', CGROUPS], check=True)
        self.addCleanup(subprocess.run, ['umount', CGROUPS], check=True)
        self.pids = {'org.example.One': self.game, STEAM_CLASS: self.steam}
        for name, pid in (('app-org.example.One-1.scope', self.game),
                          (f'app-steam-app{conversation.GAME}-2.scope', self.steam)):
            (APPS / name).mkdir(parents=True)
            (APPS / name / 'cgroup.procs').write_text(f'{pid}\n', encoding='ascii')
        reports = self.play('foreign-toplevel', self.desk.runtime / 'wayland-0', {})
        # Whose socket it is, is the compositor.
        self.assertEqual({r['compositor'] for r in reports}, {os.getpid()})

    def play_bus(self, source):
        path = self.desk.runtime / 'bus'
        self.play(source, path, {'DBUS_SESSION_BUS_ADDRESS': f'unix:path={path}'})

    def test_kwin(self):
        """The bus as well as KWin is played. The script, which does not run here, has said all of this."""
        self.pids['kwin'] = self.process('kwin_wayland')
        self.play_bus('kwin')

    def test_gamemode(self):
        self.play_bus('gamemode')


if __name__ == '__main__':
    desk.run_tests(None if sys.byteorder == 'little' else 'the recordings are of little-endian machines')
