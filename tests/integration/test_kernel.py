# SPDX-License-Identifier: MIT
"""The kernel's knobs: set, put back, and never a stranger's value; io.github.vramd1.Kernel."""

import contextlib
import signal
import subprocess

import dbus

from support import BUS_NAME, BUS_PATH, FAST, FRONT1, PROPERTIES, Case, main, wait_for

KERNEL = BUS_NAME + '.Kernel'
STOCK = {'throttle_hard_ms': '0', 'throttle_soft_ms': '0', 'throttle_levels': '0', 'reclaim_backoff_ms': '0',
         'contig_window': 'N', 'evict_priority': 'N', 'displace_lower': 'N'}
TUNED = {'throttle_hard_ms': '50', 'throttle_soft_ms': '2000', 'throttle_levels': '1', 'reclaim_backoff_ms': '20',
         'contig_window': '1', 'evict_priority': '1', 'displace_lower': '1'}
NAMES = {'ThrottleHard': 'throttle_hard_ms', 'ThrottleSoft': 'throttle_soft_ms', 'ThrottleLevels': 'throttle_levels',
         'ReclaimBackoff': 'reclaim_backoff_ms', 'ContigWindow': 'contig_window', 'EvictPriority': 'evict_priority',
         'DisplaceLower': 'displace_lower'}


class KernelCase(Case):
    parameters = STOCK

    def setUp(self):
        self.box.load('ttm', **self.parameters)
        self.addCleanup(self.box.unload, 'ttm')
        super().setUp()

    def ttm(self):
        """All parameters, switches as the kernel prints them where nobody wrote them."""
        return {name: self.box.parameter('ttm', name) for name in self.parameters}

    def write(self, name, value):
        (self.box.root / 'sys/module/ttm/parameters' / name).write_text(f'{value}\n')

    def assert_stock(self):
        switch = {'0': 'N', '1': 'Y'}
        now = {k: switch.get(v, v) if STOCK[k] in 'NY' else v for k, v in self.ttm().items()}
        self.assertEqual(now, STOCK)

    def assert_tuned(self, **but):
        self.assertEqual(self.ttm(), TUNED | but)

    # --- the bus ------------------------------------------------------------------------------

    def knobs(self, bus=None):
        return dbus.Interface((bus or self.bus).get_object(BUS_NAME, BUS_PATH, introspect=False), PROPERTIES)

    def set(self, name, value, bus=None):
        value = (dbus.Boolean if isinstance(value, bool) else dbus.UInt32)(value, variant_level=1)
        self.knobs(bus).Set(KERNEL, name, value)

    def knob(self, name):
        return self.knobs().Get(KERNEL, name)

    def origins(self):
        return {str(k): str(v) for k, v in self.knob('Origins').items()}

    def reset(self, bus=None):
        dbus.Interface((bus or self.bus).get_object(BUS_NAME, BUS_PATH, introspect=False), KERNEL).Reset()


