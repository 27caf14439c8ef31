#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""memory: what vramd has for itself after a busy time. On the emulated tree, since the lab's kernel does not tell
(no /proc/PID/smaps_rollup in User-Mode Linux)."""

import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
import sandbox  # noqa: E402

LIMIT_MIB = 4
GAMES = 32
ROUNDS = 20


def private_mib(pid):
    lines = pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(('Private_Clean:', 'Private_Dirty:'))) / 1024


def busy(box):
    """Games come and go, take turns in front, are held, and everything is asked for again and again."""
    source = sandbox.Source(box, uid=1000)
    for n in range(ROUNDS):
        games = [box.process(box.unit(f'app-steam-app{n * GAMES + i}-1.scope')) for i in range(GAMES)]
        holds = [source.manager.Hold(sandbox.dbus.types.UnixFd(g.pidfd()), 'bench', 'busy',
                                     sandbox.dbus.Dictionary({}, signature='sv')) for g in games]
        for game in games:
            source.report(game, menu='open')
        source.manager.ListGames()
        source.manager.ListHolds()
        source.manager.DumpByFileDescriptor().take()
        box.daemon.send_signal(signal.SIGHUP)
        del holds
        source.report()
        for game in games:
            game.kill()
            box.processes.remove(game)
            sandbox.wait_for(lambda: remove(box, game.group), 'an empty group')


def remove(box, group):
    try:
        box.rmdir(group)
    except OSError:
        return False
    return True


def main():
    why = sandbox.missing()
    if why:
        print(f'skip: {why}', file=sys.stderr)
        return 77
    with sandbox.Sandbox(os.environ['VRAMD_BUILD'], log_level='info') as box:
        box.start()
        print(f'memory at first: {private_mib(box.daemon.pid):.2f} MiB private')
        busy(box)
        mib = private_mib(box.daemon.pid)
    ok = mib <= LIMIT_MIB
    print(f'memory after {ROUNDS * GAMES} games: {mib:.2f} MiB private (mark: <= {LIMIT_MIB}) {"ok" if ok else "short"}')
    return 0 if ok else 3


if __name__ == '__main__':
    sys.exit(main())
