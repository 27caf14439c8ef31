# SPDX-License-Identifier: MIT
"""ReportFocus and Withdraw: what is refused, who is believed, and for how long."""

import os
import subprocess
import sys
import textwrap
import time

import dbus

from support import BUS_NAME, BUS_PATH, FAST, FRONT1, MANAGER, MIB, R1, USER, Case, error_of, main, pidfds, wait_for

FD = dbus.types.UnixFd


class Types(Case):
    def report(self, signature='sv', **keys):
        self.manager(self.caller).ReportFocus(dbus.Dictionary(keys, signature=signature))

    def setUp(self):
        super().setUp()
        self.caller = self.connect(1000)

    def test_wrong_signatures(self):
        obj = self.caller.get_object(BUS_NAME, BUS_PATH, introspect=False)
        for args, signature in (((), ''), (('x',), 's'), (({'source': 'x'},), 'a{ss}'), ((1,), 'u'),
                                (({'source': 'x'}, 1), 'a{sv}u'), (([],), 'aa{sv}')):
            with self.subTest(signature):
                self.refuses('InvalidArgs', lambda: obj.ReportFocus(
                    *args, dbus_interface=MANAGER, signature=signature))

    def test_wrong_types_of_keys(self):
        fd = FD(0)
        wrong = {
            'source': [1, fd, dbus.Array(['x'], signature='s'), dbus.ObjectPath('/x'), True],
            'seq': ['1', dbus.UInt32(1), dbus.Int64(1), 1.0],
            'game': ['x', dbus.UInt32(1), dbus.Int32(1), dbus.Array([], signature='h')],
            'appid': ['x', dbus.Int32(1), dbus.UInt64(1)],
            'menu': [True, dbus.UInt32(1), dbus.Array([], signature='s')],
            'compositor': ['x', dbus.Int32(1)],
            'running': ['x', fd, dbus.Array([], signature='i'), dbus.Array([], signature='s')],
            'persist': ['yes', dbus.UInt32(1)],
            'window': ['yes', dbus.UInt32(1)],
        }
        for key, values in wrong.items():
            for value in values:
                with self.subTest(key=key, value=value):
                    self.refuses('InvalidArgs', lambda: self.report(**{'source': 'x', key: value}), text=f"'{key}'")

    def test_missing_and_bad_values(self):
        game = self.game()
        pidfd = game.pidfd()
        self.addCleanup(os.close, pidfd)
        self.refuses('InvalidArgs', lambda: self.report(menu='closed'), text="'source' is missing")
        self.refuses('InvalidArgs', lambda: self.report(source='x', menu='ajar'), text="'menu'")
        self.refuses('InvalidArgs', lambda: self.report(source=''), text="'source'")
        self.refuses('InvalidArgs', lambda: self.report(source='x', persist=True), text="'game'")
        self.refuses('InvalidArgs', lambda: self.report(source='é' * 128), text='255')
        for bad in ('a\nb', 'a\tb', '\x1b[31m', '\x7f', 'x\r'):
            self.refuses('InvalidArgs', lambda: self.report(source=bad), text='control')
        self.report(source='x' * 255, game=FD(pidfd))
        self.settle()
        self.assertEqual(self.get('FocusSource'), 'x' * 255)

    def test_unknown_keys_are_ignored(self):
        game = self.game()
        self.report(source='gamescope', game=pidfds(game)[0], later=dbus.Array([1.5], signature='d'),
                    nested=dbus.Dictionary({'a': dbus.Struct((1, FD(0)))}, signature='sv'))
        self.wait_low(game, FRONT1)
        self.assertEqual(self.get('FocusSource'), 'gamescope')

    def test_a_key_twice(self):
        # dbus-python cannot say a key twice, busctl can.
        for key, value in (('running', 'ah 0'), ('source', 's x')):
            result = subprocess.run(['busctl', f'--address={self.box.address}', 'call', BUS_NAME,
                                     '/io/github/vramd1', MANAGER, 'ReportFocus', 'a{sv}', '3',
                                     'source', 's', 'twice', key, *value.split(), key, *value.split()],
                                    capture_output=True, text=True, check=False)
            if key == 'source':
                self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIsNone(self.box.daemon.poll())

    def test_dead_and_false_pidfds(self):
        game = self.game()
        pidfd = game.pidfd()
        game.kill()
        self.addCleanup(os.close, pidfd)
        r, w = os.pipe()
        self.addCleanup(os.close, r)
        self.addCleanup(os.close, w)
        null = os.open('/dev/null', os.O_RDONLY)
        self.addCleanup(os.close, null)
        for key in ('game', 'compositor'):
            self.refuses('NoSuchProcess', lambda: self.report(source='x', **{key: FD(pidfd)}), text=key)
            for fd in (r, w, null):
                self.refuses('InvalidArgs', lambda: self.report(source='x', **{key: FD(fd)}), text='not a pidfd')
        # In a list, one that has ended meanwhile is nothing wrong.
        self.report(source='x', running=dbus.Array([FD(pidfd)], signature='h'))
        self.refuses('InvalidArgs', lambda: self.report(source='x', running=dbus.Array([FD(r)], signature='h')))

    def test_process_in_no_unit(self):
        self.box.mkdir('/odd')
        for group in ('/', '/init.scope', USER.format(uid=1000) + '/init.scope', '/odd'):
            process = self.box.process(group)
            with self.subTest(group):
                self.refuses('NoUnit', lambda: self.report(source='x', game=pidfds(process)[0]), text='game')
        # Among those that are only running it is left out.
        self.report(source='x', running=pidfds(process))
        self.assertEqual(self.manager().ListGames(), [])

    def test_more_than_64_running(self):
        process = self.game()
        self.refuses('LimitsExceeded', lambda: self.report(source='x', running=pidfds(*[process] * 65)), text='64')
        self.report(source='x', running=pidfds(*[process] * 64))
        self.assertEqual(len(self.manager().ListGames()), 1)

    def test_sixteen_sources(self):
        sources = [self.source(f'source-{i}') for i in range(17)]
        for source in sources[:16]:
            source.report(None)
        self.refuses('LimitsExceeded', lambda: sources[16].report(None))
        sources[0].manager.Withdraw()
        sources[16].report(None)

    def test_withdraw_takes_no_arguments(self):
        obj = self.caller.get_object(BUS_NAME, BUS_PATH, introspect=False)
        self.refuses('InvalidArgs', lambda: obj.Withdraw('x', dbus_interface=MANAGER, signature='s'))
        self.manager(self.caller).Withdraw()