class Values(KernelCase):
    def test_set_at_the_start_and_put_back_at_the_end(self):
        wait_for(lambda: self.ttm() == TUNED, 'the knobs')
        journal = (self.box.root / 'run/vramd/journal').read_text()
        self.assertEqual(journal.count('knob\tttm/'), len(NAMES))
        self.box.stop()
        self.assert_stock()
        self.assertFalse((self.box.root / 'run/vramd/journal').exists())

    def test_configuration(self):
        self.reload(FAST + '[kernel]\nThrottleHard=0\nThrottleSoft=1s\nThrottleLevels=2\nDisplaceLower=keep\n')
        self.assert_tuned(throttle_hard_ms='0', throttle_soft_ms='1000', throttle_levels='2', displace_lower='0')
        self.reload(FAST + '[kernel]\nContigWindow=no\n')
        self.assert_tuned(contig_window='0', evict_priority='0', displace_lower='0')
        self.assertEqual(self.origins()['EvictPriority'], 'kernel')
        self.reload('[policy]\nEnabled=no\n')
        self.assert_stock()
        self.reload(FAST)
        self.assert_tuned()

    def test_bad_values_keep_the_default(self):
        self.conf(FAST + '[kernel]\nThrottleHard=50\n')
        self.refuses('InvalidConfiguration', self.manager().Reload, text="vramd.conf:5: 'ThrottleHard=50' in [kernel]")
        self.settle()
        self.assert_tuned()

    def test_what_an_administrator_set_comes_back(self):
        self.box.stop()
        self.write('throttle_soft_ms', 300)
        self.write('contig_window', 'Y')
        self.start()
        self.settle()
        self.assertEqual(self.box.parameter('ttm', 'throttle_soft_ms'), '2000')
        self.box.stop()
        self.assertEqual(self.box.parameter('ttm', 'throttle_soft_ms'), '300')
        self.assertEqual(self.box.parameter('ttm', 'contig_window'), 'Y')
        self.box.load('ttm', **STOCK)

    def test_a_game_in_front(self):
        self.reload(FAST + '[game 7]\nThrottleHard=keep\nThrottleSoft=500ms\nContigWindow=no\n')
        self.assert_tuned()
        other, game, source = self.game(1, pid=1), self.game(7, pid=7), self.source()
        source.report(other)
        self.assert_tuned()
        source.report(game)
        self.assert_tuned(throttle_hard_ms='0', throttle_soft_ms='500', contig_window='0', evict_priority='0',
                          displace_lower='0')
        self.assertEqual(self.origins(), {
            'ThrottleHard': 'kernel', 'ThrottleSoft': 'game', 'ThrottleLevels': 'configuration',
            'ReclaimBackoff': 'configuration', 'ContigWindow': 'game', 'EvictPriority': 'kernel',
            'DisplaceLower': 'kernel'})
        source.report(other)
        self.assert_tuned()
        source.report(game)
        game.kill()
        wait_for(lambda: self.ttm() == TUNED, 'the knobs')

    def test_two_seats(self):
        self.box.add_user_tree(1001)
        self.box.set_user(1001, 'active')
        self.reload(FAST + '[game 7]\nThrottleSoft=700ms\n[game 8]\nThrottleSoft=800ms\n')
        sources = [self.source(uid=uid) for uid in (1000, 1001)]
        sources[1].report(self.game(8, uid=1001, pid=8))
        self.assertEqual(self.knob('ThrottleSoft'), 800)
        sources[0].report(self.game(7, pid=7))
        front = self.game_property(self.get('ForegroundGame'), 'AppID')
        self.assertEqual(self.knob('ThrottleSoft'), 100 * front)

    def test_dry_run(self):
        self.box.stop()
        self.assert_stock()
        self.start('--dry-run')
        self.settle()
        self.assert_stock()
        self.assertIn('would write: ttm.throttle_hard_ms 0 -> 50', self.log())
        self.box.stop()
        self.assert_stock()


class Strangers(KernelCase):
    def test_a_strangers_value_stays(self):
        self.settle()
        self.write('throttle_soft_ms', 777)
        self.reload(FAST + '[kernel]\nThrottleSoft=1s\n')
        self.assert_tuned(throttle_soft_ms='777')
        self.assertEqual(self.origins()['ThrottleSoft'], 'stranger')
        self.assertIn('Another program set ttm.throttle_soft_ms to 777, where vramd had 2000', self.log())
        self.reload(FAST + '[kernel]\nThrottleSoft=3s\n')
        self.assertEqual(self.log().count('Another program set'), 1)
        self.box.stop()
        self.assertEqual(self.box.parameter('ttm', 'throttle_soft_ms'), '777')
        self.assertEqual(self.box.parameter('ttm', 'throttle_hard_ms'), '0')

    def test_also_after_a_crash(self):
        self.settle()
        self.write('throttle_soft_ms', 777)
        self.box.stop(signal.SIGKILL)
        self.box.restore()
        self.assertEqual(self.box.parameter('ttm', 'throttle_soft_ms'), '777')
        self.assertEqual(self.box.parameter('ttm', 'throttle_hard_ms'), '0')

    def test_reset_takes_it_again(self):
        self.settle()
        self.write('throttle_soft_ms', 777)
        self.reset()
        self.assert_tuned()
        self.box.stop()
        self.assertEqual(self.box.parameter('ttm', 'throttle_soft_ms'), '777')

    def test_set_by_hand_over_it(self):
        self.settle()
        self.write('throttle_soft_ms', 777)
        self.set('ThrottleSoft', 900)
        self.assert_tuned(throttle_soft_ms='900')
        self.box.stop()
        self.assertEqual(self.box.parameter('ttm', 'throttle_soft_ms'), '777')

    def test_what_a_knob_needs(self):
        self.settle()
        self.write('contig_window', 'N')
        self.reload(FAST + '[kernel]\nThrottleSoft=1s\n')
        self.assert_tuned(throttle_soft_ms='1000', contig_window='N', evict_priority='0', displace_lower='0')


