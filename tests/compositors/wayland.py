# SPDX-License-Identifier: MIT
"""Wayland compositors without a screen, and their clients: as an ordinary user, since sway refuses to be root's."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / 'agent'), str(TESTS / 'client')]
import desk  # noqa: E402
from desk import SOCKETS, Desk, wait_for  # noqa: E402
from support import BusTest  # noqa: E402
from test_gamescope import Case  # noqa: E402

UID = 1000
HEADLESS = {'WLR_BACKENDS': 'headless', 'WLR_LIBINPUT_NO_DEVICES': '1', 'WLR_RENDERER': 'pixman'}


def missing(*programs):
    """Why it cannot work here, or None."""
    return next((f'needs {p}' for p in programs if not shutil.which(p)), None)


class WaylandCase(Case):
    def setUp(self):
        BusTest.setUp(self)
        os.chmod(self.dir.name, 0o711)  # for the user to reach its bus
        self.desk = Desk(UID)
        self.desk.env['DBUS_SYSTEM_BUS_ADDRESS'] = self.addresses['system']
        self.addCleanup(self.desk.close)
        self.mock = self.vramd()

    def sockets(self):
        return {p.name for p in self.desk.runtime.glob('wayland-*') if p.is_socket()}

    def compositor(self, command, env=None):
        """A compositor based on wlroots; what is started from now on shows itself there."""
        for name in self.sockets():
            (self.desk.runtime / name).unlink()  # those of one that was killed
        child = self.desk.spawn(*shlex.split(command), env=dict(HEADLESS, **(env or {})), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        name, = wait_for(self.sockets, f'{command}: its socket')
        self.clients = {'WAYLAND_DISPLAY': name}
        return child

    def foot(self, app_id='foot', *command):
        return self.desk.spawn('foot', '--app-id', app_id, *(command or ('sleep', 'infinity')), env=self.clients,
                               stderr=subprocess.DEVNULL)

    def display(self):
        """Of an Xwayland that need not run yet."""
        socket = wait_for(lambda: sorted(pathlib.Path(SOCKETS).glob('X*')), 'the socket of Xwayland')[-1]
        return f':{socket.name[1:]}'

    def xterm(self, name):
        self.clients['DISPLAY'] = self.display()
        return self.desk.spawn('xterm', '-class', name, '-fn', 'fixed', '-e', 'sleep', 'infinity', env=self.clients,
                               stderr=subprocess.DEVNULL)
