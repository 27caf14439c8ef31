# SPDX-License-Identifier: MIT
"""The source kwin: a real kwin_wayland without a screen, and real xterms on its Xwayland."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import dbus
import dbus.bus

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / 'agent'), str(TESTS / 'client'), str(TESTS / 'compositors')]
import desk  # noqa: E402
from desk import SOCKETS  # noqa: E402
from alone import wait_for  # noqa: E402
from test_x11 import XCase  # noqa: E402

SCRIPT = 'vramd-agent'


def missing():
    for program in ('kwin_wayland', 'Xwayland'):
        if not shutil.which(program):
            return f'needs {program}'
    return None


class KWinCase(XCase):
    def setUp(self):
        super().setUp()
        self.desk.env['DBUS_SESSION_BUS_ADDRESS'] = self.addresses['session']
        # KWin's file may have a capability, and then cannot be run where nobody has that one.
        self.program = self.desk.runtime / 'kwin_wayland'
        shutil.copyfile(shutil.which('kwin_wayland'), self.program)
        self.program.chmod(0o755)
        self.session = dbus.bus.BusConnection(self.addresses['session'])
        self.addCleanup(self.session.close)

    def scripting(self, method, *args):
        scripting = self.session.get_object('org.kde.KWin', '/Scripting', introspect=False)
        return scripting.get_dbus_method(method, 'org.kde.kwin.Scripting')(*args)

    def is_loaded(self):
        return bool(self.scripting('isScriptLoaded', SCRIPT))

    def kwin(self):
        """Ready, with an X server, when this returns."""
        kwin = self.desk.spawn(self.program, '--virtual', '--xwayland', '--socket', 'wayland-test',
                               env={'QT_QPA_PLATFORM': 'offscreen', 'KWIN_COMPOSE': 'Q', 'PATH': os.environ['PATH']},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: self.session.name_has_owner('org.kde.KWin') or kwin.poll() is not None, 'KWin', 60)
        sockets = wait_for(lambda: list(pathlib.Path(SOCKETS).iterdir()), 'its Xwayland', 60)
        self.desk.env['DISPLAY'] = f':{sockets[0].name[1:]}'
        cookies = sorted(self.desk.runtime.glob('xauth_*'), key=lambda p: p.stat().st_mtime)
        self.desk.env['XAUTHORITY'] = str(cookies[-1]) if cookies else ''
        wait_for(lambda: 'window id' in self.tool('xprop', '-root', '_NET_SUPPORTING_WM_CHECK'), 'KWin for X', 60)
        return kwin

    def wait_kwin(self, what, **want):
        return self.wait_report(self.mock, what, source='kwin', window=True if want.get('game') else None, **want)


class KWin(KWinCase):
    def test_windows(self):
        """The agent is first; windows come, change places and go."""
        agent = self.desk.agent()
        kwin = self.kwin()
        first = self.xterm('One')
        self.wait_kwin('the first', game=first.pid, menu='unknown', compositor=kwin.pid)
        second = self.xterm('Two')
        self.wait_kwin('the second', game=second.pid)
        for name, p in (('One', first), ('Two', second), ('One', first)):
            self.activate(name)
            self.wait_kwin(name, game=p.pid)
        proton = self.xterm('steam_app_730')
        self.wait_kwin("one of Proton's", game=proton.pid, appid=730)
        proton.kill()
        self.wait_kwin('the one below', game=first.pid, appid=None)
        games = [r.get('game') for r in self.reports(self.mock)]
        self.assertNotIn(None, games[games.index(first.pid):])
        self.desk.show_once()
        time.sleep(0.3)
        self.assertEqual(agent.usage(2)[1], 0)
        first.kill()
        self.wait_kwin('what is left', game=second.pid)
        second.kill()
        self.wait_kwin('nobody', game=None)
        self.assertTrue(self.is_loaded())
        self.assertEqual(agent.kill(signal.SIGTERM), 0)
        wait_for(lambda: not self.is_loaded(), 'the end of the script')

    def test_kwin_is_killed(self):
        kwin = self.kwin()
        self.desk.agent()
        term = self.xterm('One')
        sender = self.wait_kwin('the first', game=term.pid)['sender']
        kwin.kill()
        kwin.wait()
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of the connection')
        for path in pathlib.Path(SOCKETS).iterdir():
            path.unlink()
        kwin = self.kwin()
        term = self.xterm('Again')
        self.wait_kwin('the next', game=term.pid, compositor=kwin.pid)

    def test_agent_is_killed(self):
        """Its script goes on to call nobody; the next agent puts one of its own in its place."""
        self.kwin()
        self.desk.agent().kill()
        agent = self.desk.agent()
        term = self.xterm('One')
        self.wait_kwin('the first', game=term.pid)
        agent.kill()
        self.assertTrue(self.is_loaded())
        agent = self.desk.agent()
        other = self.xterm('Two')
        self.wait_kwin('the second', game=other.pid)
        self.assertEqual(agent.kill(signal.SIGTERM), 0)
        wait_for(lambda: not self.is_loaded(), 'the end of the script')

    def test_two_agents(self):
        """The newer one takes the script over, and leaves it to the older one."""
        self.kwin()
        self.desk.agent()
        first = self.xterm('One')
        sender = self.wait_kwin('the first', game=first.pid)['sender']
        line = self.desk.once(status=0)['kwin', 'bus']
        self.assertEqual((line['pid'], line['front'], line['counts']), (first.pid, 'process', True))
        second = self.xterm('Two')
        self.assertEqual(self.wait_kwin('the second', game=second.pid)['sender'], sender)
        newer = self.desk.agent()
        self.activate('One')
        self.assertNotEqual(self.wait_kwin('to the newer one', game=first.pid)['sender'], sender)
        newer.kill()
        self.activate('Two')
        self.assertEqual(self.wait_kwin('to the older one', game=second.pid)['sender'], sender)

    def test_a_stranger_calls(self):
        self.kwin()
        self.desk.agent()
        term = self.xterm('One')
        self.wait_kwin('the first', game=term.pid)
        n = len(self.reports(self.mock))
        ours = self.session.get_object('io.github.vramd1.KWin', '/io/github/vramd1/kwin', introspect=False)
        with self.assertRaisesRegex(dbus.DBusException, 'AccessDenied'):
            ours.Activated(True, dbus.Int32(self.game), '', dbus_interface='io.github.vramd1.KWin')
        with self.assertRaisesRegex(dbus.DBusException, 'InvalidArgs'):
            ours.Activated('x', dbus_interface='io.github.vramd1.KWin')
        time.sleep(0.3)
        self.assertEqual(len(self.reports(self.mock)), n)


if __name__ == '__main__':
    desk.run_tests(missing())
