# SPDX-License-Identifier: MIT
"""A game in front that loses memory at once does not fight for it, for a moment."""

import json
import os
import signal
import subprocess
import time

from support import BUILD, C1, FAST, FRONT1, FRONT2, MIB, R1, R2, Case, main, wait_for

FULL = 7600 * MIB    # 92 % of the first region
DROP = C1 // 80      # what a drop has to be above
SHORT = FAST + 'Easing=600ms\n'


class EasingCase(Case):
    config = SHORT

    def play(self, use=FULL, region=R1, game=None, source=None):
        """A game in front which fills the region, and is looked at."""
        game, source = game or self.game(), source or self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.charge(game, use, region)
        # What was there when a game came to the front is what the first look sees.
        source.report(None)
        wait_for(lambda: self.low(game) != FRONT1, 'background')
        source.report(game)
        self.wait_low(game, FRONT1)
        self.settle()
        return game, source

    def drop(self, game, use, region=R1):
        time.sleep(0.12)  # two looks: what follows is one drop
        self.charge(game, use, region)

    def left(self):
        return next(g[4]['eased-usec'] for g in self.manager().ListGames() if g[3])

    def stays(self, game, low, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertEqual(self.low(game), low)
            time.sleep(0.01)


class Easing(EasingCase):
    def test_low_becomes_use_and_is_restored(self):
        self.reload(FAST + 'Easing=1500ms\n')
        game, _ = self.play()
        listener = self.listen()
        self.drop(game, FULL - DROP - MIB)
        began = time.monotonic()
        self.wait_low(game, FULL - DROP - MIB, timeout=1)
        path = game.group
        while path:
            self.assertEqual(self.low(path), FULL - DROP - MIB, path)
            path = path.rsplit('/', 1)[0]
        self.assertEqual(self.low(game, R2), FRONT2)
        # It grows meanwhile, and loses that again: no reason to wait for longer.
        self.charge(game, FULL + DROP)
        self.drop(game, FULL - DROP)
        self.wait_low(game, FRONT1, timeout=3)
        self.assertGreater(time.monotonic() - began, 1.4)
        path = self.get('ForegroundGame')
        self.assertEqual(listener.wait('Eased')[:3], (path, R1, DROP + MIB))
        self.assertEqual(listener.wait('Restored'), (path, R1, FRONT1, 'Easing= is over'))
        self.assertEqual(len(listener.all('Eased')), 1)

    def test_default_is_two_seconds(self):
        self.reload(FAST)
        game, _ = self.play()
        self.drop(game, FULL // 2)
        self.wait_low(game, FULL // 2, timeout=1)
        self.assertTrue(1.2e6 < self.left() <= 2e6)
        self.stays(game, FULL // 2, 1)
        self.wait_low(game, FRONT1, timeout=2)

    def test_follows_further_down(self):
        self.reload(FAST + 'Easing=1min\n')
        game, _ = self.play()
        listener = self.listen()
        self.drop(game, FULL - 2 * DROP)
        self.wait_low(game, FULL - 2 * DROP)
        time.sleep(0.5)
        left = self.left()
        self.drop(game, FULL - 4 * DROP)
        wait_for(lambda: self.left() > left, 'a time that starts again')
        self.wait_low(game, FULL - 4 * DROP)
        self.reload(FAST + 'Easing=0\n')
        self.wait_low(game, FRONT1)
        listener.wait('Restored')
        self.assertEqual(len(listener.all('Eased')), 2)
        self.assertEqual(len(listener.all('Restored')), 1)

    def test_what_is_no_drop(self):
        game, _ = self.play()
        self.drop(game, FULL - DROP)
        self.stays(game, FRONT1, 0.15)
        # Beyond its low it has no promise to lose.
        self.charge(game, FRONT1 + 400 * MIB)
        self.drop(game, FRONT1 + 200 * MIB)
        self.stays(game, FRONT1, 0.15)

    def test_to_nothing(self):
        game, _ = self.play()
        self.drop(game, 0)
        self.wait_low(game, 4096)
        self.assertEqual(self.get('State'), 'protecting')
        self.wait_low(game, FRONT1, timeout=3)

    def test_a_region_with_room_is_looked_at_slowly(self):
        game, _ = self.play(3000 * MIB)
        self.charge(game, 1000 * MIB)
        self.stays(game, FRONT1, 0.3)
        self.wait_low(game, 1000 * MIB, timeout=2.5)
        self.wait_low(game, FRONT1, timeout=3)

    def test_each_region_by_itself(self):
        game, source = self.play()
        self.play(3900 * MIB, R2, game, source)
        self.drop(game, 2000 * MIB, R2)
        self.wait_low(game, 2000 * MIB, R2)
        self.assertEqual(self.low(game), FRONT1)
        self.drop(game, 6000 * MIB)
        self.wait_low(game, 6000 * MIB)
        self.wait_low(game, FRONT2, R2, timeout=3)
        self.wait_low(game, FRONT1, timeout=3)

    def test_nobody_else_gets_the_difference(self):
        other = self.game(20, pid=2)
        game, source = self.play()
        self.charge(other, 4000 * MIB)
        source.report(game, menu='open')
        self.wait_low(other, C1 - FRONT1)
        self.drop(game, 4000 * MIB)
        self.wait_low(game, 4000 * MIB)
        self.assertEqual(self.low(other), C1 - FRONT1)
        self.wait_low(game, FRONT1, timeout=3)

    def test_min_is_not_lowered(self):
        self.reload(SHORT + 'GameMin=5G\n')
        game, _ = self.play()
        self.drop(game, 1000 * MIB)
        self.wait_low(game, 5 << 30)
        self.assertEqual(self.min(game), 5 << 30)
        self.wait_low(game, FRONT1, timeout=3)


class Seen(EasingCase):
    def test_property_list_dump_and_status(self):
        game, _ = self.play()
        path, use = self.get('ForegroundGame'), FULL - 2 * DROP
        listener = self.listen()
        self.assertEqual(self.game_property(path, 'Eased'), {})
        self.drop(game, use)
        self.wait_low(game, use)
        self.assertEqual(self.game_property(path, 'Eased'), {R1: use})
        details = self.manager().ListGames()[0][4]
        self.assertEqual(dict(details['eased']), {R1: use})
        self.assertTrue(0 < details['eased-usec'] <= 600000)
        fd = self.manager().DumpByFileDescriptor().take()
        with os.fdopen(fd) as f:
            text = f.read()
        self.assertRegex(text, rf'eased to 7.2 GiB of {R1}, after it lost 204.8 MiB; \d+ ms are left')
        self.assertIn('(the game in front, eased)', text)
        status = json.loads(subprocess.run([f'{BUILD}/client/vramctl', '--json'], capture_output=True, check=True).stdout)
        self.assertEqual(status['games'][0]['eased'], {R1: use})
        wait_for(lambda: listener.changed('io.github.vramd1.Game').get('Eased') == {R1: use}, 'change')
        self.wait_low(game, FRONT1, timeout=3)
        wait_for(lambda: listener.changed('io.github.vramd1.Game').get('Eased') == {}, 'change')
        self.assertEqual(self.game_property(path, 'Eased'), {})

    def test_another_comes_to_the_front(self):
        game, source = self.play()
        listener = self.listen()
        self.drop(game, 4000 * MIB)
        self.wait_low(game, 4000 * MIB)
        other = self.game(20, pid=2)
        source.report(other)
        self.wait_low(other, FRONT1)
        self.assertEqual(listener.wait('Restored')[3], 'the focus changed')
        self.assertEqual(self.left(), 0)
        # Back in front, the past is forgotten.
        source.report(game)
        self.wait_low(game, FRONT1)
        self.stays(game, FRONT1, 0.15)

    def test_its_end(self):
        game, _ = self.play()
        self.drop(game, 4000 * MIB)
        self.wait_low(game, 4000 * MIB)
        game.kill()
        self.wait_low(game, 0)


class Off(EasingCase):
    def check_off(self, game):
        self.drop(game, 4000 * MIB)
        self.stays(game, FRONT1, 0.3)
        self.assertEqual(self.left(), 0)

    def test_switched_off(self):
        for text in (FAST + 'Easing=0\n', SHORT + '[game 1091500]\nEasing=no\n'):
            with self.subTest(text):
                self.reload(text)
                game, source = self.play()
                self.check_off(game)
                source.report(None)
                self.charge(game, 0)
                game.kill()
                self.box.processes.remove(game)
                self.box.rmdir(game.group)

    def test_switched_off_while_eased(self):
        self.reload(FAST + 'Easing=1min\n')
        game, _ = self.play()
        listener = self.listen()
        self.drop(game, 4000 * MIB)
        self.wait_low(game, 4000 * MIB)
        self.reload(FAST + 'Easing=0\n')
        self.wait_low(game, FRONT1)
        self.assertEqual(listener.wait('Restored')[3], 'the configuration was read again')
        # And on again: nothing of what was before counts.
        self.charge(game, FULL)
        self.reload(SHORT)
        self.stays(game, FRONT1, 0.15)
        self.drop(game, 2000 * MIB)
        self.wait_low(game, 2000 * MIB, timeout=1)
        self.wait_low(game, FRONT1, timeout=3)

    def test_asleep(self):
        """The kernel throws everything out then, and the game shall have it back at once."""
        game, _ = self.play()
        self.sleep(True)
        self.charge(game, 1000 * MIB)
        self.stays(game, FRONT1, 0.3)
        self.sleep(False)
        self.stays(game, FRONT1, 0.3)
        self.sleep(True)
        self.charge(game, FULL)
        self.sleep(False)
        self.drop(game, 4000 * MIB)
        self.wait_low(game, 4000 * MIB)
        self.sleep(True)
        self.wait_low(game, FRONT1, timeout=0.4)

    def test_where_the_kernel_throttles(self):
        knob = self.box.root / 'sys/module/ttm/parameters/throttle_hard_ms'
        knob.parent.mkdir(parents=True)
        self.reload(FAST + 'Easing=1min\n')
        self.addCleanup(knob.unlink)
        for text, throttles in (('50\n', True), ('0\n', False)):
            with self.subTest(text):
                knob.write_text(text)
                self.assertEqual('throttle' in self.get('Abilities'), throttles)
                game, source = self.play()
                if throttles:
                    self.check_off(game)
                    source.close()
                    game.kill()
                    self.box.processes.remove(game)
                    self.charge(game, 0)
                    self.box.rmdir(game.group)
                    continue
                self.drop(game, 4000 * MIB)
                self.wait_low(game, 4000 * MIB)
                # Switched on meanwhile: seen with the next slow look.
                knob.write_text('50\n')
                self.wait_low(game, FRONT1, timeout=2.5)
                self.check_off(game)


class Crash(EasingCase):
    config = FAST + 'Easing=1min\n'

    def tearDown(self):
        # dmem, and with it the journal, stays on while something is charged.
        for group, region in self.charged:
            self.charge(group, 0, region)
        if not self.box.daemon:
            self.box.restore()

    def test_kill(self):
        game, _ = self.play()
        self.drop(game, 4000 * MIB)
        self.wait_low(game, 4000 * MIB)
        self.box.stop(signal.SIGKILL)
        self.assertEqual(self.low(game), 4000 * MIB)
        self.box.restore()
        self.check_defaults()

    def test_kill_and_next_start(self):
        game, _ = self.play()
        self.drop(game, 4000 * MIB)
        self.wait_low(game, 4000 * MIB)
        self.box.stop(signal.SIGKILL)
        self.start()
        self.source().report(game)
        self.wait_low(game, FRONT1)

    def test_stop(self):
        game, _ = self.play()
        self.drop(game, 4000 * MIB)
        self.wait_low(game, 4000 * MIB)
        self.assertEqual(self.box.stop(), 0)
        self.check_defaults()


class TwoSeats(EasingCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box.add_user_tree(1001)

    def test_both_are_looked_at(self):
        self.box.set_user(1001, 'active')
        games = self.game(), self.game(20, 1001)
        sources = self.source(), self.source(uid=1001)
        for game, source in zip(games, sources):
            source.report(game)
        for game in games:
            self.wait_low(game, C1 // 2)
            self.charge(game, 3600 * MIB)
        for source in sources:
            source.report(None)
        for game in games:
            self.wait_low(game, 1800 * MIB)
        for game, source in zip(games, sources):
            source.report(game)
        for game in games:
            self.wait_low(game, C1 // 2)
        for game in games:
            self.drop(game, 3000 * MIB)
            self.wait_low(game, 3000 * MIB, timeout=1)
        for game in games:
            self.wait_low(game, C1 // 2, timeout=3)


if __name__ == '__main__':
    main()
