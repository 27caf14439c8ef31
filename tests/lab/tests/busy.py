#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""busy.py [--valgrind] [STEPS [SEED]]   the busy scenario of kills.py without kills, for a vramd that watches
itself: built with sanitizers, or under valgrind. Regions come and go, the configuration is read again, the
bus restarts. At the end it must exit with 0 and leave nothing behind."""

import contextlib
import pathlib
import random
import signal
import subprocess
import sys
import time

import dbus

sys.path.insert(0, '/lab/src/tests/lab/tests')
import guest  # noqa: E402
from kills import APPS, CHAIN, Busy, NAME  # noqa: E402

VALGRIND = ('valgrind', '--quiet', '--error-exitcode=99', '--leak-check=full', '--errors-for-leak-kinds=definite',
            '--show-leak-kinds=definite', '--track-fds=no')
GPU = pathlib.Path('/sys/bus/pci/devices/0000:0c:00.0')


def hotplug():
    if GPU.exists():
        (GPU / 'remove').write_text('1')
    else:
        pathlib.Path('/sys/bus/pci/rescan').write_text('1')


def restart_bus(busy):
    busy.close()
    subprocess.run(['systemctl', 'restart', 'dbus.service', 'systemd-logind.service'], check=True)
    busy.connect()


def main():
    wrapper = VALGRIND if sys.argv[1:2] == ['--valgrind'] else ()
    numbers = [int(a) for a in sys.argv[1:] if a != '--valgrind']
    steps = numbers[0] if numbers else 400
    seed = numbers[1] if len(numbers) > 1 else random.randrange(1 << 32)
    print(f'seed {seed}')
    rng = random.Random(seed)
    guest.setup('deck')
    # As it stays from now on, so that games need not be told from the rest of the tree.
    for group in CHAIN + [APPS.replace('app.slice', 'session.slice')]:
        with contextlib.suppress(FileNotFoundError):
            guest.write(group, 'cgroup.subtree_control', '+dmem')
    first = [line for line in guest.tree().splitlines() if '/session.slice' not in line]
    busy = Busy(rng)
    with open('/tmp/vramd.log', 'ab') as log:
        daemon = guest.spawn_vramd(log, wrapper=wrapper)
    busy.connect()
    guest.wait_for(lambda: busy.bus.name_has_owner(NAME) or daemon.poll() is not None, 'the bus name', 60)
    start = time.monotonic()
    for i in range(1, steps + 1):
        busy.step()
        time.sleep(rng.uniform(0, 0.02))
        if i % 40 == 0:
            hotplug()
        if i % 50 == 0:
            daemon.send_signal(signal.SIGHUP)
        if i == steps // 2:
            restart_bus(busy)
            # Or its end would be that of a vramd that has not come back yet.
            guest.wait_for(lambda: busy.bus.name_has_owner(NAME) or daemon.poll() is not None, 'the bus name', 60)
        if daemon.poll() is not None:
            break
    busy.end()
    if not GPU.exists():
        hotplug()
    with contextlib.suppress(dbus.DBusException):
        busy.close()
    daemon.send_signal(signal.SIGTERM)
    status = daemon.wait(60)
    log = pathlib.Path('/tmp/vramd.log').read_text(errors='replace')
    writes = log.count('wrote: ')
    if status != 0:
        print(log[-8000:])
        sys.exit(f'FAIL: vramd ended with {status} after {i} steps')
    now = [line for line in guest.tree().splitlines() if '/session.slice' not in line]
    if now != first:
        guest.show_diff('\n'.join(first), '\n'.join(now))
        sys.exit('FAIL: something is left behind')
    if writes < steps / 4:
        sys.exit(f'FAIL: only {writes} values written: this test shows little')
    print(f'ok: {steps} steps in {time.monotonic() - start:.1f} s, {writes} values written, nothing to complain about')


if __name__ == '__main__':
    main()