class Trust(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box.add_user_tree(1001)

    def test_1_without_polkit(self):
        game = self.game()
        other = self.source(uid=1001)
        self.refuses('NotPermitted', lambda: other.report(game), text='set-focus')
        self.refuses('NotPermitted', lambda: other.report(None, compositor=game), text='set-focus')
        self.refuses('NotPermitted', lambda: other.report(None, running=pidfds(game)), text='set-focus')
        other.report(None)
        self.source(uid=1000).report(game)
        self.wait_low(game, FRONT1)
        self.source(uid=0).report(game, menu='open')
        wait_for(lambda: self.get('Menu') == 'open', 'word of root')

    def test_2_with_polkit(self):
        self.polkit_allows()
        game = self.game(pid=1)
        self.game(20, pid=2)
        other = self.source(uid=1001)
        self.refuses('NotPermitted', lambda: other.report(game), text='set-focus')
        self.assertEqual(self.low(game), 0)
        self.polkit_allows('set-focus')
        other.report(game)
        self.wait_low(game, FRONT1)
        # Once for a connection: what polkit would say now is not asked.
        self.polkit_allows()
        other.report(game, menu='open')
        wait_for(lambda: self.get('Menu') == 'open', 'second report')
        self.refuses('NotPermitted', lambda: self.source(uid=1001).report(game))
        # A yes counts until the sessions change.
        self.box.set_user(1001, 'online')
        self.settle()
        wait_for(lambda: self.is_refused(other, game), 'permission forgotten')

    def is_refused(self, source, game):
        try:
            source.report(game)
            return False
        except dbus.DBusException as e:
            return e.get_dbus_name() == error_of('NotPermitted')

    def test_2_a_unit_of_another_user(self):
        """A process of the caller in a unit of another user's slice is not the caller's to name."""
        self.polkit_allows()
        group = self.box.unit('app-steam-app10-1.scope')
        process = self.box.process(group, uid=1001)
        self.refuses('NotPermitted', lambda: self.source(uid=1001).report(process))
        self.refuses('NotPermitted', lambda: self.source(uid=1000).report(process))

    def test_2_polkit_that_does_not_answer_stops_nobody(self):
        self.polkit_allows('set-focus')
        type(self).polkit.SimulateHang(True)
        try:
            game = self.game()
            other = self.connect(1001)
            report = dbus.Dictionary({'source': 'x', 'game': pidfds(game)[0]}, signature='sv')
            obj = other.get_object(BUS_NAME, BUS_PATH, introspect=False)
            obj.ReportFocus(report, dbus_interface=MANAGER, signature='a{sv}', ignore_reply=True)
            other.flush()
            wait_for(lambda: type(self).polkit.HaveHangingCalls(), 'question')
            self.source().report(game)
            self.wait_low(game, FRONT1)
            other.close()
        finally:
            type(self).polkit.SimulateHang(False)
            type(self).polkit.ReleaseHangingCalls()
        self.settle()


class Lives(Case):
    def setUp(self):
        super().setUp()
        self.steam_game = self.box.process(self.box.unit('plain.scope'))

    def test_client_exit_then_grace_then_release(self):
        game, source = self.steam_game, self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        source.close()
        begin = time.monotonic()
        self.settle()
        self.assertEqual(self.low(game), FRONT1)
        self.wait_low(game, 0)
        took = time.monotonic() - begin
        self.assertGreater(took, 0.2)
        self.assertEqual(self.get('ForegroundGame'), '/')

    def test_killed_client(self):
        """A process of its own that dies without a word."""
        code = textwrap.dedent('''
            import os, sys
            sys.path.insert(0, sys.argv[1])
            import dbus
            os.setgid(1000); os.setuid(1000)
            bus = dbus.bus.BusConnection(sys.argv[2])
            manager = dbus.Interface(bus.get_object('io.github.vramd1', '/io/github/vramd1'),
                                     'io.github.vramd1.Manager')
            fd = dbus.types.UnixFd(os.pidfd_open(int(sys.argv[3])))
            manager.ReportFocus(dbus.Dictionary({'source': 'killed', 'game': fd}, signature='sv'))
            print('reported', flush=True)
            sys.stdin.read()
            ''')
        game = self.steam_game
        client = subprocess.Popen([sys.executable, '-c', code, '', self.box.address, str(game.pid)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(client.stdout.readline(), b'reported\n')
        self.wait_low(game, FRONT1)
        client.kill()
        client.communicate()
        self.wait_low(game, 0)

    def test_a_source_that_comes_back_within_grace(self):
        self.reload('[policy]\nDebounce=30ms\nGrace=20s\n')
        game, source = self.steam_game, self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        source.close()
        again = self.source()
        again.report(None)
        # Its old word has no grace any more.
        self.wait_low(game, 0, timeout=2)

    def test_debounce(self):
        self.reload('[policy]\nDebounce=400ms\nGrace=300ms\n')
        game, source, listener = self.steam_game, self.source(), self.listen()
        source.report(game)
        self.wait_low(game, FRONT1)
        listener.clear()
        source.report(None)
        self.settle()
        self.assertEqual(self.low(game), FRONT1)
        source.report(game)
        time.sleep(0.5)
        self.settle()
        self.assertEqual(self.low(game), FRONT1)
        self.assertEqual(listener.all('Released'), [])
        source.report(None)
        self.wait_low(game, 0)

    def test_a_game_that_ends_has_no_debounce(self):
        self.reload('[policy]\nDebounce=60s\n')
        game, source = self.steam_game, self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        game.kill()
        self.wait_low(game, 0, timeout=2)

    def test_the_same_process_again_after_nobody(self):
        game, source = self.steam_game, self.source()
        for _ in range(3):
            source.report(game)
            self.wait_low(game, FRONT1)
            self.assertNotEqual(self.get('ForegroundGame'), '/')
            source.report(None)
            self.wait_low(game, 0)
            self.assertEqual(self.get('ForegroundGame'), '/')

    def test_ranks(self):
        a, b = self.steam_game, self.box.process(self.box.unit('other.scope'))
        x11, gamescope, kwin = self.source('x11'), self.source('gamescope'), self.source('kwin')
        x11.report(a)
        self.wait_low(a, FRONT1)
        gamescope.report(b)
        self.wait_low(b, FRONT1)
        self.wait_low(a, 0)
        kwin.report(a)
        x11.report(a, menu='open')
        self.settle()
        self.assertEqual(self.low(b), FRONT1)
        self.assertEqual(self.get('FocusSource'), 'gamescope')
        gamescope.manager.Withdraw()
        self.wait_low(a, FRONT1)
        wait_for(lambda: self.get('FocusSource') == 'kwin', 'next in rank')
        manual = self.source('manual')
        manual.report(b)
        self.wait_low(b, FRONT1)
        self.assertEqual(self.get('FocusSource'), 'manual')

    def test_a_game_that_only_a_loser_names(self):
        """It runs in the background, as long as somebody says so."""
        other = self.box.process(self.box.unit('other.scope'))
        gamescope, x11 = self.source('gamescope'), self.source('x11')
        gamescope.report(self.steam_game)
        self.wait_low(self.steam_game, FRONT1)
        self.charge(other, 64 * MIB)
        x11.report(other)
        wait_for(lambda: self.low(other) > 0, 'its share')
        x11.manager.Withdraw()
        self.wait_low(other, 0)
        self.assertEqual(self.low(self.steam_game), FRONT1)

    def test_windows(self):
        """Whoever's window has the focus is in front only if it is a game's: by its marks, the configuration, or
        because somebody said so."""
        browser = self.box.process(self.box.unit('browser.scope'), comm='browser', argv=('/usr/bin/browser',))
        marked = self.box.process(self.box.unit('heroic.scope'), comm='game', environ={'HEROIC_APP_NAME': 'x'})
        kwin = self.source('kwin')
        for p in (self.game(), marked):
            kwin.report(p, window=True)
            self.wait_low(p, FRONT1)
            kwin.report(browser, window=True)
            self.wait_low(p, 0)
            self.assertEqual((self.low(browser), self.get('ForegroundGame')), (0, '/'))
        self.reload(FAST + '[game exe=browser]\nLow=50%\n')
        self.wait_low(browser, self.box.regions[R1] // 2)
        self.reload(FAST)
        self.wait_low(browser, 0)
        self.assertEqual(self.get('ForegroundGame'), '/')

    def test_a_game_behind_another_window(self):
        """It keeps its share there, by whatever it is known."""
        browser = self.box.process(self.box.unit('browser.scope'), comm='browser', argv=('/usr/bin/browser',))
        native = self.box.process(self.box.unit('native.scope'), comm='native', argv=('/games/native',))
        proton = self.box.process(self.box.unit('proton.scope'), comm='proton')
        self.reload(FAST + '[game exe=native]\nProtect=yes\n')
        kwin = self.source('kwin')
        for p, keys in ((self.game(), {}), (native, {}), (proton, {'appid': dbus.UInt32(7)})):
            kwin.report(p, window=True, **keys)
            self.wait_low(p, FRONT1)
            self.charge(p, 64 * MIB)
            kwin.report(browser, window=True)
            self.wait_low(p, 32 * MIB)
            self.assertEqual(self.get('ForegroundGame'), '/')

    def test_a_window_that_becomes_a_games(self):
        """A launcher that is another program now; a source that says the same again is heard."""
        p = self.box.process(self.box.unit('launcher.scope'), comm='launcher', argv=('/games/launcher',))
        self.reload(FAST + '[game exe=native]\nProtect=yes\n')
        kwin = self.source('kwin')
        kwin.report(p, window=True)
        self.settle()
        self.assertEqual(self.low(p), 0)
        for name, write in (('exe', lambda f: os.symlink('/games/native', f)),
                            ('cmdline', lambda f: f.write_bytes(b'/games/native\0'))):
            (p.proc / name).unlink()
            write(p.proc / name)
            os.chown(p.proc / name, 1000, 1000, follow_symlinks=False)
        kwin.report(p, window=True)
        self.wait_low(p, FRONT1)

    def test_others_are_heard_while_nobody_is_waited_for(self):
        self.reload('[policy]\nDebounce=20s\n')
        kwin, gamemode = self.source('kwin'), self.source('gamemode')
        kwin.report(self.steam_game)
        self.wait_low(self.steam_game, FRONT1)
        kwin.report(None)
        other = self.box.process(self.box.unit('other.scope'))
        self.charge(other, 64 * MIB)
        gamemode.report(other)
        self.wait_low(other, 32 * MIB)
        self.assertEqual(self.low(self.steam_game), FRONT1)

    def test_a_window_of_what_is_held(self):
        native = self.box.process(self.box.unit('native.scope'), comm='native')
        kwin = self.source('kwin')
        kwin.report(native, window=True)
        self.settle()
        self.assertEqual(self.low(native), 0)
        pidfd = native.pidfd()
        self.addCleanup(os.close, pidfd)
        hold = self.manager(kwin.bus).Hold(FD(pidfd), 'test', 'a game', dbus.Dictionary(signature='sv')).take()
        self.wait_low(native, FRONT1)
        os.close(hold)
        self.wait_low(native, 0)
        gamemode = self.source('gamemode')
        gamemode.report(native)
        self.wait_low(native, FRONT1)
        self.assertEqual(self.get('FocusSource'), 'kwin')

    def test_a_window_without_a_unit(self):
        kwin = self.source('kwin')
        kwin.report(self.box.process('/'), window=True)
        self.assertEqual(self.get('ForegroundGame'), '/')

    def test_of_equals_the_newest(self):
        a, b = self.steam_game, self.box.process(self.box.unit('other.scope'))
        sway, kwin = self.source('sway'), self.source('kwin')
        sway.report(a)
        kwin.report(b)
        self.wait_low(b, FRONT1)
        sway.report(a, menu='open')
        self.wait_low(a, FRONT1)

    def test_seq(self):
        a, b = self.steam_game, self.box.process(self.box.unit('other.scope'))
        source = self.source()
        source.report(a, seq=dbus.UInt64(10))
        self.wait_low(a, FRONT1)
        for old in (9, 10, 1):
            source.report(b, seq=dbus.UInt64(old))
        self.settle()
        self.assertEqual((self.low(a), self.low(b)), (FRONT1, 0))
        source.report(b, seq=dbus.UInt64(11))
        self.wait_low(b, FRONT1)
        # The numbers are of one connection: another one begins anew.
        source.close()
        self.source().report(a, seq=dbus.UInt64(1))
        self.wait_low(a, FRONT1)

    def test_persistent_until_withdrawn(self):
        game, source = self.steam_game, self.source('manual')
        source.report(game, persist=True)
        self.wait_low(game, FRONT1)
        source.close()
        time.sleep(0.4)
        self.settle()
        self.assertEqual(self.low(game), FRONT1)
        self.source('manual').manager.Withdraw()
        self.wait_low(game, 0)

    def test_persistent_until_the_game_ends(self):
        game, source = self.steam_game, self.source('manual')
        source.report(game, persist=True)
        self.wait_low(game, FRONT1)
        source.close()
        game.kill()
        self.wait_low(game, 0)
        wait_for(lambda: not self.manager().ListGames(), 'no game')

    def test_root_withdraws_for_every_user(self):
        game = self.steam_game
        self.source('manual').report(game, persist=True)
        self.wait_low(game, FRONT1)
        self.source('manual', uid=0).manager.Withdraw()
        self.wait_low(game, 0)

    def test_appid_of_a_source(self):
        game = self.steam_game
        self.source().report(game, appid=dbus.UInt32(777))
        self.wait_low(game, FRONT1)
        self.assertEqual(self.manager().ListGames()[0][1], 777)


class Sessions(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box.add_user_tree(1001)

    def test_a_session_that_is_not_active(self):
        self.box.set_user(1001, 'online')
        game = self.game(uid=1001)
        source = self.source(uid=1001)
        source.report(game)
        self.settle()
        self.assertEqual(self.low(game), 0)
        self.assertEqual(self.get('State'), 'idle')
        # It was kept: nobody has to report again.
        self.box.set_user(1001, 'active')
        self.wait_low(game, FRONT1)
        self.box.set_user(1001, 'online')
        self.wait_low(game, 0)
        self.box.set_user(1001, 'active')
        self.wait_low(game, FRONT1)
        # Logged out, what was said before is not kept.
        self.box.set_user(1001, None)
        self.wait_low(game, 0)
        game.kill()
        self.box.set_user(1001, 'active')
        self.settle()
        self.check_defaults()

    def test_logout_and_login(self):
        game = self.box.process(self.box.unit('plain.scope'))
        source = self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.box.set_user(1000, None)
        self.wait_low(game, 0)
        self.box.set_user(1000, 'active')
        wait_for(lambda: '1000: active' in self.dump(), 'user is back')
        self.settle()
        self.assertEqual(self.low(game), 0)
        source.report(game)
        self.wait_low(game, FRONT1)

    def dump(self):
        fd = self.manager().DumpByFileDescriptor().take()
        with open(fd, encoding='utf-8') as f:
            return f.read()

    def test_lingering_users_are_not_in_front(self):
        self.box.set_user(1001, 'lingering')
        game = self.game(uid=1001)
        self.settle()
        self.assertEqual(self.low(game), 0)


if __name__ == '__main__':
    main()
