#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A stand-in for vramd (system bus) or for a user's systemd (session bus), as a process of its own.

mock.py vramd | systemd.  The interface io.github.vramd1.Mock on the same object steers it: Fail() makes
a method fail, Emit() sends the signals, Log() gives the calls as JSON. It checks what it is given and
writes no cgroup."""
import json
import os
import select
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

MIB = 1 << 20
PATH = '/io/github/vramd1'
MANAGER = 'io.github.vramd1.Manager'
GAME = 'io.github.vramd1.Game'
REGION = 'io.github.vramd1.Region'
KERNEL = 'io.github.vramd1.Kernel'
MOCK = 'io.github.vramd1.Mock'
PROPERTIES = 'org.freedesktop.DBus.Properties'
CARD0 = 'drm/0000:03:00.0/vram0'
CARD1 = 'drm/0000:09:00.0/vram0'
UNIT = 'app-steam-app1091500-4242.scope'
CGROUP = '/user.slice/user-1000.slice/user@1000.service/app.slice/' + UNIT


def amounts(**mib):
    regions = {'card0': CARD0, 'card1': CARD1}
    return dbus.Dictionary({regions[k]: dbus.UInt64(v * MIB) for k, v in mib.items()}, signature='st')


def properties(**values):
    return dbus.Dictionary(values, signature='sv')


GAMES = {
    PATH + '/game/1': properties(
        AppID=dbus.UInt32(1091500), Name='Cyberpunk 2077', Unit=UNIT, ControlGroup=CGROUP,
        User=dbus.UInt32(1000), Foreground=True, Low=amounts(card0=7680), Min=amounts(), Eased=amounts(),
        Current=amounts(card0=6246), Peak=amounts(card0=7000), Spilled=amounts(card0=312),
        Evicted=amounts(card0=64), Evictions=dbus.Dictionary({CARD0: dbus.UInt64(12)}, signature='st')),
    # Its name tries to clear the terminal, to reorder text, and is far too long.
    PATH + '/game/2': properties(
        AppID=dbus.UInt32(0), Name='Evil\x1b[2J\u202eName ünïcode ' + 'x' * 60, Unit='app-x\\x2dy.scope',
        ControlGroup='/user.slice/x', User=dbus.UInt32(4242), Foreground=False,
        Low=amounts(card0=128), Min=amounts(card0=64), Eased=amounts(), Current=amounts(card0=256, card1=1),
        Peak=amounts(), Spilled=amounts(), Evicted=amounts(), Evictions=amounts()),
}
LIST_EXTRA = {PATH + '/game/1': ('scope', 'front'), PATH + '/game/2': ('environ', 'background')}
REGIONS = {
    PATH + '/region/1': properties(
        Name=CARD0, DevicePath='/dev/dri/card0', PCI='0000:03:00.0', Driver='amdgpu',
        CapacityBytes=dbus.UInt64(8192 * MIB), LinkBandwidth=dbus.UInt64(15753846153),
        Integrated=False, Current=dbus.UInt64(7100 * MIB), Protected=dbus.UInt64(7808 * MIB)),
    PATH + '/region/2': properties(
        Name=CARD1, DevicePath='/dev/dri/card1', PCI='0000:09:00.0', Driver='amdgpu',
        CapacityBytes=dbus.UInt64(512 * MIB), LinkBandwidth=dbus.UInt64(0), Integrated=True,
        Current=dbus.UInt64(40 * MIB), Protected=dbus.UInt64(0)),
}
KERNEL_PROPERTIES = properties(
    Available=dbus.Array(['ThrottleHard', 'ThrottleSoft', 'ContigWindow', 'Future'], signature='s'),
    Origins=dbus.Dictionary({'ThrottleHard': 'configuration', 'ThrottleSoft': 'hand', 'ContigWindow': 'stranger'},
                            signature='ss'),
    ThrottleHard=dbus.UInt32(50), ThrottleSoft=dbus.UInt32(2000), ThrottleLevels=dbus.UInt32(1),
    ReclaimBackoff=dbus.UInt32(0), ContigWindow=True, EvictPriority=False, DisplaceLower=False,
    GfxoffDelay=dbus.UInt32(0), Future=dbus.UInt32(7))
MANAGER_PROPERTIES = properties(
    Version='0.1.0', State='protecting', Reason='"Cyberpunk 2077" is in front and holds most of its share.',
    ForegroundGame=dbus.ObjectPath(PATH + '/game/1'), Menu='closed', FocusSource='gamescope',
    Abilities=dbus.Array(['dmem', 'dmem-peak'], signature='s'))


class Base(dbus.service.Object):
    def __init__(self, bus, path):
        super().__init__(bus, path)
        self.log, self.failures = [], {}

    def called(self, method, **values):
        self.log.append([method, values])
        if method in self.failures:
            name, message = self.failures[method]
            if name == 'hang':
                select.select([], [], [], 60)
            raise dbus.DBusException(message, name=name)

    @dbus.service.method(MOCK, in_signature='sss')
    def Fail(self, method, name, message):
        if name:
            self.failures[method] = (str(name), str(message))
        else:
            self.failures.pop(method, None)

    @dbus.service.method(MOCK, out_signature='s')
    def Log(self):
        return json.dumps(self.log)


def pid_of(fd):
    """The process of a pidfd; anything else is an error of the client."""
    with open(f'/proc/self/fdinfo/{fd}', encoding='ascii') as f:
        return int(next(line for line in f if line.startswith('Pid:')).split()[1])


def taken_pid(value):
    fd = value.take()
    try:
        return pid_of(fd)
    finally:
        os.close(fd)


class GameObject(dbus.service.Object):
    @dbus.service.method(PROPERTIES, in_signature='s', out_signature='a{sv}')
    def GetAll(self, interface):
        assert interface == GAME
        return GAMES[self.__dbus_object_path__]


class Vramd(Base):
    def __init__(self, bus):
        super().__init__(bus, PATH)
        self.holds, self.eased_usec = [], 0
        self.games = [GameObject(bus, path) for path in GAMES]
        if 'MOCK_VRAMD' in os.environ:  # {"State": "unsupported", ...}
            for key, value in json.loads(os.environ['MOCK_VRAMD']).items():
                if key == 'Driver':
                    for region in REGIONS.values():
                        region[key] = value
                    continue
                target = KERNEL_PROPERTIES if key in KERNEL_PROPERTIES else MANAGER_PROPERTIES
                target[key] = dbus.Array(value, signature='s') if isinstance(value, list) else \
                    dbus.UInt32(value) if type(value) is int else value  # pylint: disable=unidiomatic-typecheck

    @dbus.service.method(PROPERTIES, in_signature='s', out_signature='a{sv}')
    def GetAll(self, interface):
        self.called('GetAll')
        return {MANAGER: MANAGER_PROPERTIES, KERNEL: KERNEL_PROPERTIES}[interface]

    @dbus.service.method(PROPERTIES, in_signature='ssv')
    def Set(self, interface, name, value):
        assert interface == KERNEL
        self.called('Set', name=name, type=type(value).__name__, value=int(value))

    @dbus.service.method(KERNEL)
    def Reset(self):
        self.called('Reset')

    @dbus.service.method('org.freedesktop.DBus.ObjectManager', out_signature='a{oa{sa{sv}}}')
    def GetManagedObjects(self):
        objects = {path: {GAME: p, PROPERTIES: properties()} for path, p in GAMES.items()}
        objects.update({path: {REGION: p} for path, p in REGIONS.items()})
        # From a newer vramd: unknown interfaces, properties and types must not disturb.
        objects[PATH + '/new'] = {'io.github.vramd1.New': properties(Thing=dbus.Struct((1, 'x')))}
        objects[PATH + '/region/1'][REGION]['Future'] = dbus.Array([dbus.Struct((1, 2))])
        return objects

    @dbus.service.method(MANAGER, out_signature='a(ousba{sv})')
    def ListGames(self):
        self.called('ListGames')
        rows = []
        for path, p in GAMES.items():
            mark, role = LIST_EXTRA[path]
            extra = {'name': p['Name'], 'uid': p['User'], 'mark': mark, 'role': role,
                     'control-group': p['ControlGroup'], 'current': p['Current'], 'low': p['Low'],
                     'min': p['Min'], 'eased': p['Eased'], 'eased-usec': dbus.UInt64(self.eased_usec), 'spilled': p['Spilled'], 'future': dbus.UInt16(7)}
            rows.append((dbus.ObjectPath(path), p['AppID'], p['Unit'], p['Foreground'],
                         properties(**extra)))
        return dbus.Array(rows, signature='(ousba{sv})')

    @dbus.service.method(MANAGER, out_signature='a(ssuua{sv})')
    def ListHolds(self):
        return dbus.Array([('vramctl run', 'game', dbus.UInt32(1000), dbus.UInt32(4242),
                            properties(unit=UNIT, game=dbus.ObjectPath(PATH + '/game/1')))],
                          signature='(ssuua{sv})')

    @dbus.service.method(MANAGER, in_signature='hssa{sv}', out_signature='h')
    def Hold(self, pidfd, who, why, options):
        fd = pidfd.take()
        pid = pid_of(fd)
        os.close(fd)
        self.called('Hold', pid=pid, who=who, why=why, options=len(options))
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        self.holds.append(ours)
        GLib.io_add_watch(ours, GLib.IO_HUP, lambda *a: self.log.append(['HoldClosed', {'pid': pid}]))
        reply = dbus.types.UnixFd(theirs)
        os.close(theirs)
        return reply

    @dbus.service.method(MANAGER, in_signature='hsa{sv}', out_signature='a{st}b')
    def MakeRoom(self, pidfd, size, options):
        self.called('MakeRoom', pid=taken_pid(pidfd), size=size, options=len(options))
        return (amounts(card0=512) if size else amounts()), True

    @dbus.service.method(MANAGER, in_signature='a{sv}', sender_keyword='sender')
    def ReportFocus(self, report, sender=None):
        values = {}
        for key, value in report.items():
            if isinstance(value, dbus.types.UnixFd):
                values[key] = taken_pid(value)
            elif key == 'running':
                values[key] = [taken_pid(v) for v in value]
            else:
                values[key] = bool(value) if isinstance(value, dbus.Boolean) else value
        self.called('ReportFocus', sender=sender, **values)

    @dbus.service.method(MANAGER)
    def Withdraw(self):
        self.called('Withdraw')

    @dbus.service.method(MANAGER)
    def Reload(self):
        self.called('Reload')

    @dbus.service.method(MANAGER, out_signature='h')
    def DumpByFileDescriptor(self):
        self.called('DumpByFileDescriptor')
        out, ours = os.pipe2(os.O_CLOEXEC)
        os.write(ours, b'state: protecting\nname: a\x1b[2Jb\n')
        os.close(ours)
        reply = dbus.types.UnixFd(out)
        os.close(out)
        return reply

    @dbus.service.method(MOCK)
    def Ease(self):
        GAMES[PATH + '/game/1']['Eased'] = amounts(card0=6000)
        self.eased_usec = 1340000

    # One call sends all that can be sent.
    @dbus.service.method(MOCK)
    def Emit(self):
        game = dbus.ObjectPath(PATH + '/game/1')
        self.FocusChanged(game, 'closed', 'gamescope', 'its window has the focus')
        self.Protected(game, UNIT, amounts(card0=7680), 'it came to the front')
        self.Contested(UNIT, CARD0, 'dmem.low', 7680 * MIB, 0, 'written by a program of the user')
        self.Evicted(game, CARD0, 64 * MIB, 'gamescope-session.service', 'others needed room')
        self.Eased(game, CARD0, 128 * MIB, 'its use fell at once')
        self.Restored(game, CARD0, 7680 * MIB, 'Easing= is over')
        self.Released(dbus.ObjectPath(PATH + '/game/2'), 'app-x\\x2dy.scope', 'it\x1b[2J\nended')
        self.FocusChanged(dbus.ObjectPath('/'), 'unknown', '', 'nobody has the focus')

    @dbus.service.signal(MANAGER, signature='osss')
    def FocusChanged(self, game, menu, source, reason):
        pass

    @dbus.service.signal(MANAGER, signature='osa{st}s')
    def Protected(self, game, unit, low, reason):
        pass

    @dbus.service.signal(MANAGER, signature='oss')
    def Released(self, game, unit, reason):
        pass

    @dbus.service.signal(MANAGER, signature='ssstts')
    def Contested(self, unit, region, file, ours, theirs, reason):
        pass

    @dbus.service.signal(MANAGER, signature='ostss')
    def Evicted(self, game, region, lost, by, reason):
        pass

    @dbus.service.signal(MANAGER, signature='osts')
    def Eased(self, game, region, lost, reason):
        pass

    @dbus.service.signal(MANAGER, signature='osts')
    def Restored(self, game, region, low, reason):
        pass


class Systemd(Base):
    def __init__(self, bus):
        super().__init__(bus, '/org/freedesktop/systemd1')

    @dbus.service.method('org.freedesktop.systemd1.Manager')
    def Subscribe(self):
        self.called('Subscribe')

    @dbus.service.method('org.freedesktop.systemd1.Manager', in_signature='ssa(sv)a(sa(sv))',
                         out_signature='o')
    def StartTransientUnit(self, name, mode, props, aux):
        values = dict(props)
        if 'PIDFDs' in values:
            if os.environ.get('MOCK_SYSTEMD') == '252':
                raise dbus.DBusException('Cannot set property PIDFDs, or unknown property.',
                                         name='org.freedesktop.DBus.Error.PropertyReadOnly')
            fds = [fd.take() for fd in values.pop('PIDFDs')]
            pids, how = [pid_of(fd) for fd in fds], 'PIDFDs'
        else:
            pids, how = [int(p) for p in values.pop('PIDs')], 'PIDs'
        with open(f'/proc/{pids[0]}/cmdline', 'rb') as f:
            program = os.path.basename(f.read().split(b'\0')[0].decode())
        self.called('StartTransientUnit', name=name, mode=mode, pids=pids, how=how, program=program,
                    aux=len(aux), **values)
        job = dbus.ObjectPath('/org/freedesktop/systemd1/job/7')
        result = 'failed' if os.environ.get('MOCK_SYSTEMD') == 'failed' else 'done'
        # Another job's end, and ours only later: who does not wait is found out.
        self.JobRemoved(6, dbus.ObjectPath('/org/freedesktop/systemd1/job/6'), 'x.service', 'failed')
        GLib.timeout_add(200, self.finish, job, name, result)
        return job

    def finish(self, job, name, result):
        self.log.append(['JobDone', {}])
        self.JobRemoved(7, job, name, result)
        return False

    @dbus.service.signal('org.freedesktop.systemd1.Manager', signature='uoss')
    def JobRemoved(self, job_id, job, unit, result):
        pass


def main():
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    if sys.argv[1] == 'vramd':
        bus = dbus.SystemBus()
        name = dbus.service.BusName('io.github.vramd1', bus, do_not_queue=True)
        service = Vramd(bus)
    else:
        bus = dbus.SessionBus()
        name = dbus.service.BusName('org.freedesktop.systemd1', bus, do_not_queue=True)
        service = Systemd(bus)
    print('ready', flush=True)
    GLib.MainLoop().run()
    del name, service


if __name__ == '__main__':
    main()
