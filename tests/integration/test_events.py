# SPDX-License-Identifier: MIT
"""Where the kernel counts evictions and tells of them: dmem.events."""

import json
import os
import re
import subprocess
import time

from support import BUILD, C1, FAST, FRONT1, MIB, R1, R2, USER, Case, is_sanitized, main, status_of, wait_for

FULL = 7600 * MIB
DROP = C1 // 80
APPS = USER.format(uid=1000) + '/app.slice'


class EventsCase(Case):
    config = FAST
    series = True

    def play(self, use=FULL, **report):
        game, source = self.game(), self.source()
        source.report(game, **report)
        self.wait_low(game, FRONT1)
        self.charge(game, use)
        return game, source

    def evict(self, group, size, by='/', region=R1):
        self.box.control(f'evict {getattr(group, "group", group)} {region} {size} {getattr(by, "group", by)}')

    def evicted(self, path=None):
        path = path or self.get('ForegroundGame')
        return tuple(dict(self.game_property(path, name)) for name in ('Evictions', 'Evicted'))

    def looks(self, game):
        """Times that vramd was told of the game."""
        return len(re.findall(f'{re.escape(game.group)}: .* were evicted for others', self.log()))

    def told(self, listener):
        return sum(a[2] for a in listener.all('Evicted'))


class Counts(EventsCase):
    def test_properties(self):
        game, _ = self.play()
        self.assertIn('dmem-events', self.get('Abilities'))
        self.assertEqual(self.evicted(), ({R1: 0, R2: 0}, {R1: 0, R2: 0}))
        self.evict(game, 3 * MIB)
        self.assertEqual(self.evicted(), ({R1: 1, R2: 0}, {R1: 3 * MIB, R2: 0}))
        self.evict(game, 2 * MIB, game)   # its own
        self.evict(game, MIB, region=R2)
        self.evict(game, 5 * MIB)
        wait_for(lambda: self.looks(game) > 1, 'look')
        counts, sizes = self.evicted()
        self.assertEqual(counts, {R1: 2, R2: 1})
        # The kernel counts the bytes of the game's own evictions with the others.
        self.assertTrue(5 * MIB <= sizes[R1] <= 10 * MIB and sizes[R2] == MIB, sizes)
        status = json.loads(subprocess.run([f'{BUILD}/client/vramctl', '--json'], capture_output=True, check=True).stdout)
        self.assertEqual((status['games'][0]['evictions'], status['games'][0]['evicted']), (counts, sizes))
        with os.fdopen(self.manager().DumpByFileDescriptor().take()) as f:
            self.assertIn(f'others evicted 1 MiB in 1 buffers of {R2}', f.read())

    def test_since_it_came_in_front(self):
        game, source = self.play()
        path = self.get('ForegroundGame')
        self.evict(game, MIB)
        source.report(None)
        wait_for(lambda: 0 < self.low(game) < FRONT1, 'background')
        self.evict(game, MIB)
        self.assertEqual(self.evicted(path)[0][R1], 2)
        source.report(game, menu='open')
        self.wait_low(game, FRONT1)
        self.assertEqual(self.evicted(), ({R1: 0, R2: 0}, {R1: 0, R2: 0}))
        self.evict(game, MIB)
        self.assertEqual(self.evicted()[0][R1], 1)
        source.report(game, menu='closed')
        self.settle()
        self.assertEqual(self.evicted()[0][R1], 1)

    def test_not_protected(self):
        game, _ = self.play()
        path = self.get('ForegroundGame')
        self.reload(FAST + '[game 1091500]\nProtect=no\n')
        self.wait_low(game, 0)
        self.assertEqual(self.evicted(path), ({}, {}))


