# SPDX-License-Identifier: MIT
"""What takes its time: a flood of reports, a story under valgrind, timers that are long."""

import os
import shutil
import subprocess
import time

import dbus
import dbus.lowlevel

from support import (BUILD, BUS_NAME, BUS_PATH, FAST, FRONT1, MANAGER, MIB, R1, Case, is_sanitized, main, pidfds,
                     status_of, wait_for)

REPORTS = 10000
VALGRIND = ('valgrind', '--quiet', '--error-exitcode=99', '--leak-check=full', '--show-leak-kinds=definite,indirect',
            '--errors-for-leak-kinds=definite,indirect', '--track-fds=no', '--child-silent-after-fork=yes')


class Flood(Case):
    def flood(self, bus, n, games):
        """n reports without waiting for an answer; games take turns."""
        for i in range(n):
            message = dbus.lowlevel.MethodCallMessage(BUS_NAME, BUS_PATH, MANAGER, 'ReportFocus')
            message.set_no_reply(True)
            message.append({'source': 'flood', 'menu': 'closed', 'game': pidfds(games[i % len(games)])[0]},
                           signature='a{sv}')
            bus.send_message(message)
            if i % 50 == 0:
                bus.flush()
        bus.flush()

    def check_flood(self, n):
        games = [self.box.process(self.box.unit(f'plain-{i}.scope')) for i in range(2)]
        bus = self.connect(1000)
        self.flood(bus, 200, games)
        self.settle()
        time.sleep(1.1)  # a new second for the rate
        self.settle()
        memory = int(status_of(self.box.daemon.pid)['VmRSS'].split()[0])
        before = self.log().count('is in front')
        begin = time.monotonic()
        self.flood(bus, n, games)
        self.manager(bus).ListGames()  # answered when all before was read
        took = time.monotonic() - begin
        # The last word counts, whatever was left out.
        self.wait_low(games[(n - 1) % 2], FRONT1, timeout=3)
        self.wait_low(games[n % 2], 0)
        took = time.monotonic() - begin
        applied = self.log().count('is in front') - before
        grown = int(status_of(self.box.daemon.pid)['VmRSS'].split()[0]) - memory
        print(f'{n} reports in {took:.1f} s: {applied} applied, {grown} KiB more memory')
        self.assertLessEqual(applied, 20 * (int(took) + 2))
        if not is_sanitized():  # which keeps what was freed, to see who uses it
            self.assertLess(grown, 1024)
        self.assertIsNone(self.box.daemon.poll())

    def test_ten_thousand_reports(self):
        self.check_flood(REPORTS)

    def test_others_are_heard_meanwhile(self):
        games = [self.box.process(self.box.unit(f'plain-{i}.scope')) for i in range(2)]
        self.flood(self.connect(1000), 2000, games)
        begin = time.monotonic()
        self.assertEqual(self.get('Version')[:2], '0.')
        self.assertLess(time.monotonic() - begin, 5)


class Limits(Case):
    def test_128_games(self):
        processes = [self.box.process(self.box.unit(f'plain-{i}.scope')) for i in range(129)]
        source = self.source()
        for i in range(0, 128, 64):
            self.source(f'source-{i}').report(None, running=pidfds(*processes[i:i + 64]))
        self.assertEqual(len(self.manager().ListGames()), 128)
        self.refuses('LimitsExceeded', lambda: source.report(processes[128]))
        source.report(processes[0])
        self.wait_low(processes[0], FRONT1)


