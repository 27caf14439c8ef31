#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""easing [SECONDS]: the CPU time that looking at the game in front costs. On the emulated tree: the lab's kernel counts
CPU time by its ticks of 10 ms, which are also what wakes vramd up."""

import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
import sandbox  # noqa: E402

MIB = 1 << 20
CAPACITY = next(iter(sandbox.REGIONS.values())) // MIB
LIMIT_PERCENT = 0.5
CPU_CLOCK_OF_PROCESS = 2  # clock_getcpuclockid(3)


def cpu_usec(pid):
    return time.clock_gettime_ns((~pid << 3) | CPU_CLOCK_OF_PROCESS) / 1000


def switches(pid):
    lines = pathlib.Path(f'/proc/{pid}/status').read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith('voluntary_ctxt_switches'))


def measure(box, seconds, name):
    """Percent of one CPU."""
    time.sleep(6)  # the late looks at where the game is, and the next one at how full the region is
    pid = box.daemon.pid
    cpu, n = cpu_usec(pid), switches(pid)
    time.sleep(seconds)
    cpu, n = cpu_usec(pid) - cpu, switches(pid) - n
    text = f'in {seconds} s, a game in front, {name}'
    print(f'CPU time {text}: {cpu / 1000:.2f} ms')
    print(f'waits of vramd {text}: {n} (for the time, and for each file of the emulated tree)')
    return cpu / seconds / 10000


def verdict(name, percent):
    ok = percent <= LIMIT_PERCENT
    print(f'share of a CPU, {name}: {percent:.4f} % (mark: <= {LIMIT_PERCENT}) {"ok" if ok else "short"}')
    return ok


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    why = sandbox.missing()
    if why:
        print(f'skip: {why}', file=sys.stderr)
        return 77
    with sandbox.Sandbox(os.environ['VRAMD_BUILD'], log_level='info') as box:
        box.start(config='[policy]\nEasing=0\n')
        game, source = box.process(box.unit('app-steam-app1-1.scope')), sandbox.Source(box, uid=1000)
        source.report(game)
        results = [verdict('no easing', measure(box, seconds, 'no easing'))]
        (box.root / 'etc/vramd/vramd.conf').write_text('')
        box.daemon.send_signal(signal.SIGHUP)
        for percent in (50, 92):
            box.charge(game.group, CAPACITY * percent // 100 * MIB)
            name = f'easing, its region {percent} % full'
            results.append(verdict(name, measure(box, seconds, name)))
        box.charge(game.group, 0)
    return 0 if all(results) else 3


if __name__ == '__main__':
    sys.exit(main())