class Signal(EventsCase):
    def test_one_for_many(self):
        game, _ = self.play()
        listener = self.listen()
        for _ in range(50):
            self.evict(game, MIB)
        path, region, size, by, reason = listener.wait('Evicted')
        self.assertEqual((path, region, by, reason), (self.get('ForegroundGame'), R1, '', 'others needed room'))
        first = time.monotonic()
        self.evict(game, 7 * MIB)
        wait_for(lambda: self.told(listener) == 57 * MIB, 'all of it')
        if size == 50 * MIB:
            self.assertGreater(time.monotonic() - first, 0.8)
        self.assertLessEqual(len(listener.all('Evicted')), 3)

    def test_own_ones_are_no_news(self):
        game, _ = self.play()
        listener = self.listen()
        self.evict(game, MIB, game)
        time.sleep(0.3)
        self.assertEqual((listener.all('Evicted'), self.evicted()[0][R1], self.looks(game)), ([], 0, 0))

    def test_who(self):
        """The one of those that vramd knows who grew enough; but never somebody just because there is nobody else."""
        compositor, other, steam = self.compositor(), self.game(20, pid=2), self.steam()
        game, source = self.play(compositor=compositor)
        listener = self.listen()

        def grow(*whom, want):
            for who, size in whom:
                self.charge(who, size)
            self.evict(game, 40 * MIB)
            self.assertEqual(listener.wait('Evicted')[3], want)
            listener.clear()
            source.report(game, compositor=compositor)
            time.sleep(1)  # that one is told of by itself
        grow((compositor, 50 * MIB), want='gamescope-session.service')
        grow((other, 30 * MIB), (compositor, 51 * MIB), want='app-steam-app20-2.scope')
        grow((steam, 20 * MIB), want='steam-launcher.service')
        grow((steam, 39 * MIB), want='')  # 19 do not explain 40
        grow((game, 500 * MIB), want='')

    def test_watch(self):
        game, _ = self.play(compositor=(compositor := self.compositor()))
        watch = subprocess.Popen([f'{BUILD}/client/vramctl', 'watch'], stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        self.assertIn('protecting', watch.stdout.readline())
        self.charge(compositor, 64 * MIB)
        self.evict(game, 64 * MIB)
        self.assertRegex(watch.stdout.readline(), r' evicted +\S.* lost 64 MiB of \S+ to gamescope-session.service - others')


class Wakes(EventsCase):
    def test_storm(self):
        """Much more than the kernel would tell of. All of it is counted, and nobody is woken up for each."""
        self.reload(FAST + 'Easing=0\n')
        game, _ = self.play()
        listener = self.listen()
        n, begin = 0, time.monotonic()
        while time.monotonic() < begin + 2:
            for _ in range(20):
                self.evict(game, 4096)
            n += 20
        seconds = time.monotonic() - begin
        self.assertEqual(self.evicted()[0][R1], n)
        wait_for(lambda: self.told(listener) == n * 4096, 'all of it')
        print(f'{n} evictions in {seconds:.1f} s: {self.looks(game)} looks, {len(listener.all("Evicted"))} signals')
        self.assertGreater(n, 100 * seconds, 'too slow to show anything')
        self.assertLessEqual(self.looks(game), 41 * seconds)
        self.assertLessEqual(len(listener.all('Evicted')), seconds + 2)

    def test_nothing_is_nothing(self):
        """No timer looks at a full region, with easing on."""
        begin = time.monotonic()
        game, _ = self.play(FULL)
        self.evict(game, 2 * DROP)
        wait_for(lambda: self.low(game) < FRONT1, 'easing')
        self.wait_low(game, FRONT1)
        time.sleep(begin + 6 - time.monotonic())  # a game's process is looked at once more after 5 s

        def switches():
            return int(status_of(self.box.daemon.pid)['voluntary_ctxt_switches'])
        before = switches()
        time.sleep(3)
        self.assertEqual(switches() - before, 0)


class Ease(EventsCase):
    config = FAST + 'Easing=700ms\n'

    def test_low_becomes_use_and_is_restored(self):
        game, _ = self.play()
        listener = self.listen()
        # What it used before nobody has looked at.
        self.evict(game, DROP + MIB)
        self.wait_low(game, FULL - DROP - MIB, timeout=1)
        self.assertEqual(listener.wait('Eased')[1:], (R1, DROP + MIB, 'others needed room'))
        # Beyond its low it has nothing to lose.
        self.charge(game, FULL)
        self.evict(game, DROP)
        self.wait_low(game, FRONT1, timeout=3)
        self.assertEqual(len(listener.all('Eased')), 1)
        listener.wait('Restored')

    def test_whoever_came_in_is_still_there(self):
        game, _ = self.play()
        listener = self.listen()
        for i in range(3):
            self.evict(game, 2 * DROP)
            wait_for(lambda n=i: len(listener.all('Eased')) == n + 1, 'easing')
            self.wait_low(game, FRONT1, timeout=3)
            self.charge(game, FULL)

    def test_what_is_no_drop(self):
        game, _ = self.play()
        self.evict(game, DROP)
        # Taken together, the bytes of the game's own would be shared out between the two.
        wait_for(lambda: self.looks(game) == 1, 'look')
        self.evict(game, 100 * DROP, game)
        # A drop of its own, as between two levels.
        self.charge(game, FULL // 2)
        time.sleep(0.3)
        self.assertEqual(self.low(game), FRONT1)

    def test_where_the_kernel_throttles(self):
        game, _ = self.play()
        listener = self.listen()
        for name in 'throttle_hard_ms', 'throttle_soft_ms':
            knob = self.box.root / 'sys/module/ttm/parameters' / name
            knob.parent.mkdir(parents=True, exist_ok=True)
            knob.write_text('50\n')
            self.evict(game, 2 * DROP)
            listener.wait('Evicted', lambda *a: a[2] >= 2 * DROP)
            self.assertEqual((self.low(game), listener.all('Eased')), (FRONT1, []))
            listener.clear()
            knob.unlink()
        self.manager().Reload()
        self.evict(game, 2 * DROP)
        wait_for(lambda: self.low(game) < FRONT1, 'easing')
        # Switched on meanwhile: the next eviction shows it.
        self.reload(FAST + 'Easing=1min\n')
        self.evict(game, 2 * DROP)
        wait_for(lambda: self.low(game) < FRONT1, 'easing')
        knob.write_text('50\n')
        self.evict(game, 2 * DROP)
        self.wait_low(game, FRONT1)
        knob.unlink()


class Life(EventsCase):
    def test_dmem_switched_off_and_on(self):
        game, _ = self.play()
        self.evict(game, MIB)
        for text in '-dmem', '+dmem':
            self.box.write(APPS, 'cgroup.subtree_control', text)
        self.wait_low(game, FRONT1)
        before = self.looks(game)

        def seen():
            self.evict(game, MIB)
            return self.looks(game) > before
        wait_for(seen, 'look')

    def test_region_comes_back(self):
        game, _ = self.play()
        for _ in range(3):
            self.evict(game, MIB)
        self.assertEqual(self.evicted()[0][R1], 3)
        self.charge(game, 0)
        self.box.control(f'region - {R1}')
        self.box.control(f'region + {R1} {C1}')
        self.evict(game, MIB)
        # What the new one counts is added.
        self.assertEqual(self.evicted()[0][R1], 4)

    def test_its_end(self):
        game, _ = self.play()
        for _ in range(3):
            self.evict(game, MIB)
        self.charge(game, 0)
        game.kill()
        self.wait_low(game, 0)
        self.assertEqual(self.get('State'), 'idle')

    def test_descriptors(self):
        game, other, source = self.game(pid=1), self.game(20, pid=2), self.source()

        def fds():
            return len(os.listdir(f'/proc/{self.box.daemon.pid}/fd'))

        def work(n):
            for i in range(n):
                front = (game, other)[i % 2]
                source.report(front)
                self.evict(front, MIB)
                if i % 10 == 0:
                    self.manager().Reload()
            source.report(game)
            self.settle()
        work(10)
        before = fds()
        work(100 if not is_sanitized() else 40)
        wait_for(lambda: fds() <= before, f'no more than {before} descriptors')


if __name__ == '__main__':
    main()
