# SPDX-License-Identifier: MIT
"""What vramd shows on the bus, and that it is what dbus/ and man/ say."""

import os
import pathlib
import re
import signal
import subprocess
import xml.etree.ElementTree as ET

import dbus

from support import (BUS_NAME, BUS_PATH, C1, C2, FAST, FRONT1, FRONT2, MANAGER, MIB, OBJECT_MANAGER, PROPERTIES, R1, R2,
                     Case, main, pidfds, wait_for)

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
GAME, REGION = BUS_NAME + '.Game', BUS_NAME + '.Region'


def describe(interface):
    """An interface element as a set of lines: everything that callers can depend on."""
    lines = set()
    for member in interface:
        if member.tag == 'annotation':
            lines.add(f'annotation {member.get("name")}={member.get("value")}')
            continue
        line = f'{member.tag} {member.get("name")} {member.get("type", "")} {member.get("access", "")}'
        for arg in member.findall('arg'):
            direction = arg.get('direction') or ('out' if member.tag == 'signal' else 'in')
            line += f' {direction}:{arg.get("type")}:{arg.get("name")}'
        for note in member.findall('annotation'):
            line += f' {note.get("name")}={note.get("value")}'
        lines.add(line)
    return lines


class Introspection(Case):
    def live(self, path):
        text = self.bus.get_object(BUS_NAME, path).Introspect(dbus_interface='org.freedesktop.DBus.Introspectable')
        return {i.get('name'): i for i in ET.fromstring(text).findall('interface')}

    def test_live_equals_committed(self):
        self.game()
        listed = wait_for(lambda: self.manager().ListGames(), 'game')
        committed = ET.parse(SOURCE / 'dbus/io.github.vramd1.xml').getroot().findall('interface')
        region = next(p for p in self.objects() if '/region/' in p)
        for interface, path in zip(committed, (BUS_PATH, BUS_PATH, listed[0][0], region), strict=True):
            name = interface.get('name')
            with self.subTest(name):
                self.assertEqual(describe(self.live(path)[name]), describe(interface))
        # Nothing of ours that the file does not have.
        ours = {n for path in (BUS_PATH, listed[0][0], region) for n in self.live(path) if n.startswith(BUS_NAME)}
        self.assertEqual(ours, {i.get('name') for i in committed})

    def objects(self):
        return self.bus.get_object(BUS_NAME, BUS_PATH).GetManagedObjects(dbus_interface=OBJECT_MANAGER)

    def test_every_member_is_in_the_man_page(self):
        page = (SOURCE / 'man/io.github.vramd1.5.scd').read_text()
        sections = dict(re.findall(r'^# INTERFACE (\S+)\n(.*?)(?=^# |\Z)', page, re.S | re.M))
        for interface in ET.parse(SOURCE / 'dbus/io.github.vramd1.xml').getroot().findall('interface'):
            text = sections[interface.get('name')]
            for member in interface:
                self.assertRegex(text, rf'\*{member.get("name")}\*', interface.get('name'))
                for arg in member.findall('arg'):
                    if member.tag == 'signal' or arg.get('direction') == 'in':
                        self.assertRegex(text, rf'_{arg.get("name")}_', f'argument of {member.get("name")}')
                if member.tag == 'property':
                    self.assertRegex(text, rf'\*{member.get("name")}\* {re.escape(member.get("type"))}')

    def test_errors_are_in_the_man_page(self):
        page = (SOURCE / 'man/io.github.vramd1.5.scd').read_text()
        header = (SOURCE / 'common/bus-names.h').read_text()
        bus_c = ''.join(p.read_text() for p in (SOURCE / 'daemon').glob('bus*.c'))
        for macro, name in re.findall(r'#define (VRAMD_ERROR_\w+) VRAMD_BUS_NAME "\.(\w+)"', header):
            if macro in bus_c:
                self.assertIn(f'_{BUS_NAME}.{name}_', page)


