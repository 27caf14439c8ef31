# SPDX-License-Identifier: MIT
"""In the guest: who decides about the limits in an arm. Only the controls write them; the policy is vramd's."""

import os
import pathlib
import subprocess

import dbus

import stage
from stage import CAPACITY, DECK, ancestors, guest, limit, set_limit

KNOBS = pathlib.Path('/sys/module/ttm/parameters')
CONFIG = pathlib.Path('/etc/vramd/vramd.conf')
DROP_IN = pathlib.Path('/run/systemd/system/vramd.service.d/bench.conf')
BOOT_ID = pathlib.Path('/run/boot_id')


class Booster:
    """Nobody: dmem is switched on, and that is all. Knobs are the companion series' parameters."""

    def __init__(self, **knobs):
        self.knobs = knobs

    def start(self):
        """Before any program."""
        for name, value in self.knobs.items():
            (KNOBS / name).write_text(str(value))

    def stop(self):
        """After all of them."""
        for name in self.knobs:
            (KNOBS / name).write_text('0')

    def added(self, program):
        """A program is there, and has not opened the GPU yet."""
        stage.enable_dmem(program.group)

    def front(self, game, compositor, menu='closed'):
        """The game comes to the front, or Steam's menu opens or closes over it."""

    def home(self, steam, compositor):
        """Steam comes to the front."""


class Pair(Booster):
    """dmemcg-booster, which gives each group above the games the capacity, and a booster that knows the focus, as
    gamescope 3.16 does: the capacity to the unit in front, and 0 to the one that was."""

    def __init__(self):
        super().__init__()
        self.unit = None

    def front(self, game, compositor, menu='closed'):
        for group in ancestors(game.group):
            set_limit(group, 'low', CAPACITY)
        self.switch(game)

    def home(self, steam, compositor):
        self.switch(steam)

    def switch(self, program):
        if self.unit:
            set_limit(self.unit, 'low', 0)
        self.unit = program.group
        set_limit(self.unit, 'low', CAPACITY)


class Slack(Booster):
    """The game's own group has what vramd would give it, but each group above it has the capacity."""

    def front(self, game, compositor, menu='closed'):
        for group in ancestors(game.group):
            set_limit(group, 'low', CAPACITY)
        set_limit(game.group, 'low', CAPACITY - CAPACITY // 16)


class Limits(Booster):
    """For the series alone: the game has low or min, and so has each group above it; the compositor perhaps a floor."""

    def __init__(self, low=0, minimum=0, floor=0, **knobs):
        super().__init__(**knobs)
        self.low, self.minimum, self.floor = low, minimum, floor

    def front(self, game, compositor, menu='closed'):
        values = {(game.group, 'low'): self.low, (game.group, 'min'): self.minimum}
        if compositor:
            values[compositor.group, 'min'] = self.floor
        for group, name in values:
            for parent in ancestors(group):
                below = [v for (g, n), v in values.items() if n == name and g.startswith(parent + '/')]
                set_limit(parent, name, min(sum(below), CAPACITY))
        for (group, name), value in values.items():
            set_limit(group, name, value)


class Vramd(Booster):
    """The installed service; it is only told who is in front, as a compositor of deck would."""

    def __init__(self, config=''):
        super().__init__()
        self.config, self.bus = config, None

    def start(self):
        CONFIG.parent.mkdir(exist_ok=True)
        CONFIG.write_text(self.config)
        # sd-event coalesces timers at moments that it takes from the boot's random number: always the same ones.
        BOOT_ID.write_text('c1e4a5d2-6f0b-4d3a-9b57-2f1d8e6a7c90\n')
        DROP_IN.parent.mkdir(parents=True, exist_ok=True)
        DROP_IN.write_text(f'[Service]\nBindReadOnlyPaths={BOOT_ID}:/proc/sys/kernel/random/boot_id\n')
        subprocess.run(['systemctl', 'daemon-reload'], check=True)
        subprocess.run(['systemctl', 'start', 'vramd.service'], check=True)
        with guest.as_user(1000):
            self.bus = dbus.bus.BusConnection('unix:path=/run/dbus/system_bus_socket')

    def stop(self):
        self.bus.close()
        subprocess.run(['systemctl', 'stop', 'vramd.service'], check=True)

    def added(self, program):
        """vramd switches dmem on by itself."""
        guest.wait_for(lambda: limit(program.group, 'low') is not None, f'dmem in {program.unit}')

    def front(self, game, compositor, menu='closed'):
        self.report(menu, game=game, compositor=compositor)

    def home(self, steam, compositor):
        self.report('closed', compositor=compositor)

    def report(self, menu, **programs):
        """The answer comes when the values are written."""
        report = {'source': 'gamescope', 'menu': menu}
        fds = {key: os.pidfd_open(program.pid) for key, program in programs.items() if program}
        report.update({key: dbus.types.UnixFd(fd) for key, fd in fds.items()})
        manager = dbus.Interface(self.bus.get_object('io.github.vramd1', '/io/github/vramd1'),
                                 'io.github.vramd1.Manager')
        manager.ReportFocus(dbus.Dictionary(report, signature='sv'))
        for fd in fds.values():
            os.close(fd)
