# SPDX-License-Identifier: MIT
"""Hold: protection that lives as long as a descriptor does."""

import os
import subprocess
import sys
import textwrap

import dbus

from support import BUS_NAME, BUS_PATH, FRONT1, MANAGER, Case, main, wait_for

FD = dbus.types.UnixFd
OPTIONS = dbus.Dictionary({}, signature='sv')


class Holds(Case):
    def setUp(self):
        super().setUp()
        self.caller = self.connect(1000)
        self.plain = self.box.process(self.box.unit('plain.scope'))

    def hold(self, process, who='test', why='testing', options=OPTIONS, bus=None):
        """The descriptor, as a number that the test closes."""
        pidfd = process.pidfd()
        try:
            return self.manager(bus or self.caller).Hold(FD(pidfd), who, why, options).take()
        finally:
            os.close(pidfd)

    def holds(self):
        return self.manager().ListHolds()

    def test_held_until_closed(self):
        fd = self.hold(self.plain)
        self.wait_low(self.plain, FRONT1)
        self.assertEqual(self.get('FocusSource'), 'hold')
        os.close(fd)
        self.wait_low(self.plain, 0)
        self.assertEqual(self.holds(), [])
        wait_for(lambda: not self.manager().ListGames(), 'no game')

    def test_a_copy_keeps_it(self):
        fd = self.hold(self.plain)
        child = subprocess.Popen(['sleep', 'infinity'], pass_fds=[fd])
        self.addCleanup(child.kill)
        self.wait_low(self.plain, FRONT1)
        os.close(fd)
        self.caller.close()
        self.settle()
        self.assertEqual(len(self.holds()), 1)
        self.assertEqual(self.low(self.plain), FRONT1)
        child.kill()
        child.wait()
        self.wait_low(self.plain, 0)

    def test_killed_holder(self):
        code = textwrap.dedent('''
            import os, sys
            import dbus
            os.setgid(1000); os.setuid(1000)
            bus = dbus.bus.BusConnection(sys.argv[1])
            manager = dbus.Interface(bus.get_object('io.github.vramd1', '/io/github/vramd1'),
                                     'io.github.vramd1.Manager')
            fd = manager.Hold(dbus.types.UnixFd(os.pidfd_open(int(sys.argv[2]))), 'child', 'to die',
                              dbus.Dictionary({}, signature='sv'))
            print('held', flush=True)
            sys.stdin.read()
            ''')
        child = subprocess.Popen([sys.executable, '-c', code, self.box.address, str(self.plain.pid)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), b'held\n')
        self.wait_low(self.plain, FRONT1)
        child.kill()
        child.communicate()
        self.wait_low(self.plain, 0)
        self.assertEqual(self.holds(), [])

    def test_the_process_ends_first(self):
        fd = self.hold(self.plain)
        self.wait_low(self.plain, FRONT1)
        self.plain.kill()
        self.wait_low(self.plain, 0)
        os.close(fd)
        wait_for(lambda: not self.holds(), 'no hold')

    def test_writing_to_it_is_no_use(self):
        fd = self.hold(self.plain)
        self.wait_low(self.plain, FRONT1)
        os.write(fd, b'x')
        self.settle()
        self.assertIsNone(self.box.daemon.poll())
        os.close(fd)
        self.wait_low(self.plain, 0)

    def test_a_source_counts_more(self):
        game, source = self.game(), self.source()
        fd = self.hold(self.plain)
        self.wait_low(self.plain, FRONT1)
        source.report(game)
        self.wait_low(game, FRONT1)
        self.wait_low(self.plain, 0)
        source.manager.Withdraw()
        self.wait_low(self.plain, FRONT1)
        os.close(fd)

    def test_the_newest_of_two(self):
        other = self.box.process(self.box.unit('other.scope'))
        first = self.hold(self.plain)
        self.wait_low(self.plain, FRONT1)
        second = self.hold(other)
        self.wait_low(other, FRONT1)
        os.close(second)
        self.wait_low(self.plain, FRONT1)
        os.close(first)
        self.wait_low(self.plain, 0)

    def test_65th(self):
        fds = [self.hold(self.plain) for _ in range(64)]
        self.refuses('LimitsExceeded', lambda: self.hold(self.plain), text='64')
        self.assertEqual(len(self.holds()), 64)
        # Other users have their own.
        fds.append(self.hold(self.plain, bus=self.bus))
        os.close(fds.pop(0))
        wait_for(lambda: len(self.holds()) == 64, 'one less')
        fds.append(self.hold(self.plain))
        for fd in fds:
            os.close(fd)
        wait_for(lambda: not self.holds(), 'no hold')

    def test_list(self):
        game = self.game()
        fd = self.hold(game, 'vramctl', 'run of ‘game’')
        (who, why, uid, pid, details), = self.holds()
        self.assertEqual((who, why, uid, pid), ('vramctl', 'run of ‘game’', 1000, game.pid))
        self.assertEqual(details['unit'], 'app-steam-app1091500-4242.scope')
        self.assertEqual(details['game'], self.manager().ListGames()[0][0])
        os.close(fd)

    def test_wrong_types(self):
        obj = self.caller.get_object(BUS_NAME, BUS_PATH, introspect=False)
        zero = FD(0)
        for args, signature in (((), ''), ((zero,), 'h'), ((zero, 'a', 'b'), 'hss'), ((1, 'a', 'b', {}), 'ussa{sv}'),
                                ((zero, 1, 'b', {}), 'husa{sv}'), ((zero, 'a', 'b', {}), 'hssa{ss}'),
                                ((zero, 'a', 'b', {}, 1), 'hssa{sv}u')):
            with self.subTest(signature):
                self.refuses('InvalidArgs', lambda: obj.Hold(*args, dbus_interface=MANAGER,
                                                             signature=signature))

    def test_bad_texts(self):
        for who, why in (('', 'x'), ('x', ''), ('x' * 256, 'x'), ('x', 'x' * 256), ('a\nb', 'x'), ('x', 'a\x1bb')):
            self.refuses('InvalidArgs', lambda: self.hold(self.plain, who, why))
        os.close(self.hold(self.plain, 'x' * 255, 'é' * 127))

    def test_options_of_the_future(self):
        options = dbus.Dictionary({'later': dbus.UInt32(1), 'more': dbus.Array(['x'], signature='s')}, signature='sv')
        os.close(self.hold(self.plain, options=options))

    def test_bad_pidfds(self):
        manager = self.manager(self.caller)
        r, w = os.pipe()
        self.addCleanup(os.close, r)
        self.addCleanup(os.close, w)
        self.refuses('InvalidArgs', lambda: manager.Hold(FD(r), 'a', 'b', OPTIONS), text='pidfd')
        dead = self.plain.pidfd()
        self.addCleanup(os.close, dead)
        self.plain.kill()
        self.refuses('NoSuchProcess', lambda: manager.Hold(FD(dead), 'a', 'b', OPTIONS), text='pidfd')
        for group in ('/', '/init.scope'):
            self.refuses('NoUnit', lambda: self.hold(self.box.process(group), bus=self.bus), text='pidfd')
        self.assertEqual(self.holds(), [])


