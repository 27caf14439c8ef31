# SPDX-License-Identifier: MIT
"""The source gamemode: a real gamemoded on a private session bus, and what x11 knows better."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

import dbus
import dbus.bus

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / 'agent'), str(TESTS / 'client'), str(TESTS / 'compositors')]
import desk  # noqa: E402
from desk import wait_for  # noqa: E402
from test_x11 import XCase  # noqa: E402

NAME, PATH = 'com.feralinteractive.GameMode', '/com/feralinteractive/GameMode'


def missing():
    return None if shutil.which('gamemoded') else 'needs gamemoded'


class GameModeCase(XCase):
    def setUp(self):
        super().setUp()
        self.desk.env['DBUS_SESSION_BUS_ADDRESS'] = self.addresses['session']
        self.session = dbus.bus.BusConnection(self.addresses['session'])
        self.addCleanup(self.session.close)

    def gamemoded(self):
        log = open(self.desk.runtime / 'gamemoded.log', 'ab')  # it complains of all that it may not do here
        self.addCleanup(log.close)
        daemon = self.desk.spawn('gamemoded', stdout=log, stderr=log)
        wait_for(lambda: self.session.name_has_owner(NAME), 'gamemoded')
        return daemon

    def gamemode(self, method, *pids):
        gamemode = self.session.get_object(NAME, PATH, introspect=False)
        return gamemode.get_dbus_method(method, NAME)(*(dbus.Int32(p) for p in pids))

    def register(self, process):
        self.assertEqual(self.gamemode('RegisterGameByPID', process.pid, process.pid), 0)

    def line(self):
        return self.desk.once()['gamemode', 'bus']


class GameMode(GameModeCase):
    def test_games(self):
        agent = self.desk.agent()
        daemon = self.gamemoded()
        game, second = self.desk.process(), self.desk.process()
        self.register(game)
        sender = self.wait_report(self.mock, 'the game', source='gamemode', game=game.pid, menu='unknown',
                                  compositor=None, running=None)['sender']
        # Of the same control group: it is the game as well, and more likely what is played than its launcher.
        self.register(second)
        self.wait_report(self.mock, 'a further process of it', game=second.pid)
        time.sleep(0.3)
        self.assertEqual(agent.usage(2)[1], 0)
        self.assertEqual(self.gamemode('UnregisterGameByPID', second.pid, second.pid), 0)
        self.wait_report(self.mock, 'the first again', game=game.pid)
        # GameMode itself looks each few seconds who has ended.
        game.kill()
        game.wait()
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end', timeout=30)
        game = self.desk.process()
        self.register(game)
        sender = self.wait_report(self.mock, 'another game', game=game.pid)['sender']
        daemon.kill()
        daemon.wait()
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of its word')
        self.gamemoded()
        self.register(game)
        self.wait_report(self.mock, 'the next GameMode', game=game.pid)

    def test_not_started_to_be_asked(self):
        started = pathlib.Path(self.dir.name) / 'started'
        service = f'[D-BUS Service]\nName={NAME}\nExec=/bin/sh -c "touch {started}; exit 1"\n'
        (pathlib.Path(self.dir.name) / f'{NAME}.service').write_text(service, encoding='ascii')
        self.desk.env['DBUS_SESSION_BUS_ADDRESS'] = self.start_bus(
            'session-2', f'<servicedir>{self.dir.name}</servicedir>')
        self.assertEqual(self.line()['why'], 'GameMode is not there')
        self.assertFalse(started.exists())
        bus = dbus.bus.BusConnection(self.desk.env['DBUS_SESSION_BUS_ADDRESS'])
        self.addCleanup(bus.close)
        with self.assertRaises(dbus.DBusException):  # it never takes the name
            bus.start_service_by_name(NAME)
        self.assertTrue(started.exists(), 'the bus would have started it')

    def test_there_before(self):
        """A list at the start."""
        self.gamemoded()
        self.assertEqual(self.line()['why'], 'no game says that it runs')
        game = self.desk.process()
        self.register(game)
        self.desk.show_once()
        line = self.line()
        self.assertEqual((line['pid'], line['front'], line['counts']), (game.pid, 'process', True))

    def test_the_desktop_knows_better(self):
        self.gamemoded()
        game = self.desk.process()
        self.register(game)
        self.desk.agent()
        self.wait_report(self.mock, 'the game', source='gamemode', game=game.pid)
        self.openbox()
        term = self.xterm('One')
        self.wait_report(self.mock, 'the window in front', source='x11', game=term.pid, window=True)
        term.kill()
        self.wait_report(self.mock, 'nobody', source='x11', game=None)

    def test_two_games(self):
        """In control groups of their own: neither is more in front than the other."""
        tree = pathlib.Path(self.dir.name) / 'cgroup'  # not every root has one
        tree.mkdir()
        subprocess.run(['mount', '-t', 'cgroup2', 'cgroup2', tree], check=True)
        self.addCleanup(subprocess.run, ['umount', tree], check=True)
        group = tree / f'vramd-test-{os.getpid()}'
        group.mkdir()
        self.addCleanup(lambda: wait_for(lambda: self.remove(group), 'the end of the group'))
        self.gamemoded()
        game, other = self.desk.process(), self.desk.process()
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        (group / 'cgroup.procs').write_text(str(other.pid), encoding='ascii')
        self.register(game)
        self.register(other)
        line = self.line()
        self.assertEqual((line['pid'], line['why']), (None, 'several games run'))

    @staticmethod
    def remove(group):
        try:
            group.rmdir()
        except OSError:
            return False
        return True


if __name__ == '__main__':
    desk.run_tests(missing())
