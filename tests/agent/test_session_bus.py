# SPDX-License-Identifier: MIT
"""The sources kwin and gamemode beside programs that only have the names: what real ones never say, or too seldom."""

import pathlib
import subprocess
import sys
import time

import dbus
import dbus.bus
import dbusmock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'client'))
import desk  # noqa: E402
from desk import wait_for  # noqa: E402
from test_gamescope import Case  # noqa: E402

LOAD = 'self.agent = open(args[0]).read().split(chr(34))[1]; ret = 0'
SAY = '''
import dbus.lowlevel
for word in args[0]:
    m = dbus.lowlevel.MethodCallMessage(self.agent, '/io/github/vramd1/kwin', 'io.github.vramd1.KWin', 'Activated')
    m.append(*word, signature='bis')
    self.connection.send_message(m)
'''
SAY_TEXT = SAY.replace("*word, signature='bis'", "word, signature='s'")
ERROR = 'raise dbus.exceptions.DBusException("no", name="org.freedesktop.DBus.Error.UnknownMethod")'


class BusCase(Case):
    name = path = interface = None

    def setUp(self):
        super().setUp()
        self.mock = self.vramd()
        self.desk.env['DBUS_SESSION_BUS_ADDRESS'] = self.addresses['session']
        self.session = dbus.bus.BusConnection(self.addresses['session'])
        self.addCleanup(self.session.close)
        self.impostor()

    def impostor(self):
        self.program = self.desk.spawn(sys.executable, '-m', 'dbusmock', self.name, self.path, self.interface,
                                       stdout=subprocess.DEVNULL)
        wait_for(lambda: self.session.name_has_owner(self.name), 'the impostor')
        self.object = self.session.get_object(self.name, self.path, introspect=False)

    def add(self, method, takes, gives, code):
        self.object.AddMethod('', method, takes, gives, code, dbus_interface=dbusmock.MOCK_IFACE)

    def why(self, source):
        line = self.desk.once('--source', source, status=3)[source, 'bus']
        self.assertEqual((line['front'], line['pid']), ('unknown', None))
        return line['why']

    def stranger(self):
        pid = self.desk.spawn('setpriv', '--reuid=4242', 'sleep', 'infinity').pid
        wait_for(lambda: pathlib.Path(f'/proc/{pid}').stat().st_uid == 4242, 'the stranger')
        return pid

    def ended(self):
        p = self.desk.process()
        p.kill()
        p.wait()
        return p.pid