class Trust(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box.add_user_tree(1001)

    def hold(self, process, uid):
        pidfd = process.pidfd()
        try:
            return self.manager(self.connect(uid)).Hold(FD(pidfd), 'a', 'b', OPTIONS).take()
        finally:
            os.close(pidfd)

    def test_1_without_polkit(self):
        game = self.box.process(self.box.unit('plain.scope'))
        self.refuses('NotPermitted', lambda: self.hold(game, 1001), text='hold')
        fd = self.hold(game, 0)
        self.wait_low(game, FRONT1)
        os.close(fd)
        self.wait_low(game, 0)

    def test_2_with_polkit(self):
        self.polkit_allows('set-focus')
        game = self.box.process(self.box.unit('plain.scope'))
        self.refuses('NotPermitted', lambda: self.hold(game, 1001), text='hold')
        self.polkit_allows('hold')
        fd = self.hold(game, 1001)
        self.wait_low(game, FRONT1)
        self.assertEqual(self.manager().ListHolds()[0][2], 1001)
        os.close(fd)
        self.wait_low(game, 0)

    def test_2_somebody_who_left_while_polkit_was_asked(self):
        self.polkit_allows('hold')
        game = self.box.process(self.box.unit('plain.scope'))
        type(self).polkit.SimulateHang(True)
        try:
            bus = self.connect(1001)
            pidfd = game.pidfd()
            obj = bus.get_object(BUS_NAME, BUS_PATH, introspect=False)
            obj.Hold(FD(pidfd), 'a', 'b', OPTIONS, dbus_interface=MANAGER, signature='hssa{sv}', ignore_reply=True)
            os.close(pidfd)
            bus.flush()
            wait_for(lambda: type(self).polkit.HaveHangingCalls(), 'question')
            bus.close()
            self.settle()
        finally:
            type(self).polkit.SimulateHang(False)
            type(self).polkit.ReleaseHangingCalls()
        self.settle()
        wait_for(lambda: not self.manager().ListHolds(), 'no hold of nobody')
        self.assertEqual(self.low(game), 0)


if __name__ == '__main__':
    main()
