# SPDX-License-Identifier: MIT
"""A game's life in front of vramd, told as a timeline: what happened, what was decided and why, and each
value that was written. The same story plays on the emulated tree and on a real kernel."""

import difflib
import re
import sys
import time

APPID = 1091500
WROTE = re.compile(r'^(?:<\d>)?wrote: (\S+) (\S+) (dmem\.\w+) (\S+) -> (\S+) \((.*)\)$')


def short(value):
    """'8589934592' as '8 GiB'."""
    if value == 'max':
        return value
    size = int(value)
    for unit in ('B', 'KiB', 'MiB', 'GiB'):
        if size < 1024 or unit == 'GiB':
            return f'{size:g} {unit}' if size == int(size) else f'{size:.1f} {unit}'
        size /= 1024
    return value


class Story:
    def __init__(self, machine):
        self.machine = machine
        self.start = time.monotonic()
        self.offset = 0
        self.writes = 0

    def say(self, text):
        print(f'{time.monotonic() - self.start:7.3f}  {text}', flush=True)

    def read_log(self):
        with open(self.machine.log, encoding='utf-8') as log:
            log.seek(self.offset)
            text = log.read()
        end = text.rfind('\n') + 1
        self.offset += len(text[:end].encode())
        return text[:end].splitlines()

    def show_log(self):
        """Waits until no more comes, and prints decisions and writes."""
        lines, quiet = [], 0
        while quiet < 4:
            self.machine.settle()
            fresh = self.read_log()
            lines += fresh
            quiet = 0 if fresh else quiet + 1
            time.sleep(0.02)
        for line in lines:
            found = WROTE.match(line)
            if found:
                path, region, name, old, new, reason = found.groups()
                self.writes += 1
                print(f'             {path.rsplit("/", 1)[1]} {region} {name} {short(old)} -> {short(new)}  ({reason})')
            elif re.match(r'^(<[0-6]>)?[A-Z\']', line):
                self.say('decision: ' + re.sub(r'^<\d>', '', line))

    def step(self, text, action):
        self.say('event:    ' + text)
        result = action()
        self.show_log()
        return result

    def play(self):
        m = self.machine
        print(f'vramd on {m.describe()}\n')
        before = m.tree()
        self.step('vramd starts; gamescope shows Steam', lambda: (m.start_daemon(), m.report(None, 'closed')))
        game = self.step(f'a game starts: app-steam-app{APPID}-4242.scope', lambda: m.start_game(APPID))
        self.step('the game comes to the front', lambda: m.report(game, 'closed'))
        self.step('the Steam menu opens over it', lambda: m.report(game, 'open'))
        self.step('the menu closes', lambda: m.report(game, 'closed'))
        self.step('Steam home comes to the front', lambda: (m.report(None, 'closed'), time.sleep(0.4)))
        self.step('the game comes back', lambda: m.report(game, 'closed'))
        self.step('the game ends', lambda: m.end_game(game))
        self.step('gamescope ends', m.end_session)
        status = self.step('vramd stops', m.stop_daemon)
        after = m.tree()
        print()
        if status != 0:
            print(f'vramd ended with {status}')
            return 1
        if self.writes == 0:
            print('vramd wrote nothing at all')
            return 1
        if before != after:
            sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True),
                                                       'before', 'after'))
            print('something was left behind')
            return 1
        print(f'nothing left behind: {self.writes} values written and put back, '
              f'{len(before.splitlines())} lines of the tree compared')
        return 0
