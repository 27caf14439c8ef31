# SPDX-License-Identifier: MIT
"""GNOME's mutter, the real one. Which window has the focus it writes to the window's unit, where vramd looks for it: so
what tests/lab/tests/gnome.sh imitates is seen here. The units are control groups with the names that systemd gives, in
a namespace. The agent leaves this to vramd, but can read mutter's Xwayland."""

import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / 'agent'), str(TESTS / 'client'), str(TESTS / 'compositors')]
import desk  # noqa: E402
from alone import enter_namespaces, wait_for  # noqa: E402
from desk import SOCKETS  # noqa: E402
from test_x11 import XCase  # noqa: E402

CLONE_NEWCGROUP = 0x02000000
HOST = pathlib.Path('/mnt')  # the whole tree of control groups; below GROUPS only what is ours
GROUPS = pathlib.Path('/sys/fs/cgroup')
UNITS = GROUPS / 'user.slice/user-0.slice/user@0.service/app.slice'
MARK = 'user.xdg.inactive-since'


def enter_cgroup():
    """A control group of our own, which is the root of all that is seen from now on."""
    subprocess.run(['mount', '-t', 'cgroup2', 'none', HOST], check=True)
    top = HOST / f'vramd-test-{os.getpid()}'
    top.mkdir()
    atexit.register(leave_cgroup, top)
    (top / 'cgroup.procs').write_text('0', encoding='ascii')
    enter_namespaces(CLONE_NEWCGROUP)
    subprocess.run(['mount', '-t', 'cgroup2', 'none', GROUPS], check=True)


def leave_cgroup(top):
    (HOST / 'cgroup.procs').write_text('0', encoding='ascii')
    (top / 'cgroup.kill').write_text('1', encoding='ascii')
    wait_for(lambda: 'populated 0' in (top / 'cgroup.events').read_text(encoding='ascii'), 'the end of all', 60)
    for directory, _, _ in os.walk(top, topdown=False):
        os.rmdir(directory)


class Mutter(XCase):
    def setUp(self):
        super().setUp()
        self.desk.env['DBUS_SESSION_BUS_ADDRESS'] = self.addresses['session']
        self.start_in(UNITS / 'org.gnome.Shell@wayland.service', 'mutter', '--headless', '--virtual-monitor',
                      '1280x720', '--wayland-display', 'wayland-test')
        # The other one is for services that it starts itself.
        sockets = wait_for(lambda: sorted(pathlib.Path(SOCKETS).iterdir()), 'its Xwayland', 60)
        cookie, = wait_for(lambda: list(self.desk.runtime.glob('.mutter-Xwaylandauth.*')), 'its cookie', 60)
        wait_for((self.desk.runtime / 'wayland-test').exists, 'mutter', 60)
        self.desk.env.update(DISPLAY=f':{sockets[0].name[1:]}', XAUTHORITY=str(cookie))

    def start_in(self, unit, *argv):
        unit.mkdir(parents=True, exist_ok=True)
        return self.desk.spawn('sh', '-c', f'echo 0 >{unit}/cgroup.procs && exec "$@"', 'sh', *argv,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def window(self, name):
        """In front when this returns."""
        p = self.start_in(UNITS / f'app-{name}.scope', 'xterm', '-class', name, '-fn', 'fixed', '-e', 'sleep',
                          'infinity')
        wait_for(lambda: self.tool('xdotool', 'search', '--onlyvisible', '--class', name), name, 60)
        self.activate(name)
        return p

    def mark(self, name):
        try:
            return os.getxattr(UNITS / f'app-{name}.scope', MARK).decode()
        except OSError:
            return None

    def wait_marks(self, front, behind):
        """Of the one behind: since when, in microseconds of the monotonic clock, to the second."""
        wait_for(lambda: self.mark(front) == '-1' and self.mark(behind) != '-1', f'{front} before {behind}', 60)
        since = int(self.mark(behind)) / 1e6
        now = time.clock_gettime(time.CLOCK_MONOTONIC)
        self.assertTrue(now - 120 < since <= now, (since, now))

    def test_marks(self):
        self.window('One')
        wait_for(lambda: self.mark('One') == '-1', 'the mark of the first', 60)
        second = self.window('Two')
        self.wait_marks('Two', 'One')
        for front, behind in (('One', 'Two'), ('Two', 'One')):
            self.activate(front)
            self.wait_marks(front, behind)
        second.kill()
        wait_for(lambda: self.mark('One') == '-1', 'the mark of what is left', 60)

    def test_agent(self):
        window = self.window('One')
        gnome = {'XDG_CURRENT_DESKTOP': 'GNOME', 'WAYLAND_DISPLAY': 'wayland-test'}
        self.assertEqual([place for source, place in self.desk.once(env=gnome) if source == 'x11'], [None])
        self.desk.agent()
        self.wait_report(self.mock, 'the window', source='x11', game=window.pid, window=True)
        self.desk.show_once()


if __name__ == '__main__':
    desk.run_tests(None if shutil.which('mutter') else 'needs mutter', before=enter_cgroup)
