#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kills.py [KILLS [SEED]]   kill -9 at random instants of a busy scenario: nothing stays behind.

Games of deck start and end, one or the other comes to the front, the menu opens and closes, holds are
taken and dropped, without a pause; then vramd is killed, in the middle of whatever it does. After that
either "vramd --restore" runs (which now and then is killed itself), or vramd starts again after the
games have ended. The tree must then be what it was at first: values, owners, modes, controllers.

First on a tree where dmem is off, then on one where the administrator had switched it on and set
values of his own.
"""

import os
import random
import signal
import subprocess
import sys
import time

import dbus
import dbus.lowlevel

sys.path.insert(0, '/lab/src/tests/lab/tests')
import guest  # noqa: E402

NAME, PATH, MANAGER = 'io.github.vramd1', '/io/github/vramd1', 'io.github.vramd1.Manager'
APPS = guest.user_service(1000) + '/app.slice'
CHAIN = ['/', '/user.slice', '/user.slice/user-1000.slice', guest.user_service(1000), APPS]
REGION = 'drm/0000:03:00.0/vram0'


class Busy:
    """Everything that can happen, told to vramd without waiting for an answer."""

    def __init__(self, rng):
        self.rng = rng
        self.games = {}
        self.bus = None
        self.holds = []
        self.n = 0

    def connect(self):
        self.bus = dbus.bus.BusConnection('unix:path=/run/dbus/system_bus_socket')

    def close(self):
        self.bus.close()
        self.holds.clear()

    def call(self, member, signature, *args):
        message = dbus.lowlevel.MethodCallMessage(NAME, PATH, MANAGER, member)
        message.set_no_reply(True)
        message.set_auto_start(False)
        message.append(*args, signature=signature)
        self.bus.send_message(message)
        self.bus.flush()

    def start_game(self):
        if len(self.games) < 3:
            self.n += 1
            game = guest.Group(f'{APPS}/app-steam-app{self.n}-1.scope', 1000)
            self.games[game] = game.spawn('sleep', 'infinity')

    def end_game(self):
        if self.games:
            game = self.rng.choice(list(self.games))
            self.games.pop(game)
            game.end()

    def report(self):
        report = {'source': 'gamescope', 'menu': self.rng.choice(['open', 'closed', 'unknown'])}
        fd = -1
        if self.games and self.rng.random() < 0.8:
            fd = os.pidfd_open(self.games[self.rng.choice(list(self.games))].pid)
            report['game'] = dbus.types.UnixFd(fd)
        self.call('ReportFocus', 'a{sv}', dbus.Dictionary(report, signature='sv'))
        if fd >= 0:
            os.close(fd)

    def hold(self):
        if not self.games:
            return
        fd = os.pidfd_open(self.games[self.rng.choice(list(self.games))].pid)
        self.call('Hold', 'hssa{sv}', dbus.types.UnixFd(fd), 'test', 'busy', dbus.Dictionary({}, signature='sv'))
        os.close(fd)

    def withdraw(self):
        self.call('Withdraw', '')

    def step(self):
        self.rng.choice([self.start_game, self.start_game, self.end_game, self.report, self.report,
                         self.report, self.hold, self.withdraw])()

    def end(self):
        while self.games:
            self.end_game()


class Test:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.busy = Busy(self.rng)
        self.changed = []  # lines of the tree that a kill found changed
        self.restored = {'--restore': 0, '--restore, killed itself before': 0, 'a new start': 0}
        self.log = open('/tmp/vramd.log', 'ab')
        self.daemon = None

    def start(self):
        self.daemon = guest.spawn_vramd(self.log)

    def wait_for_name(self):
        bus = self.busy.bus
        guest.wait_for(lambda: bus.name_has_owner(NAME) or self.daemon.poll() is not None, 'the bus name', 20)
        if self.daemon.poll() is not None:
            sys.exit(f'FAIL: vramd ended with {self.daemon.returncode}')

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()

    def restore(self):
        if self.rng.random() < 0.2:
            process = guest.spawn_vramd(self.log, '--restore')
            time.sleep(self.rng.uniform(0, self.restore_time))
            self.kill(process)
            self.restored['--restore, killed itself before'] += 1
        else:
            self.restored['--restore'] += 1
        start = time.monotonic()
        status = guest.spawn_vramd(self.log, '--restore').wait(20)
        self.restore_time = time.monotonic() - start
        if status != 0:
            sys.exit(f'FAIL: vramd --restore ended with {status}')

    def tree(self):
        """Without the games' own groups: what is not the default there counts, the rest comes and goes."""
        lines = []
        for line in guest.tree().splitlines():
            if '/app-steam-app' not in line:
                lines.append(line)
            elif not line.startswith(APPS) or ' subtree ' not in line and self.is_foreign(line):
                lines.append(line)
        return '\n'.join(lines)

    @staticmethod
    def is_foreign(line):
        """A game's group was made by deck: his files, with the defaults."""
        _, name, owner, mode, *values = line.split()
        default = 'max' if name == 'dmem.max' else '0'
        return owner != '1000:1000' or mode != '644' or any(v != default for v in values[1::2])

    @staticmethod
    def values(tree):
        """What is promised. With nobody in front vramd only keeps dmem on."""
        return '\n'.join(line for line in tree.splitlines()
                         if ' dmem.' in line and any(v not in ('0', 'max') for v in line.split()[4:][1::2]))

    def check(self, first, what, i, part=str):
        now = part(self.tree())
        if now != first:
            guest.show_diff(first, now)
            self.log.flush()
            subprocess.run(['tail', '-n', '60', '/tmp/vramd.log'], check=False)
            sys.exit(f'FAIL: kill {i}: something is left behind after {what}')

    def one(self, first, i):
        self.start()
        if self.rng.random() < 0.85:
            self.wait_for_name()
        for _ in range(self.rng.randint(2, 8)):
            self.busy.step()
            time.sleep(self.rng.uniform(0, 0.02))
        time.sleep(self.rng.uniform(0, 0.03))
        if self.rng.random() < 0.1:
            self.daemon.send_signal(signal.SIGTERM)
            time.sleep(self.rng.uniform(0, 0.02))
        self.kill(self.daemon)
        self.changed.append(guest.count_changed(first, self.tree()))
        if self.rng.random() < 0.7:
            self.restore()
            self.check(first, '--restore', i)
            return
        self.busy.end()
        self.start()
        self.wait_for_name()
        self.check(self.values(first), 'a new start', i, self.values)
        self.restored['a new start'] += 1
        self.kill(self.daemon)
        self.restore()
        self.check(first, '--restore after it', i)

    def run(self, kills, what):
        first = self.tree()
        self.changed.clear()
        self.restore_time = 0.05
        start = time.monotonic()
        self.busy.connect()
        for i in range(kills):
            self.one(first, i)
        self.busy.end()
        self.busy.close()
        hit = sum(n > 0 for n in self.changed)
        print(f'ok: {what}: {kills} kills in {time.monotonic() - start:.1f} s; {hit} of them with values of vramd '
              f'in the tree, in {len(set(self.changed))} different numbers of lines (up to {max(self.changed)})',
              flush=True)
        if hit < kills / 3:
            sys.exit('FAIL: too few kills met vramd at work: this test shows little')


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f'seed {seed}')
    guest.setup('deck')
    test = Test(seed)
    test.run(kills // 2, 'dmem off at first')
    for group in CHAIN:
        guest.write(group, 'cgroup.subtree_control', '+dmem')
    guest.write(APPS, 'dmem.low', f'{REGION} 1048576')
    guest.write('/user.slice', 'dmem.min', f'{REGION} 65536')
    test.run(kills - kills // 2, 'dmem on, with values of the administrator')
    print('figures: ' + ', '.join(f'{n} times put back by {how}' for how, n in test.restored.items()))


if __name__ == '__main__':
    main()