class Valgrind(Case):
    config = None

    def test_story(self):
        if not shutil.which('valgrind'):
            self.skipTest('needs valgrind')
        if is_sanitized():
            self.skipTest('has a sanitizer of its own')
        self.start(config=FAST + '[service ollama]\nLow=1G\nMax=512M\n', wrapper=VALGRIND, timeout=60)
        listener = self.listen()
        steam, compositor, source = self.steam(), self.compositor(), self.source()
        game, other = self.game(), self.box.process(self.box.unit('plain.scope'))
        self.box.mkdir('/system.slice/ollama.service')
        source.report(game, compositor=compositor)
        self.wait_low(game, FRONT1, timeout=30)
        self.charge(game, 3000 * MIB)
        source.report(game, menu='open', compositor=compositor, running=pidfds(other))
        wait_for(lambda: self.low(steam) > 0, 'menu', 30)
        manager = self.manager(self.connect(1000))
        fd = manager.Hold(pidfds(other)[0], 'a', 'b', dbus.Dictionary({}, signature='sv')).take()
        self.refuses('InvalidArgs', lambda: source.report(None, menu='ajar'))
        self.refuses('InvalidArgs', lambda: source.report(game, appid='x'))
        self.refuses('NotPermitted', manager.Reload)
        source.report(other, compositor=compositor)
        self.wait_low(other, FRONT1, timeout=30)
        manager.ListGames(), manager.ListHolds()
        os.close(manager.DumpByFileDescriptor().take())
        for path in [g[0] for g in manager.ListGames()]:
            self.bus.get_object(BUS_NAME, path).GetAll(BUS_NAME + '.Game',
                                                       dbus_interface='org.freedesktop.DBus.Properties')
        self.conf(FAST + 'x=1\n[game 1]\nLow=9X\n')
        self.refuses('InvalidConfiguration', self.manager().Reload)
        self.box.write('/user.slice', 'dmem.low', f'{R1} 0')
        listener.wait('Contested')
        other.move(self.box.unit('app-steam-app7-7.scope'))
        self.wait_low(other, FRONT1, timeout=30)
        os.close(fd)
        self.box.set_user(1000, 'online')
        self.wait_low(other, 0, timeout=30)
        self.box.set_user(1000, 'active')
        self.wait_low(other, FRONT1, timeout=30)
        self.box.stop_bus()
        self.box.start_bus()
        bus = self.connect()
        wait_for(lambda: bus.name_has_owner(BUS_NAME), 'name', 30)
        other.kill()
        self.box.rmdir(other.group)
        self.charge(game, 0)
        self.assertEqual(self.box.stop(timeout=60), 0, 'valgrind complains')
        self.assertNotIn('==', self.log())


class Timers(Case):
    def wakeups(self, seconds):
        before = int(status_of(self.box.daemon.pid)['voluntary_ctxt_switches'])
        time.sleep(seconds)
        return int(status_of(self.box.daemon.pid)['voluntary_ctxt_switches']) - before

    def test_wakeups_with_a_game_in_front(self):
        self.reload(FAST + 'Easing=0\n')
        game, source = self.game(), self.source()
        source.report(game, compositor=self.compositor())
        self.wait_low(game, FRONT1)
        time.sleep(6)  # after the second look at where its processes are
        self.assertEqual(self.wakeups(5), 0)
        # Easing looks at a file or two each 2 s, and waiting for one of the emulated tree counts too.
        self.reload(FAST)
        time.sleep(1)
        self.assertTrue(4 <= self.wakeups(4) <= 12)
        self.charge(game, 7600 * MIB)
        time.sleep(3)
        self.assertTrue(50 <= self.wakeups(2) <= 90)
        source.report(None)
        time.sleep(1)
        self.assertEqual(self.wakeups(5), 0)

    def test_unsupported_leaves_by_itself(self):
        root = self.box.root / 'other'
        for d in ('proc', 'run', 'etc/vramd', 'sys/fs/cgroup'):
            (root / d).mkdir(parents=True)
        (root / 'sys/fs/cgroup/cgroup.controllers').write_text('cpu memory\n')
        self.box.stop()
        result = subprocess.run([f'{BUILD}/daemon/vramd', f'--root={root}'], capture_output=True, text=True,
                                timeout=20, check=False)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)


if __name__ == '__main__':
    main()
