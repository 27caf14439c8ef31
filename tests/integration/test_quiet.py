# SPDX-License-Identifier: MIT
"""What vramd does when there is nothing to do, what it keeps open, and life without its bus."""

import os
import time

import dbus

from support import BUS_NAME, FRONT1, Case, main, pidfds, status_of, wait_for


class Quiet(Case):
    def wakeups(self):
        """Times that the daemon left the processor by itself: once for each time that it was woken."""
        return int(status_of(self.box.daemon.pid)['voluntary_ctxt_switches'])

    def fds(self):
        return len(os.listdir(f'/proc/{self.box.daemon.pid}/fd'))

    def check_quiet(self, seconds=2):
        def still():
            before = self.wakeups()
            time.sleep(0.3)
            return self.wakeups() == before
        wait_for(still, 'quiet', 8)
        before = self.wakeups()
        time.sleep(seconds)
        self.assertEqual(self.wakeups() - before, 0)

    def test_no_game(self):
        self.check_quiet()

    def test_after_a_game(self):
        game, source = self.game(), self.source()
        source.report(game, compositor=self.compositor())
        self.wait_low(game, FRONT1)
        source.report(None)
        game.kill()
        self.wait_low(game, 0)
        self.check_quiet()

    def test_descriptors(self):
        game, other, source = self.game(pid=1), self.game(20, pid=2), self.source()
        manager = self.manager(self.connect(1000))
        source.report(game, running=pidfds(other))
        self.wait_low(game, FRONT1)

        def work(n):
            for i in range(n):
                source.report((game, other)[i % 2], menu=('open', 'closed')[i // 2 % 2], running=pidfds(game, other))
                pidfd = game.pidfd()
                fd = manager.Hold(dbus.types.UnixFd(pidfd), 'a', 'b', dbus.Dictionary({}, signature='sv')).take()
                os.close(pidfd)
                os.close(fd)
                os.close(manager.DumpByFileDescriptor().take())
            source.report(game, running=pidfds(other))
            wait_for(lambda: not manager.ListHolds(), 'no hold')
            self.settle()
        work(10)
        before = self.fds()
        work(200)
        wait_for(lambda: self.fds() <= before, f'no more than {before} descriptors')

    def test_descriptors_of_clients_and_processes(self):
        source = self.source()
        source.report(None)
        self.settle()
        before = None
        for i in range(12):
            with_game = self.source(f'x{i}')
            game = self.box.process(self.box.unit(f'plain-{i}.scope'))
            with_game.report(game)
            with_game.close()
            game.kill()
            self.box.rmdir(game.group)
            if i == 1:
                wait_for(lambda: not self.manager().ListGames(), 'no game')
                before = self.fds()
        wait_for(lambda: not self.manager().ListGames(), 'no game')
        wait_for(lambda: self.fds() <= before, f'no more than {before} descriptors')


class BusGone(Case):
    def test_bus_daemon_restarts(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.box.stop_bus()
        wait_for(lambda: 'bus went away' in self.log(), 'notice')
        self.assertEqual(self.low(game), FRONT1)
        self.box.start_bus()
        self.assertIsNone(self.box.daemon.poll())
        bus = self.connect()
        wait_for(lambda: bus.name_has_owner(BUS_NAME), 'name')
        self.assertEqual(self.low(game), FRONT1)
        self.assertEqual(self.get('State'), 'protecting')
        # All of it works again.
        again = self.source()
        again.report(game, menu='open')
        wait_for(lambda: self.get('Menu') == 'open', 'report')
        self.assertEqual(self.low(game), FRONT1)
        plain = self.box.process(self.box.unit('plain.scope'))
        again.report(plain)
        self.wait_low(plain, FRONT1)

    def test_grace_runs_without_a_bus(self):
        game, source = self.box.process(self.box.unit('plain.scope')), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.box.stop_bus()
        self.box.start_bus()
        bus = self.connect()
        wait_for(lambda: bus.name_has_owner(BUS_NAME), 'name')
        self.wait_low(game, 0)

    def test_stop_without_a_bus(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.box.stop_bus()
        self.addCleanup(self.box.start_bus)
        self.assertEqual(self.box.stop(), 0)
        self.check_defaults()


if __name__ == '__main__':
    main()
