# SPDX-License-Identifier: MIT
"""Makes the recordings tests/agent/conversation-*.txt anew: the agent beside real programs, step by step, and a
recorder between them. "ninja -C build record-conversations" runs it."""

import os
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / 'agent'), str(TESTS / 'client')]
import conversation  # noqa: E402
import desk  # noqa: E402
import test_gamemode  # noqa: E402
import test_kwin  # noqa: E402
import test_toplevel  # noqa: E402
import test_x11  # noqa: E402
import wayland  # noqa: E402
from conversation import GAME, STEAM_CLASS  # noqa: E402
from desk import SOCKETS, wait_for  # noqa: E402


def versions(*packages):
    """As Debian names them."""
    p = subprocess.run(['dpkg-query', '-W', '-f', '${Package} ${Version}\n', *packages], check=True,
                       stdout=subprocess.PIPE, text=True)
    known = dict(line.split() for line in p.stdout.splitlines())
    return ', '.join(f'{package} {known[package]}' for package in packages)


class Recording:
    """For a case beside a real program: its socket, and what is in between."""

    def begin(self, source, path, real, env, step):
        self.source, self.pids = source, {}
        self.recorder = conversation.Recorder(source, path, real, self.desk.uid)
        self.addCleanup(self.recorder.listener.close)
        self.agent = self.desk.agent('--source', source, env=env)
        if step:
            self.end_step(step)

    def begin_bus(self, source, step):
        path = self.desk.runtime / 'recorder'
        self.begin(source, path, self.addresses['session'].removeprefix('unix:path='),
                   {'DBUS_SESSION_BUS_ADDRESS': f'unix:path={path}'}, step)

    def end_step(self, step, **started):
        """started: processes, by the names that the recording knows them by."""
        self.pids.update({name: p.pid for name, p in started.items()})
        want = conversation.wanted(self.source, step, self.pids)
        if want:
            self.wait_report(self.mock, step, source=self.source, **want)
        else:
            sender = self.reports(self.mock)[-1]['sender']
            wait_for(lambda: not self.mock.bus.name_has_owner(sender), f'{step}: the end of its word')
        self.recorder.end_step(step, self.pids)

    def save(self, *packages):
        self.assertEqual(list(self.recorder.steps), list(conversation.REPORTS[self.source]))
        conversation.save(self.source, self.recorder.steps, versions(*packages))

    def xterms(self):
        """From nobody to nobody; those that go first are not in front."""
        one = self.xterm('One')
        self.end_step('the first', One=one)
        two = self.xterm('Two')
        self.end_step('the second', Two=two)
        self.activate('One')
        self.end_step('the first again')
        proton = self.xterm(STEAM_CLASS)
        self.end_step("one of Proton's", **{STEAM_CLASS: proton})
        for p in (one, two, proton):
            p.kill()
            p.wait()
            wait_for(lambda pid=p.pid: str(pid) not in self.shown(), 'the end of the window')
        self.end_step('nobody is left')

    def shown(self):
        """The processes whose windows the window manager lists."""
        windows = self.tool('xprop', '-root', '_NET_CLIENT_LIST').partition('# ')[2].split(', ')
        return ' '.join(self.tool('xprop', '-id', w.strip(), '_NET_WM_PID') for w in windows if w.strip()).split()


class X11(Recording, test_x11.XCase):
    def record(self):
        self.openbox(5, '-extension', 'GLX')  # whose hundred visuals nobody asks for
        self.begin('x11', f'{SOCKETS}/X9', f'{SOCKETS}/X5', {'DISPLAY': ':9'}, 'nobody')
        self.xterms()
        self.save('xvfb', 'openbox', 'xterm')


class ForeignToplevel(Recording, test_toplevel.Toplevel):
    def record(self):
        compositor = self.compositor('sway -c /dev/null')
        own = self.desk.runtime / 'agent'
        own.mkdir()
        os.chown(own, wayland.UID, wayland.UID)
        self.begin('foreign-toplevel', own / 'wayland-0', self.desk.runtime / self.clients['WAYLAND_DISPLAY'],
                   {'XDG_RUNTIME_DIR': str(own)}, 'nobody')
        one = self.foot('org.example.One')
        self.unit('app-org.example.One-1.scope', one.pid)
        self.end_step('the first', **{'org.example.One': one})
        game = self.foot(STEAM_CLASS)
        self.unit(f'app-steam-app{GAME}-2.scope', game.pid)
        self.end_step("one of Proton's", **{STEAM_CLASS: game})
        game.kill()
        self.end_step('the first again')
        one.kill()
        self.end_step('nobody is left')
        self.assertIsNone(compositor.poll())
        self.save('sway', 'foot')


class KWin(Recording, test_kwin.KWinCase):
    def record(self):
        kwin = self.kwin()
        self.begin_bus('kwin', None)
        self.end_step('nobody', kwin=kwin)
        self.xterms()
        kwin.kill()
        self.end_step('KWin ends')
        self.save('kwin-wayland', 'dbus-daemon', 'xterm')


class GameMode(Recording, test_gamemode.GameModeCase):
    def record(self):
        self.gamemoded()
        one, two = self.desk.process(), self.desk.process()
        self.register(one)
        self.begin_bus('gamemode', None)
        self.end_step('a game that was there before', One=one)
        self.register(two)
        self.end_step('a further process of it', Two=two)
        self.gamemode('UnregisterGameByPID', two.pid, two.pid)
        self.end_step('that one ends')
        self.gamemode('UnregisterGameByPID', one.pid, one.pid)
        self.end_step('the game ends')
        self.register(two)
        self.end_step('another game')
        self.save('gamemode-daemon', 'dbus-daemon')


if __name__ == '__main__':
    sys.argv[1:] = sys.argv[1:] or [f'{case}.record' for case in ('X11', 'ForeignToplevel', 'KWin', 'GameMode')]
    desk.run_tests(wayland.missing('sway', 'foot'), test_kwin.missing(), test_gamemode.missing())