class Content(Case):
    def test_list_games(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.charge(game, 700 * MIB)
        (path, appid, unit, front, details), = self.manager().ListGames()
        self.assertEqual((appid, unit, front), (1091500, 'app-steam-app1091500-4242.scope', True))
        self.assertEqual(path, self.get('ForegroundGame'))
        self.assertEqual(details['name'], 'Game.exe')
        self.assertEqual(details['uid'], 1000)
        self.assertEqual(details['mark'], 'scope')
        self.assertEqual(details['role'], 'front')
        self.assertEqual(details['control-group'], game.group)
        self.assertEqual(dict(details['low']), {R1: FRONT1, R2: FRONT2})
        self.assertEqual(dict(details['min']), {})
        self.assertEqual(details['current'][R1], 700 * MIB)
        self.assertEqual(set(details), {'name', 'uid', 'mark', 'role', 'control-group', 'low', 'min', 'current',
                                        'eased', 'eased-usec', 'spilled'})
        source.report(None)
        wait_for(lambda: self.manager().ListGames()[0][4]['role'] == 'background', 'role')

    def test_game_object(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        path = self.get('ForegroundGame')
        self.charge(game, 5 * MIB)
        want = {'AppID': 1091500, 'Name': 'Game.exe', 'Unit': os.path.basename(game.group), 'User': 1000,
                'ControlGroup': game.group, 'Foreground': True, 'Low': {R1: FRONT1, R2: FRONT2}, 'Min': {},
                'Eased': {}, 'Evicted': {}, 'Evictions': {}}
        for name, value in want.items():
            self.assertEqual(self.game_property(path, name), value, name)
        self.assertEqual(self.game_property(path, 'Current')[R1], 5 * MIB)
        self.assertEqual(self.game_property(path, 'Peak')[R1], 5 * MIB)
        for gone in ('/io/github/vramd1/game/999', '/io/github/vramd1/game/x', '/io/github/vramd1/game'):
            with self.assertRaisesRegex(dbus.DBusException, 'Unknown'):
                self.game_property(gone, 'Name')

    def test_region_objects(self):
        game = self.game()
        self.source().report(game)
        self.wait_low(game, FRONT1)
        self.charge(game, 64 * MIB)
        regions = {str(v[REGION]['Name']): (p, v[REGION]) for p, v in Introspection.objects(self).items()
                   if REGION in v}
        self.assertEqual(set(regions), {R1, R2})
        path, values = regions[R1]
        self.assertEqual(values['CapacityBytes'], C1)
        self.assertEqual(regions[R2][1]['CapacityBytes'], C2)
        self.assertEqual(values['PCI'], '0000:03:00.0')
        self.assertEqual(values['Integrated'], False)
        get = self.bus.get_object(BUS_NAME, path)
        self.assertEqual(get.Get(REGION, 'Current', dbus_interface=PROPERTIES), 64 * MIB)
        self.assertEqual(get.Get(REGION, 'Protected', dbus_interface=PROPERTIES), FRONT1)

    def test_manager_properties(self):
        self.assertRegex(self.get('Version'), r'^\d+\.\d+')
        self.assertEqual(self.get('State'), 'idle')
        self.assertEqual(self.get('Reason'), 'no game is in front')
        self.assertEqual(self.get('ForegroundGame'), '/')
        self.assertEqual(self.get('Menu'), 'unknown')
        self.assertEqual(self.get('FocusSource'), '')
        self.assertIn('dmem', self.get('Abilities'))
        manager = self.bus.get_object(BUS_NAME, BUS_PATH)
        self.refuses('PropertyReadOnly', lambda: manager.Set(MANAGER, 'State', 'idle', dbus_interface=PROPERTIES))
        self.refuses('UnknownProperty', lambda: self.get('Nothing'))
        self.refuses('UnknownMethod', lambda: manager.Nothing(dbus_interface=MANAGER))

    def test_dump(self):
        game, source = self.game(), self.source()
        source.report(game, compositor=self.compositor(), menu='open')
        self.wait_low(game, FRONT1)
        fd = self.manager().DumpByFileDescriptor().take()
        with open(fd, encoding='utf-8') as f:
            text = f.read()
        for part in ('State: protecting', R1, R2, '1000: active', 'appid 1091500', game.group, 'gamescope from :',
                     'menu open', f'{game.group} (the game in front)', 'dmem.low', '[policy]', 'debounce', 'Holds:'):
            self.assertIn(part.lower(), text.lower())

    def test_no_argument_methods_take_none(self):
        obj = self.bus.get_object(BUS_NAME, BUS_PATH, introspect=False)
        for method in ('ListGames', 'ListHolds', 'Reload', 'DumpByFileDescriptor'):
            self.refuses('InvalidArgs',
                         lambda m=method: obj.get_dbus_method(m, MANAGER)(1, signature='i'))

    def test_every_user_may_read(self):
        manager = self.manager(self.connect(1000))
        self.assertEqual(manager.ListGames(), [])
        self.assertEqual(manager.ListHolds(), [])
        os.close(manager.DumpByFileDescriptor().take())


class Signals(Case):
    def test_a_game_that_nobody_names_any_more(self):
        listener = self.listen()
        game, source = self.box.process(self.box.unit('plain.scope')), self.source()
        source.report(game)
        listener.wait('Protected')
        source.report(None)
        self.assertEqual(listener.wait('Released')[1:], ('plain.scope', 'nobody calls it a game any more'))
        self.wait_low(game, 0)

    def test_a_games_life(self):
        listener = self.listen()
        game, source = self.box.process(self.box.unit('plain.scope'), comm='play'), self.source()
        source.report(game)
        path, interfaces = listener.wait('InterfacesAdded', lambda p, i: GAME in i)
        self.assertEqual(interfaces[GAME]['Unit'], 'plain.scope')
        self.assertEqual(listener.wait('FocusChanged')[:3], (path, 'closed', 'gamescope'))
        protected = listener.wait('Protected')
        self.assertEqual(protected[:2], (path, 'plain.scope'))
        self.assertEqual(dict(protected[2]), {R1: FRONT1, R2: FRONT2})
        self.assertTrue(protected[3])
        wait_for(lambda: listener.changed(MANAGER).get('State') == 'protecting', 'State')
        changed = listener.changed(MANAGER)
        self.assertEqual(changed['ForegroundGame'], path)
        self.assertEqual(changed['FocusSource'], 'gamescope')
        self.assertIn('in front', changed['Reason'])
        self.assertTrue(listener.changed(GAME)['Foreground'])
        self.assertEqual(listener.changed(GAME)['Low'][R1], FRONT1)

        listener.clear()
        source.report(game, menu='open')
        self.assertEqual(listener.wait('FocusChanged')[:3], (path, 'open', 'gamescope'))
        wait_for(lambda: listener.changed(MANAGER).get('Menu') == 'open', 'Menu')

        self.charge(game, 100 * MIB)
        listener.clear()
        source.report(None, running=pidfds(game))
        listener.wait('FocusChanged', lambda g, *_: g == '/')
        wait_for(lambda: listener.changed(GAME).get('Foreground') == False, 'Foreground')  # noqa: E712
        self.assertEqual(listener.changed(MANAGER)['ForegroundGame'], '/')

        listener.clear()
        game.kill()
        self.assertEqual(listener.wait('InterfacesRemoved')[:2], (path, [GAME]))
        self.assertEqual(listener.wait('Released'), (path, 'plain.scope', 'the game ended'))
        wait_for(lambda: listener.changed(MANAGER).get('State') == 'idle', 'State')

    def test_nothing_new_is_no_signal(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.settle()
        listener = self.listen()
        listener.clear()
        for _ in range(10):
            source.report(game)
        self.settle()
        listener.all('')
        self.assertEqual(listener.signals, [])

    def test_state_of_switched_off(self):
        listener = self.listen()
        self.reload(FAST + 'Enabled=no\n')
        wait_for(lambda: listener.changed(MANAGER).get('State') == 'paused', 'State')
        self.assertIn('Enabled=no', listener.changed(MANAGER)['Reason'])


class LogControl(Case):
    PATH = '/org/freedesktop/LogControl1'
    IFACE = 'org.freedesktop.LogControl1'

    def busctl(self, *args, uid=0):
        return subprocess.run(['busctl', f'--address={self.box.address}', *args], user=uid, capture_output=True,
                              text=True, check=False)

    def test_level(self):
        obj = self.bus.get_object(BUS_NAME, self.PATH)

        def get(name):
            return obj.Get(self.IFACE, name, dbus_interface=PROPERTIES)
        self.assertEqual(get('LogLevel'), 'debug')
        self.assertEqual(get('LogTarget'), 'console')
        self.assertEqual(get('SyslogIdentifier'), 'vramd')
        obj.Set(self.IFACE, 'LogLevel', 'err', dbus_interface=PROPERTIES)
        self.assertEqual(get('LogLevel'), 'err')
        before = self.log()
        game = self.game()
        self.source().report(game)
        self.wait_low(game, FRONT1)
        self.assertEqual(before, self.log())
        self.refuses('InvalidArgs', lambda: obj.Set(self.IFACE, 'LogLevel', 'loud', dbus_interface=PROPERTIES))
        self.refuses('NotSupported', lambda: obj.Set(self.IFACE, 'LogTarget', 'kmsg', dbus_interface=PROPERTIES))

    def test_only_root_sets_it(self):
        args = ('set-property', BUS_NAME, self.PATH, self.IFACE, 'LogLevel', 's', 'err')
        result = self.busctl(*args, uid=1000)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, 'Access denied|not permitted|AccessDenied')
        self.assertIn('"debug"', self.busctl('get-property', BUS_NAME, self.PATH, self.IFACE, 'LogLevel').stdout)
        self.assertEqual(self.busctl(*args).returncode, 0)


class Reload(Case):
    BAD = FAST + 'Nonsense=1\n[game 1]\nLow=much\n'

    def test_1_bad_lines_are_named(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.conf(self.BAD + '[game 1091500]\nLow=2G\n')
        file = str(self.box.root / 'etc/vramd/vramd.conf')
        with self.assertRaises(dbus.DBusException) as caught:
            self.manager().Reload()
        self.assertEqual(caught.exception.get_dbus_name(), BUS_NAME + '.InvalidConfiguration')
        text = caught.exception.get_dbus_message()
        for part in (f'{file}:4: ', 'Nonsense', f'{file}:6: ', 'Low'):
            self.assertIn(part, text)
            self.assertIn(part, self.log())
        # The rest counts.
        self.wait_low(game, 2 << 30)

    def test_1_sighup_says_it_in_the_log(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.conf(self.BAD + '[game 1091500]\nLow=2G\n')
        self.box.daemon.send_signal(signal.SIGHUP)
        self.wait_low(game, 2 << 30)
        file = str(self.box.root / 'etc/vramd/vramd.conf')
        self.assertIn(f'{file}:4: ', self.log())
        self.assertIn(f'{file}:6: ', self.log())

    def test_1_a_broken_file_takes_nothing_away(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        file = self.box.root / 'etc/vramd/vramd.conf'
        broken = [b'\xff\xfe\x00\x01' * 64, b'[policy\nEnabled=no', b'x' * 5000, b'\0' * 100, b'[' * 300,
                  b'Enabled=no\n', b'[policy]\nEnabled=perhaps\n']
        for content in broken:
            file.write_bytes(content)
            self.refuses('InvalidConfiguration', self.manager().Reload)
            self.settle()
            self.assertEqual(self.low(game), FRONT1, content[:20])
        file.unlink()
        file.mkdir()
        self.refuses('InvalidConfiguration', self.manager().Reload)
        self.settle()
        self.assertEqual(self.low(game), FRONT1)
        file.rmdir()
        # No file at all is a configuration: the built-in one.
        self.manager().Reload()
        self.settle()
        self.assertEqual(self.low(game), FRONT1)

    def test_1_drop_ins(self):
        game, source = self.game(), self.source()
        source.report(game)
        # By the name of the file, whatever folder it is in; /etc hides a file of the same name elsewhere.
        for folder, name, low, counts in (('usr/lib', '10-a.conf', 1, 1), ('run', '20-b.conf', 2, 2),
                                          ('etc', '15-c.conf', 3, 2), ('etc', '20-b.conf', 4, 4)):
            path = self.box.root / folder / 'vramd/vramd.conf.d' / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'[game 1091500]\nLow={low}G\n')
            self.manager().Reload()
            self.wait_low(game, counts << 30)

    def test_2_who_may(self):
        reload = self.manager(self.connect(1000)).Reload
        self.refuses('NotPermitted', reload, text='reload')
        self.polkit_allows('set-focus', 'hold')
        self.refuses('NotPermitted', reload, text='reload')
        self.polkit_allows('reload')
        reload()
        self.conf('[policy]\nx=1\n')
        self.refuses('InvalidConfiguration', reload, text='vramd.conf:2')


if __name__ == '__main__':
    main()
