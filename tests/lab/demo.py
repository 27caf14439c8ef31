#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The story of tests/demo on a real kernel: vramd as a service, deck at the seat, two GPUs of vramsim, and
a game that really holds buffers. Runs in the lab's guest (tests/demo --kernel)."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import dbus

sys.path.insert(0, '/lab/src/tests/lab/tests')
sys.path.insert(0, '/lab/src/tests/harness')
import guest  # noqa: E402
from story import Story  # noqa: E402

NAME, PATH, MANAGER = 'io.github.vramd1', '/io/github/vramd1', 'io.github.vramd1.Manager'
DROP_IN = pathlib.Path('/etc/systemd/system/vramd.service.d/demo.conf')
VSIM = guest.BUILD / 'tests/vramsim/vsim'


class Program:
    """In a unit of deck; with mib it holds so much VRAM, from the moment on that it is told to."""

    def __init__(self, unit, mib, slice_='app.slice'):
        self.output = f'/tmp/{unit}'
        self.opened = False
        options = ['--scope'] if unit.endswith('.scope') else []
        for path in (self.output, self.output + '.gate'):
            pathlib.Path(path).unlink(missing_ok=True)
        os.mkfifo(self.output + '.gate')
        os.chmod(self.output + '.gate', 0o666)
        self.child = guest.spawn_as('deck', [
            'systemd-run', '--user', '--quiet', '--collect', f'--slice={slice_}', f'--unit={unit}', *options, '--',
            guest.SRC / 'tests/lab/tests/game', self.output, VSIM, 'hold', '--device=0000:03:00.0', '--size=2M',
            f'--count={mib // 2}'])
        self.group = f'{guest.user_service(1000)}/{slice_}/{unit}'
        procs = guest.path_of(self.group) / 'cgroup.procs'
        guest.wait_for(lambda: procs.exists() and procs.read_text(), unit)
        self.pid = int(procs.read_text().split()[0])

    def frame(self):
        """Draws: the first time opens the GPU, then asks for all buffers again."""
        if self.opened:
            os.kill(self.pid, signal.SIGUSR1)
            return
        self.opened = True
        pathlib.Path(self.output + '.gate').write_text('go\n')
        guest.wait_for(lambda: pathlib.Path(self.output).exists() and pathlib.Path(self.output).stat().st_size,
                       'a frame')

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        self.child.wait()
        guest.wait_for(lambda: not guest.path_of(self.group).exists(), f'the end of {self.group}')


class LabMachine:
    """What the story needs of a machine, on the lab's guest."""

    log = '/run/vramd-demo.log'

    def __init__(self):
        guest.setup('deck')
        DROP_IN.parent.mkdir()
        DROP_IN.write_text(f'[Service]\nEnvironment=VRAMD_LOG_LEVEL=debug\nStandardError=append:{self.log}\n')
        pathlib.Path(self.log).touch()
        subprocess.run(['systemctl', 'daemon-reload'], check=True)
        self.steam = Program('steam-launcher.service', 2)
        self.compositor = Program('gamescope-session.service', 12, 'session.slice')
        self.bus = None

    def describe(self):
        systemd = subprocess.run(['systemctl', '--version'], check=True, capture_output=True, text=True).stdout
        capacity = dict(line.split() for line in guest.path_of('/').joinpath('dmem.capacity').read_text().splitlines())
        return (f'Linux {os.uname().release}, systemd {systemd.split()[1]}, with ' +
                ' and '.join(f'{int(size) >> 20} MiB in {name}' for name, size in capacity.items()))

    tree = staticmethod(guest.tree)

    def start_daemon(self):
        subprocess.run(['systemctl', 'start', 'vramd.service'], check=True)
        self.bus = dbus.bus.BusConnection('unix:path=/run/dbus/system_bus_socket')

    def stop_daemon(self):
        self.bus.close()
        self.bus = None
        subprocess.run(['systemctl', 'stop', 'vramd.service'], check=True)
        text = subprocess.run(['systemctl', 'show', '-P', 'ExecMainStatus', 'vramd.service'], check=True,
                              capture_output=True, text=True).stdout
        return int(text)

    def settle(self):
        if self.bus:
            self.bus.get_object(NAME, PATH).Get(MANAGER, 'State', dbus_interface='org.freedesktop.DBus.Properties')

    def start_game(self, appid):
        return Program(f'app-steam-app{appid}-4242.scope', 180)

    def report(self, game, menu):
        report = {'source': 'gamescope', 'menu': menu}
        fds = []
        for key, program in (('game', game), ('compositor', self.compositor)):
            if program is not None:
                fds.append(os.pidfd_open(program.pid))
                report[key] = dbus.types.UnixFd(fds[-1])
        manager = dbus.Interface(self.bus.get_object(NAME, PATH), MANAGER)
        manager.ReportFocus(dbus.Dictionary(report, signature='sv'))
        for fd in fds:
            os.close(fd)
        self.settle()
        if game:
            game.frame()
            self.compositor.frame()

    def end_game(self, game):
        game.end()

    def end_session(self):
        self.compositor.end()


if __name__ == '__main__':
    sys.exit(Story(LabMachine()).play())
