# SPDX-License-Identifier: MIT
"""The built daemon on an emulated machine. A test case has one machine; each of its tests has a daemon of
its own, and ends with the proof that the machine is as it was before."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
import sandbox  # noqa: E402
from sandbox import BUS_NAME, BUS_PATH, MANAGER, Source, wait_for  # noqa: E402,F401

BUILD = os.environ['VRAMD_BUILD']
R1, R2 = sandbox.REGIONS
C1, C2 = sandbox.REGIONS.values()
MIB = 1 << 20
USER = sandbox.USER_SERVICE
# Short times: a test waits for what they end, never for longer than they say.
FAST = '[policy]\nDebounce=30ms\nGrace=300ms\n'
PROPERTIES = 'org.freedesktop.DBus.Properties'
OBJECT_MANAGER = 'org.freedesktop.DBus.ObjectManager'
DEFAULTS = {'dmem.min': 0, 'dmem.low': 0, 'dmem.max': None}


def error_of(name):
    """'NoUnit' and 'InvalidArgs' as D-Bus spells them."""
    ours = ('NoSuchProcess', 'NoUnit', 'NotPermitted', 'ControllerUnavailable', 'Busy', 'InvalidConfiguration',
            'NoSuchKnob', 'NeedsKnob', 'OutOfRange')
    return (BUS_NAME + '.' if name in ours else 'org.freedesktop.DBus.Error.') + name


class Listener:
    """Every signal of vramd, in order."""

    def __init__(self, box):
        self.signals = []
        self.bus = dbus.bus.BusConnection(box.address, mainloop=dbus.mainloop.glib.DBusGMainLoop())
        self.bus.add_signal_receiver(self._add, bus_name=BUS_NAME, interface_keyword='interface',
                                     member_keyword='member', path_keyword='path')

    def _add(self, *args, interface, member, path):
        self.signals.append((interface.rsplit('.', 1)[1], member, path, args))

    def all(self, member, path=None):
        while GLib.MainContext.default().iteration(False):
            pass
        return [s[3] for s in self.signals if s[1] == member and path in (None, s[2])]

    def wait(self, member, check=lambda *args: True):
        """The arguments of the first signal of this name that passes."""
        return wait_for(lambda: next((a for a in self.all(member) if check(*a)), None), f'signal {member}')

    def changed(self, interface):
        """All properties that were told to have changed, with their last values."""
        values = {}
        for iface, new, _ in self.all('PropertiesChanged'):
            if iface == interface:
                values.update(new)
        return values

    def clear(self):
        self.all('')
        self.signals.clear()

    def close(self):
        self.bus.close()


class Case(unittest.TestCase):
    config = FAST   # None: start() is called by the test
    regions = None
    series = False
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.box = sandbox.Sandbox(BUILD, cls.regions, series=cls.series)
        cls.box.__enter__()
        cls.addClassCleanup(cls.box.__exit__, None, None, None)
        cls.polkit = None

    # --- life ---------------------------------------------------------------------------------

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before and self.box.log.exists():
            sys.stderr.write(f'--- log of vramd in {self.id()}\n{self.log()}---\n')
        return result

    def setUp(self):
        self.groups_before = self.groups()
        self.tree_before = self.box.tree()
        self.charged = set()
        self.open = []
        self.box.log.write_text('')
        self.addCleanup(self.check_machine)
        self.conf('')
        if self.config is not None:
            self.start()

    def groups(self):
        found = []
        for folder, _, _ in os.walk(self.box.cgroup):
            found.append('/' + os.path.relpath(folder, self.box.cgroup).removeprefix('.'))
        return sorted(found)

    def check_machine(self):
        """Ends everything, and fails if anything is not as before."""
        for thing in self.open:
            with contextlib.suppress(Exception):
                thing.close()
        for group, region in self.charged:
            with contextlib.suppress(OSError):
                self.box.charge(group, 0, region)
        try:
            if self.box.daemon:
                self.assertEqual(self.box.stop(), 0, 'exit status of vramd')
            self.check_defaults()
            self.assertFalse((self.box.root / 'run/vramd/journal').exists(), 'a journal is left')
            self.remove_new_groups()
            self.assertEqual(self.tree_before, self.box.tree())
        finally:
            self.clean_up()

    def remove_new_groups(self):
        for p in self.box.processes:
            p.kill()
        self.box.processes.clear()
        now = self.groups()
        for group in reversed([g for g in now if g not in self.groups_before]):
            self.box.rmdir(group)
        for group in [g for g in self.groups_before if g not in now]:
            self.box.mkdir(group)

    def clean_up(self):
        if self.box.daemon:
            self.box.stop(signal.SIGKILL)
        self.remove_new_groups()
        self.box.set_user(1000, 'active')
        for path in pathlib.Path('/run/systemd/users').glob('[0-9]*'):
            if path.name != '1000':
                path.unlink()
        for folder in ('usr/lib/vramd', 'run/vramd', 'etc/vramd'):
            shutil.rmtree(self.box.root / folder, ignore_errors=True)
        (self.box.root / 'etc/vramd').mkdir()
        # After a failure, the next test shall have a machine like any other.
        for group in reversed(self.groups_before):
            self.box.write(group, 'cgroup.subtree_control', '-dmem')

    def conf(self, text):
        (self.box.root / 'etc/vramd/vramd.conf').write_text(text)

    def start(self, *args, config=None, **kwargs):
        self.box.start('--verbose', *args, config=config if config is not None else self.config, **kwargs)

    def reload(self, text):
        self.conf(text)
        self.manager().Reload()
        self.settle()

    def log(self):
        return self.box.log.read_text(errors='replace')

    def settle(self):
        """Two round trips: what was asked before the first is decided when the second is answered."""
        self.get('State')
        self.get('State')

    def polkit_allows(self, *actions):
        """Starts polkit if need be, and sets what it allows."""
        cls = type(self)
        if cls.polkit is None:
            cls.polkit = self.box.mock_polkit()
        cls.polkit.SetAllowed(dbus.Array([BUS_NAME + '.' + a for a in actions], signature='s'))

    # --- the bus ------------------------------------------------------------------------------

    def keep(self, thing):
        self.open.append(thing)
        return thing

    def connect(self, uid=0):
        return self.keep(self.box.connect(uid))

    @property
    def bus(self):
        if not getattr(self, '_bus', None) or not self._bus.get_is_connected():
            self._bus = self.connect()
        return self._bus

    def manager(self, bus=None):
        return self.box.manager(bus or self.bus)

    def get(self, name):
        return self.box.get(name, self.bus)

    def game_property(self, path, name):
        game = self.bus.get_object(BUS_NAME, path, introspect=False)
        return game.Get(BUS_NAME + '.Game', name, dbus_interface=PROPERTIES)

    def source(self, name='gamescope', uid=1000):
        return self.keep(Source(self.box, name, uid))

    def listen(self):
        return self.keep(Listener(self.box))

    def emit(self, name, path, interface, member, signature, *args):
        """A signal of somebody else's service; who owns the name is all that the daemon sees."""
        bus = self.connect()
        owned = dbus.service.BusName(name, bus)
        message = dbus.lowlevel.SignalMessage(path, interface, member)
        message.append(*args, signature=signature)
        bus.send_message(message)
        bus.flush()
        self.settle()
        return owned

    def sleep(self, start):
        """logind: the system goes to sleep, or woke up."""
        return self.emit('org.freedesktop.login1', '/org/freedesktop/login1', 'org.freedesktop.login1.Manager',
                         'PrepareForSleep', 'b', start)

    def refuses(self, name, call, *args, text=''):
        with self.assertRaises(dbus.DBusException) as caught:
            call(*args)
        self.assertEqual(caught.exception.get_dbus_name(), error_of(name), caught.exception)
        self.assertIn(text, caught.exception.get_dbus_message())

    # --- the machine ---------------------------------------------------------------------------

    def game(self, appid=1091500, uid=1000, pid=4242, **kwargs):
        """A process in a scope as Steam makes it."""
        group = self.box.unit(f'app-steam-app{appid}-{pid}.scope', uid)
        return self.box.process(group, uid=uid, comm='Game.exe', argv=(r'Z:\games\Game.exe',), **kwargs)

    def compositor(self, uid=1000):
        group = self.box.unit('gamescope-session.service', uid, 'session.slice')
        return self.box.process(group, uid=uid, comm='gamescope', argv=('/usr/bin/gamescope',))

    def steam(self, uid=1000):
        group = self.box.unit('steam-launcher.service', uid)
        return self.box.process(group, uid=uid, comm='steam', argv=('/usr/bin/steam',))

    def charge(self, process, size, region=R1):
        group = getattr(process, 'group', process)
        self.box.charge(group, size, region)
        self.charged.add((group, region))

    def table(self, group, name):
        """Values by region; the defaults where dmem is not switched on."""
        try:
            lines = self.box.read(getattr(group, 'group', group), name).splitlines()
        except FileNotFoundError:
            return dict.fromkeys(self.box.regions, DEFAULTS[name])
        pairs = (line.rsplit(' ', 1) for line in lines)
        return {region: None if value == 'max' else int(value) for region, value in pairs}

    def value(self, group, name, region=R1):
        return self.table(group, name)[region]

    def low(self, group, region=R1):
        return self.value(group, 'dmem.low', region)

    def min(self, group, region=R1):
        return self.value(group, 'dmem.min', region)

    def max(self, group, region=R1):
        return self.value(group, 'dmem.max', region)

    def wait_low(self, group, want, region=R1, timeout=5.0):
        try:
            wait_for(lambda: self.low(group, region) == want, 'dmem.low', timeout)
        except TimeoutError:
            self.fail(f'{getattr(group, "group", group)}: dmem.low {self.low(group, region)}, not {want}')
        self.check_sums()

    def check_sums(self):
        """Each ancestor holds exactly what its children hold, and all together no more than there is.
        Ancestors are written a moment before or after their children, so this waits."""
        wrong = []

        def right():
            wrong[:] = self.wrong_sums()
            return not wrong
        try:
            wait_for(right, 'sums')
        except TimeoutError:
            self.fail('\n'.join(wrong))

    def wrong_sums(self):
        wrong = []
        groups = [g for g in self.groups() if g != '/']
        for name in ('dmem.min', 'dmem.low'):
            tables = {group: self.table(group, name) for group in groups}
            for region, capacity in self.box.regions.items():
                sums = dict.fromkeys(['/', *groups], 0)
                for group in groups:
                    sums[os.path.dirname(group)] += tables[group][region]
                if sums['/'] > capacity:
                    wrong.append(f'{region} {name}: {sums["/"]} promised of {capacity}')
                # A unit may have more than the groups that its own programs made in it.
                wrong += [f'{g} {region} {name}: {tables[g][region]}, its children {sums[g]}' for g in groups
                          if is_inner(g) and tables[g][region] != sums[g]]
        return wrong

    def check_defaults(self):
        for group in self.groups():
            for name, default in DEFAULTS.items():
                if group != '/':
                    self.assertEqual(set(self.table(group, name).values()) - {default}, set(), f'{group} {name}')


