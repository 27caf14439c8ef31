# SPDX-License-Identifier: MIT
"""vramd asks systemd, which is a mock here, for an agent where a user has none."""

import subprocess
import time

import dbus
import dbusmock

from support import FAST, Case, Source, main, wait_for

UNIT = 'vramd-agent@1000.service'
UNIT_PATH = '/org/freedesktop/systemd1/unit/vramd_2dagent_401000_2eservice'
SYSTEMD = 'org.freedesktop.systemd1'
JOB = 'ret = dbus.ObjectPath("/org/freedesktop/systemd1/job/7")'
REFUSED = 'raise dbus.exceptions.DBusException("no such unit", name="org.freedesktop.systemd1.NoSuchUnit")'
DELAY = 5  # s, as vramd.conf(5) says


class Worker(Case):
    config = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        server = dbusmock.DBusTestCase.spawn_server(SYSTEMD, '/org/freedesktop/systemd1', SYSTEMD + '.Manager',
                                                    system_bus=True, stdout=subprocess.DEVNULL)
        cls.box.children.append(server)
        bus = cls.box.connect()
        wait_for(lambda: bus.name_has_owner(SYSTEMD), 'the mock of systemd')
        cls.systemd = dbus.Interface(bus.get_object(SYSTEMD, '/org/freedesktop/systemd1'), dbusmock.MOCK_IFACE)
        cls.systemd.AddMethod('', 'Subscribe', '', '', '')
        cls.systemd.AddObject(UNIT_PATH, SYSTEMD + '.Unit', dbus.Dictionary(signature='sv'),
                              dbus.Array(signature='(ssss)'))
        cls.unit = dbus.Interface(bus.get_object(SYSTEMD, UNIT_PATH), dbusmock.MOCK_IFACE)

    def begin(self, config=FAST, start=JOB):
        self.systemd.AddMethod('', 'StartUnit', 'ss', 'o', start)
        self.systemd.AddMethod('', 'StopUnit', 'ss', 'o', JOB)
        self.systemd.ClearCalls()
        self.start(config=config)

    def calls(self, method):
        return [tuple(map(str, args)) for _, name, args in self.systemd.GetCalls() if name == method]

    def wait_calls(self, method, n):
        wait_for(lambda: len(self.calls(method)) == n, f'{n} calls of {method}', timeout=4 * DELAY)
        self.assertEqual(set(self.calls(method)), {(UNIT, 'replace')})

    def emit_state(self, state):
        self.unit.EmitSignal('org.freedesktop.DBus.Properties', 'PropertiesChanged', 'sa{sv}as', [
            SYSTEMD + '.Unit', {'SubState': 'x', 'ActiveState': state}, dbus.Array([], signature='s')])

    def test_started_and_stopped(self):
        began = time.monotonic()
        self.begin()
        self.wait_calls('StartUnit', 1)
        self.assertGreater(time.monotonic() - began, DELAY - 1)
        self.assertEqual(self.calls('StopUnit'), [])
        group = self.box.unit('vramd-agent.service', slice_='session.slice')
        self.wait_calls('StopUnit', 1)
        self.box.rmdir(group)
        self.wait_calls('StartUnit', 2)
        game = self.box.process(self.box.unit('app-steam-app10-1.scope'))
        source = Source(self.box, 'x11', 1000)
        self.open.append(source)
        source.report(game=game)
        self.wait_calls('StopUnit', 2)
        self.box.set_user(1000, None)
        time.sleep(1)
        self.assertEqual((len(self.calls('StartUnit')), len(self.calls('StopUnit'))), (2, 2))

    def test_no_service_manager(self):
        """To start a worker would start it, whoever has stopped it."""
        self.box.set_user(1002, 'active')
        self.begin()
        time.sleep(DELAY + 2)
        self.assertEqual({name for name, _ in self.calls('StartUnit')}, {UNIT})

    def test_not_wanted(self):
        """Switched off; not to be protected; not at a seat."""
        for config, state in ((FAST + '[focus]\nWorker=no\n', 'active'), (FAST + '[user]\nDeny=1000\n', 'active'),
                              (FAST + '[policy]\nEnabled=no\n', 'active'), (FAST, 'online')):
            with self.subTest(config=config, state=state):
                self.box.set_user(1000, state)
                self.begin(config)
                time.sleep(DELAY + 2)
                self.assertEqual(self.calls('StartUnit'), [])
                self.box.stop()

    def test_logged_out(self):
        self.begin()
        self.wait_calls('StartUnit', 1)
        self.box.set_user(1000, None)
        self.wait_calls('StopUnit', 1)

    def test_not_allowed(self):
        self.begin(start=REFUSED.replace('no such unit', 'no').replace('org.freedesktop.systemd1.NoSuchUnit',
                                                                       'org.freedesktop.DBus.Error.AccessDenied'))
        self.wait_calls('StartUnit', 1)
        wait_for(lambda: f"<4>Cannot start '{UNIT}': no" in self.log(), 'the line')

    def test_one_that_ends(self):
        """Whatever systemd does about it, there is to be one again; not as long as systemd itself sees to it."""
        self.begin()
        self.wait_calls('StartUnit', 1)
        for state, calls in (('activating', 1), ('inactive', 2)):
            self.emit_state(state)
            time.sleep(2 * DELAY + 3 if calls == 1 else 0)
            self.wait_calls('StartUnit', calls)
        # Stopped for another agent: that it ends is what was asked for.
        self.box.unit('vramd-agent.service', slice_='session.slice')
        self.wait_calls('StopUnit', 1)
        self.emit_state('failed')
        time.sleep(4 * DELAY + 3)
        self.assertEqual(len(self.calls('StartUnit')), 2)

    def test_refused(self):
        """Not installed: nothing to complain about, and no more than a try for each change, each after a longer time."""
        self.begin(start=REFUSED)
        self.wait_calls('StartUnit', 1)
        wait_for(lambda: f"'{UNIT}' is not installed: no such unit" in self.log(), 'the line')
        for n in range(3):
            self.box.unit(f'app-steam-app{20 + n}-1.scope')
            time.sleep(1)
        self.assertEqual(len(self.calls('StartUnit')), 1)
        self.wait_calls('StartUnit', 2)
        self.assertEqual(self.log().count(f"'{UNIT}' is not installed"), 2)  # both only with --verbose
        self.assertEqual(self.calls('StopUnit'), [])


if __name__ == '__main__':
    main()
