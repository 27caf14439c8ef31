#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kill -9 at each single step: before the first, the second, ... system call with which vramd changes
anything: parameters of the kernel, protection of a game, room that is made for it, and its end. After each
"vramd --restore" makes the tree what it was at first. Where kills.py hopes, this knows; but it knows only
these stories."""

import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, '/lab/src/tests/lab/tests')
import guest  # noqa: E402

CALLS = ('write', 'pwrite64', 'fchownat', 'fchmodat', 'renameat', 'unlinkat')
APPS = guest.user_service(1000) + '/app.slice'
CONFIG = pathlib.Path('/etc/vramd/vramd.conf')
GPU = '0000:03:00.0'


class Browser:
    """Holds memory that a game wants to find free."""
    MIB = 16

    def __init__(self):
        self.group = guest.Group(f'{APPS}/app-browser-1.scope', 1000)
        # In its group before it opens the GPU.
        self.process = self.group.spawn('sh', '-c', 'read go; exec "$@"', 'sh', guest.BUILD / 'tests/vramsim/vsim',
                                        'hold', '--device', GPU, '--size', '2M', '--count', str(self.MIB // 2),
                                        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.process.stdin.close()
        guest.wait_for(lambda: self.uses(self.MIB), 'a browser')

    def uses(self, mib):
        return f'drm/{GPU}/vram0 {mib << 20}\n' in (guest.path_of(self.group.path) / 'dmem.current').read_text()

    def refill(self):
        self.process.send_signal(signal.SIGUSR1)
        guest.wait_for(lambda: self.uses(self.MIB), 'the browser takes it back')

    def made_room(self):
        ceilings = (guest.path_of(self.group.path) / 'dmem.max').read_text()
        return self.uses(0) and f'drm/{GPU}/vram0 max\n' in ceilings


def protected(group):
    try:
        return ' 0\n' not in (guest.path_of(group) / 'dmem.low').read_text()
    except OSError:
        return False


def story(log, game, browser, call, n):
    """True if the nth call of that kind was reached, and killed vramd."""
    if browser:
        browser.refill()
    tracer = guest.spawn_vramd(log, wrapper=('strace', '-qq', '-o', '/dev/null', '-e', f'trace={call}',
                                             '-e', f'inject={call}:signal=SIGKILL:when={n}'), level='err')
    guest.wait_for(lambda: tracer.poll() is not None or
                   (protected(game.path) and (not browser or browser.made_room())), 'protection or death', 30)
    if tracer.poll() is None:
        subprocess.run(['pkill', '-TERM', '-P', str(tracer.pid)], check=False)
    status = tracer.wait(30)
    if status not in (0, -signal.SIGKILL):
        sys.exit(f'FAIL: vramd ended with {status} at {call} {n}')
    return status != 0


def kill_each(log, what, browser=None):
    game = guest.Group(f'{APPS}/app-steam-app100-1.scope', 1000)
    game.spawn('sleep', 'infinity')
    first = guest.tree()
    kills, changed = {}, 0
    for call in CALLS:
        n = 0
        while story(log, game, browser, call, n + 1):
            n += 1
            changed += guest.tree() != first
            status = guest.spawn_vramd(log, '--restore').wait(20)
            now = guest.tree()
            if status != 0 or now != first:
                guest.show_diff(first, now)
                sys.exit(f'FAIL: {what}: killed before {call} {n}, something is left behind ({status})')
        kills[call] = n
    if guest.tree() != first:
        guest.show_diff(first, guest.tree())
        sys.exit(f'FAIL: {what}: something is left behind without a kill')
    n = sum(kills.values())
    if changed < n / 2:
        sys.exit(f'FAIL: {what}: only {changed} of {n} kills found a change: this test shows little')
    print(f'ok: {what}: killed before each of {n} calls, {changed} times with the tree changed: ' +
          ', '.join(f'{name} {count}' for name, count in kills.items()), flush=True)
    game.end()


def main():
    guest.setup('deck')
    subprocess.run(['systemctl', 'stop', 'vramd.service'], check=True)
    log = open('/tmp/vramd.log', 'ab')
    # His service manager makes the files of new groups his: so owners change as well.
    groups = ('/', '/user.slice', '/user.slice/user-1000.slice', guest.user_service(1000), APPS)
    for group in groups:
        guest.write(group, 'cgroup.subtree_control', '+dmem')
    kill_each(log, 'dmem on at first')
    CONFIG.parent.mkdir(exist_ok=True)
    CONFIG.write_text('[game 100]\nMakeRoom=100%\n')
    browser = Browser()
    kill_each(log, 'room is made', browser)
    browser.group.end()
    CONFIG.unlink()
    for group in reversed(groups):
        guest.write(group, 'cgroup.subtree_control', '-dmem')
    kill_each(log, 'dmem off at first')


if __name__ == '__main__':
    main()