def is_sanitized():
    """Built with a sanitizer, which has memory and checks of its own."""
    symbols = subprocess.run(['nm', '-D', f'{BUILD}/daemon/vramd'], capture_output=True, text=True, check=True)
    return '__asan_' in symbols.stdout


def status_of(pid):
    """/proc/PID/status as a dictionary of texts."""
    with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as f:
        return dict(line.rstrip('\n').split(':\t', 1) for line in f if ':\t' in line)


def is_inner(group):
    name = os.path.basename(group)
    return name.startswith('user@') or not name.endswith(('.scope', '.service'))


def pidfds(*processes):
    """As a report's "running" has them."""
    array = dbus.Array(signature='h')
    for p in processes:
        fd = p.pidfd()
        array.append(dbus.types.UnixFd(fd))
        os.close(fd)
    return array


def reserve(capacity, compositor_use=0):
    return min(max(capacity // 16, compositor_use + compositor_use // 4 + capacity // 32), capacity // 4)


def floor(capacity, use=0):
    return min(max(use + use // 4, capacity // 32), capacity // 8)


FRONT1, FRONT2 = C1 - reserve(C1), C2 - reserve(C2)


def main():
    reason = sandbox.missing()
    if reason:
        print(f'skipped: {reason}')
        sys.exit(77)
    unittest.main(verbosity=2)