class Crashes(KernelCase):
    def test_kill_and_start_again(self):
        self.settle()
        self.set('ThrottleHard', 60)
        self.box.stop(signal.SIGKILL)
        self.assert_tuned(throttle_hard_ms='60')
        self.start()
        self.settle()
        self.assert_tuned()
        self.box.stop()
        self.assert_stock()

    def test_kill_and_restore(self):
        self.settle()
        self.box.stop(signal.SIGKILL)
        self.assert_tuned()
        self.box.restore()
        self.assert_stock()
        self.assertFalse((self.box.root / 'run/vramd/journal').exists())

    def test_a_module_loaded_anew_has_nothing_of_ours(self):
        self.settle()
        self.box.stop(signal.SIGKILL)
        # Somebody's own values, which by chance are what vramd wrote.
        self.box.load('ttm', **STOCK | {'throttle_hard_ms': '50'})
        self.box.restore()
        self.assertEqual(self.ttm(), STOCK | {'throttle_hard_ms': '50'})

    def test_another_boot(self):
        self.settle()
        self.box.stop(signal.SIGKILL)
        journal = self.box.root / 'run/vramd/journal'
        text = journal.read_text()
        head, rest = text.split('\n', 1)
        journal.write_text(head[:-32] + 'f' * 32 + '\n' + rest)
        self.box.restore()
        self.assert_tuned()
        journal.write_text(text)
        self.box.restore()
        self.assert_stock()


class Modules(KernelCase):
    """vramd probes again when a device came or went; here, when it is told to read its configuration."""

    def test_none(self):
        self.box.stop()
        self.box.unload('ttm')
        self.box.log.write_text('')
        self.start()
        self.settle()
        self.assertEqual(self.knob('Available'), [])
        self.assertEqual(self.origins(), {})
        self.assertEqual(self.knobs().GetAll(KERNEL)['ThrottleHard'], 0)
        self.assertIs(bool(self.knob('ContigWindow')), False)
        self.refuses('NoSuchKnob', self.set, 'ThrottleHard', 50, text="'throttle_hard_ms' of 'ttm'")
        self.assertNotIn('ttm', self.log())
        self.box.load('ttm', **STOCK)

    def test_later_and_anew(self):
        self.box.stop()
        self.box.unload('ttm')
        self.start()
        listener = self.listen()
        self.box.load('ttm', **STOCK)
        self.reload(FAST)
        self.assert_tuned()
        self.assertEqual(len(listener.wait('PropertiesChanged', lambda i, new, _: new.get('Available'))[1]['Available']), 7)
        # Every value is gone, and none of them is a stranger's.
        self.box.load('ttm', **STOCK)
        self.reload(FAST)
        self.assert_tuned()
        self.assertNotIn('Another program', self.log())
        self.box.unload('ttm')
        self.reload(FAST)
        self.assertEqual(self.knob('Available'), [])
        self.box.load('ttm', **STOCK)

    def test_some(self):
        self.box.load('ttm', throttle_hard_ms=0, evict_priority='N', displace_lower='N')
        self.box.load('amdgpu', gfxoff_delay_ms=100)
        self.addCleanup(self.box.unload, 'amdgpu')
        self.reload(FAST)
        self.assertEqual(self.knob('Available'), ['ThrottleHard', 'EvictPriority', 'DisplaceLower', 'GfxoffDelay'])
        self.assertEqual(self.box.parameter('ttm', 'throttle_hard_ms'), '50')
        # Without windows the order makes things worse.
        self.assertEqual(self.box.parameter('ttm', 'evict_priority'), 'N')
        self.assertEqual(self.box.parameter('amdgpu', 'gfxoff_delay_ms'), '100')
        self.refuses('NeedsKnob', self.set, 'EvictPriority', True, text="needs 'ContigWindow'")
        self.reload(FAST + '[kernel]\nGfxoffDelay=250ms\n')
        self.assertEqual(self.box.parameter('amdgpu', 'gfxoff_delay_ms'), '250')
        self.box.stop()
        self.assertEqual(self.box.parameter('amdgpu', 'gfxoff_delay_ms'), '100')
        self.assertEqual(self.box.parameter('ttm', 'throttle_hard_ms'), '0')
        self.box.load('ttm', **STOCK)

    @contextlib.contextmanager
    def read_only(self):
        """As in a sandbox of systemd's that was made before the module came."""
        where = self.box.root / 'sys/module'
        subprocess.run(['mount', '-o', 'remount,ro', where], check=True)
        try:
            yield
        finally:
            subprocess.run(['mount', '-o', 'remount,rw', where], check=True)

    def test_that_cannot_be_written(self):
        self.box.stop()
        with self.read_only():
            self.start()
            self.settle()
            self.reload(FAST)
            self.assert_stock()
            self.assertEqual(self.log().count("Cannot set the parameter 'throttle_hard_ms' of 'ttm'"), 1)
            with self.assertRaises(dbus.DBusException) as caught:
                self.set('ThrottleHard', 60)
            self.assertIn('Read-only', caught.exception.get_dbus_message())
            self.assertEqual(self.box.stop(), 0)

    def test_that_came_after_the_sandbox(self):
        self.box.stop()
        self.box.unload('ttm')
        self.start()
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.box.load('ttm', **STOCK)
        with self.read_only():
            self.reload(FAST)
            self.settle()
            # Not while it protects somebody.
            self.assertIsNone(self.box.daemon.poll())
            self.wait_low(game, FRONT1)
            # Asleep, it is "paused", and protects him all the same.
            owned = self.sleep(True)
            self.settle()
            self.assertEqual(self.get('State'), 'paused')
            self.assertIsNone(self.box.daemon.poll())
            del owned
            self.sleep(False)
            self.settle()
            self.assertEqual(self.low(game), FRONT1)
            source.report()
            game.kill()
            self.assertEqual(self.box.daemon.wait(10), 75)
        self.box.daemon = None
        self.assertIn('Starting anew', self.log())
        self.start()
        self.settle()
        self.assert_tuned()