class KWin(BusCase):
    name, path, interface = 'org.kde.KWin', '/Scripting', 'org.kde.kwin.Scripting'

    def impostor(self):
        super().impostor()
        self.add('unloadScript', 's', 'b', 'ret = False')
        self.add('loadScript', 'ss', 'i', LOAD)
        self.add('start', '', '', '')
        self.add('say', 'a(bis)', '', SAY)
        self.add('say_text', 'as', '', SAY_TEXT)

    def say(self, *words):
        self.object.say(dbus.Array([(*word, 'class')[:3] for word in words], signature='(bis)'),
                        dbus_interface=self.interface)

    def wait_script(self):
        calls = dbus.Interface(self.object, dbusmock.MOCK_IFACE)
        wait_for(lambda: 'start' in [name for _, name, _ in calls.GetCalls()], 'the script')

    def begin(self):
        """A new agent has loaded its script, and has been told of a game."""
        agent = self.desk.spawn(desk.AGENT)
        self.wait_script()
        self.say((True, self.game))
        self.wait_report(self.mock, 'the game', source='kwin', game=self.game, compositor=None)
        return agent

    def test_words(self):
        agent = self.begin()
        self.say((False, 0))
        self.wait_report(self.mock, 'nobody', game=None)
        self.say((True, self.other))
        self.wait_report(self.mock, 'another', game=self.other, appid=None)
        self.say((True, self.other, 'steam_app_730'))
        self.wait_report(self.mock, "one of Proton's", game=self.other, appid=730)
        self.object.say_text(['x'], dbus_interface=self.interface)
        n = len(self.reports(self.mock))
        # From one window to the next, as KWin does it.
        self.say((False, 0), (True, self.game), (False, 0), (True, self.other), (False, 0), (True, self.game))
        self.wait_report(self.mock, 'the game', game=self.game)
        self.assertNotIn(None, [r.get('game') for r in self.reports(self.mock)[n:]])
        self.assertIsNone(agent.poll())

    def test_processes_that_cannot_be(self):
        """Nobody's word then: the last one stands for vramd's time of grace."""
        self.begin()
        for pid in (0, -1, 0x7fffffff, self.ended(), self.stranger()):
            with self.subTest(pid=pid):
                self.say((True, self.game))
                sender = self.wait_report(self.mock, 'the game', game=self.game)['sender']
                self.say((True, pid))
                wait_for(lambda s=sender: not self.mock.bus.name_has_owner(s), 'the end of its word')
                self.assertEqual(self.reports(self.mock)[-1]['game'], self.game)

    def test_another_kwin(self):
        """It is given a script of its own."""
        self.begin()
        self.program.kill()
        self.program.wait()
        wait_for(lambda: not self.session.name_has_owner(self.name), 'the end of KWin')
        self.impostor()
        self.wait_script()
        self.say((True, self.other))
        self.wait_report(self.mock, 'the next KWin', game=self.other)

    def test_no_script(self):
        for code, why in (('ret = -1', 'KWin does not load the script'), (ERROR, 'KWin runs no scripts'),
                          (LOAD, 'no answer yet')):
            with self.subTest(why):
                self.add('loadScript', 'ss', 'i', code)
                self.assertEqual(self.why('kwin'), why)
        self.add('loadScript', 'ss', 's', 'ret = "x"')
        self.assertEqual(self.why('kwin'), 'KWin does not load the script')


class GameMode(BusCase):
    name, path, interface = ('com.feralinteractive.GameMode', '/com/feralinteractive/GameMode',
                             'com.feralinteractive.GameMode')

    def list(self, *pids):
        games = ', '.join(f'({pid}, dbus.ObjectPath("/g"))' for pid in pids)
        self.add('ListGames', '', 'a(io)', f'ret = dbus.Array([{games}], signature="(io)")')

    def test_lists(self):
        for pids in ((), (0,), (-1,), (0x7fffffff,), (self.ended(), self.stranger()), (self.ended(),) * 1000):
            self.list(*pids)
            self.assertEqual(self.why('gamemode'), 'no game says that it runs', pids)
        for gives, code in (('s', 'ret = "x"'), ('ai', 'ret = [1]'), ('a(io)', ERROR)):
            self.add('ListGames', '', gives, code)
            self.assertEqual(self.why('gamemode'), 'it does not list the games')

    def test_news(self):
        """Each is a reason to ask, whatever it says, and a thousand of them are not a thousand."""
        self.list(self.game)
        self.desk.agent()
        self.wait_report(self.mock, 'the game', source='gamemode', game=self.game)
        self.list(self.other, self.game, self.ended())
        emit = self.object.get_dbus_method('EmitSignal', dbusmock.MOCK_IFACE)
        emit('', 'GameRegistered', 's', ['x'])
        self.wait_report(self.mock, 'the newer one', game=self.other)
        calls = dbus.Interface(self.object, dbusmock.MOCK_IFACE)
        calls.ClearCalls()
        self.add('storm', '', '', '\n'.join((
            'for i in range(1000):',
            '    self.EmitSignal("", "GameUnregistered", "io", [7, "/g"])')))
        self.object.storm(dbus_interface=self.interface)
        time.sleep(1)
        self.assertLess(len([1 for _, name, _ in calls.GetCalls() if name == 'ListGames']), 500)
        self.list()
        emit('', 'GameUnregistered', 's', ['x'])
        wait_for(lambda: not self.mock.bus.name_has_owner(self.reports(self.mock)[-1]['sender']), 'the end of its word')


if __name__ == '__main__':
    desk.run_tests()