class Bus(KernelCase):
    def test_properties(self):
        self.assertEqual(self.knob('Available'), list(NAMES))
        everything = self.knobs().GetAll(KERNEL)
        self.assertEqual(everything['ThrottleHard'], 50)
        self.assertEqual(everything['ThrottleSoft'], 2000)
        self.assertIsInstance(everything['ThrottleSoft'], dbus.UInt32)
        self.assertIsInstance(everything['EvictPriority'], dbus.Boolean)
        self.assertEqual(everything['GfxoffDelay'], 0)
        self.assertEqual(set(everything['Origins'].values()), {'configuration'})
        # What is, not what vramd wrote.
        self.write('throttle_hard_ms', 66)
        self.assertEqual(self.knob('ThrottleHard'), 66)
        self.write('throttle_hard_ms', 50)

    def test_set_and_reset(self):
        listener = self.listen()
        self.set('ThrottleHard', 60)
        self.set('ThrottleLevels', 3)
        self.assert_tuned(throttle_hard_ms='60', throttle_levels='3')
        listener.wait('PropertiesChanged', lambda i, new, _: i == KERNEL and new.get('ThrottleLevels') == 3)
        self.assertEqual(listener.changed(KERNEL)['ThrottleHard'], 60)
        self.assertEqual(self.origins()['ThrottleHard'], 'hand')
        # Also for a game that has its own.
        self.reload(FAST + '[kernel]\nThrottleSoft=1s\n[game 7]\nThrottleHard=70ms\nThrottleSoft=700ms\n')
        self.source().report(self.game(7))
        self.assert_tuned(throttle_hard_ms='60', throttle_soft_ms='700', throttle_levels='3')
        self.reset()
        self.assert_tuned(throttle_hard_ms='70', throttle_soft_ms='700')
        listener.wait('PropertiesChanged', lambda i, new, _: i == KERNEL and new.get('ThrottleHard') == 70)

    def test_set_by_hand_while_switched_off(self):
        self.reload('[policy]\nEnabled=no\n')
        self.set('ReclaimBackoff', 5)
        self.assertEqual(self.box.parameter('ttm', 'reclaim_backoff_ms'), '5')
        self.box.stop()
        self.assert_stock()

    def test_a_switch_takes_along_what_needs_it(self):
        self.set('ContigWindow', False)
        self.assert_tuned(contig_window='0', evict_priority='0', displace_lower='0')
        self.refuses('NeedsKnob', self.set, 'EvictPriority', True)
        self.set('ContigWindow', True)
        self.assert_tuned()

    def test_errors(self):
        self.refuses('OutOfRange', self.set, 'ThrottleHard', 1001, text="'ThrottleHard' is at most 1s")
        self.refuses('OutOfRange', self.set, 'ThrottleLevels', 9, text='at most 8')
        self.refuses('NoSuchKnob', self.set, 'GfxoffDelay', 100)
        self.refuses('InvalidArgs', self.set, 'ThrottleHard', True, text="of type 'u'")
        self.refuses('InvalidArgs', self.set, 'EvictPriority', 1, text="of type 'b'")
        with self.assertRaises(dbus.DBusException):
            self.knobs().Set(KERNEL, 'Available', dbus.Array([], signature='s', variant_level=1))
        with self.assertRaises(dbus.DBusException):
            self.knobs().Set(KERNEL, 'Nonsense', dbus.UInt32(1, variant_level=1))
        self.assert_tuned()

    def test_who_may(self):
        bus = self.connect(1000)
        self.polkit_allows('reload', 'set-focus', 'hold')
        self.refuses('NotPermitted', self.set, 'ThrottleHard', 60, bus, text='set-kernel')
        self.refuses('NotPermitted', self.reset, bus, text='set-kernel')
        # Nobody is asked for a password for what cannot be.
        self.refuses('OutOfRange', self.set, 'ThrottleHard', 1001, bus)
        self.assertEqual(self.knobs(bus).Get(KERNEL, 'ThrottleHard'), 50)
        self.polkit_allows('set-kernel')
        self.set('ThrottleHard', 60, bus)
        self.set('EvictPriority', False, bus)
        self.assert_tuned(throttle_hard_ms='60', evict_priority='0', displace_lower='0')
        self.reset(bus)
        self.assert_tuned()


if __name__ == '__main__':
    main()
