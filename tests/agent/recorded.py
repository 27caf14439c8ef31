# SPDX-License-Identifier: MIT
"""What gamescope writes to the root window in one scenario: how to see it, and the recording of the real one.

A look of gamescope's at the focus is six properties, one after the other, in this order; here it is a line of text."""

import os
import pathlib
import re
import subprocess
from typing import NamedTuple

from desk import wait_for

RECORDING = pathlib.Path(__file__).with_name('gamescope-3.16.txt')
NAMES = {'apps': 'GAMESCOPE_FOCUSABLE_APPS', 'windows': 'GAMESCOPE_FOCUSABLE_WINDOWS', 'app': 'GAMESCOPE_FOCUSED_APP',
         'gfx': 'GAMESCOPE_FOCUSED_APP_GFX', 'window': 'GAMESCOPE_FOCUSED_WINDOW',
         'display': 'GAMESCOPE_FOCUS_DISPLAY'}
STEAM, GAME = 769, 1091500

# What the agent has to report at the end of each step. A window's name stands for its process.
REPORTS = {
    'Steam starts': {'game': None, 'running': None},
    'the game starts': {'game': None, 'running': ['game']},
    'it comes to the front': {'game': 'game', 'appid': GAME, 'menu': 'closed', 'running': None},
    'the menu opens': {'game': 'game', 'appid': GAME, 'menu': 'open', 'running': None},
    'the menu closes': {'game': 'game', 'menu': 'closed'},
    'a notification': {'game': 'game', 'menu': 'closed'},
    'home': {'game': None, 'menu': 'closed', 'running': ['game']},
    'the game again': {'game': 'game', 'appid': GAME, 'menu': 'closed', 'running': None},
    'the game ends': {'game': None, 'running': None},
}


class Window(NamedTuple):
    xid: int
    appid: int
    pid: int
    display: str


def numbers(line, name):
    found = re.fullmatch(rf'{name}\(CARDINAL\) = ((?:\d+(?:, )?)*)', line)
    if not found:
        raise AssertionError(f'{line!r} in the place of {name}')
    return [int(v) for v in found[1].split(', ')] if found[1] else []


def display_of(values):
    """Its text is in the first item; there are as many as the text has bytes, the rest is stray memory."""
    text = values[0].to_bytes(4, 'little').rstrip(b'\0').decode()
    if len(values) != len(text) + 1:
        raise AssertionError(f'{values}: is not {text!r} as gamescope writes it')
    return text


def look_of(lines, windows):
    """Six lines of xprop as one of text, with the windows' names."""
    v = {key: numbers(line, name) for (key, name), line in zip(NAMES.items(), lines, strict=True)}
    display = display_of(v['display'])
    names = {tuple(w[:3]): name for name, w in windows.items()}
    listed = [names[tuple(v['windows'][i:i + 3])] for i in range(0, len(v['windows']), 3)]
    shown = [name for name, w in windows.items() if v['window'] == [w.xid] and display == w.display]
    if len(shown) != len(v['window']):
        raise AssertionError(f'{v["window"]} on {display} is none of {windows}')
    fields = {**v, 'windows': listed, 'window': shown, 'display': [display]}
    return ' '.join(f'{key}={",".join(map(str, fields[key]))}' for key in NAMES)


class Spy:
    """Sees each property that is written to a display's root window."""

    def __init__(self, desk, display):
        self.process = desk.spawn('xprop', '-root', '-spy', *NAMES.values(), env={'DISPLAY': display},
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text, self.last = '', None

    def looks(self, windows):
        """Those since the last call that differ from the one before."""
        self.text += (self.process.stdout.read() or b'').decode()
        *lines, self.text = self.text.split('\n')
        whole = len(lines) // len(NAMES) * len(NAMES)
        self.text = '\n'.join([*lines[whole:], self.text])
        new = []
        for i in range(0, whole, len(NAMES)):
            look = look_of(lines[i:i + len(NAMES)], windows)
            if look != self.last:
                new.append(look)
            self.last = look
        return new

    def wait(self, windows, *words):
        """The new looks, up to the first one that has all these words."""
        seen = []

        def right():
            seen.extend(self.looks(windows))
            return self.last and set(words) <= set(self.last.split(' '))
        try:
            wait_for(right, ' '.join(words))
        except TimeoutError as e:
            raise AssertionError(f'{e}; last: {self.last}') from None
        return seen


def load():
    """{step: [look, ...]}"""
    steps = {}
    for line in RECORDING.read_text(encoding='ascii').splitlines():
        if line.startswith('== '):
            looks = steps[line[3:]] = []
        elif line and not line.startswith('#'):
            looks.append(line)
    return steps


def save(steps, version):
    text = ('# SPDX-License-Identifier: MIT\n'
            f'# What gamescope {version} writes to the root window of its first X server, a look at the focus a line,\n'
            '# without those that are equal to the one before. Made by tests/compositors/gamescope --record.\n')
    for step, looks in steps.items():
        text += '\n'.join([f'== {step}', *looks, ''])
    RECORDING.write_text(text, encoding='ascii')


def wanted(step, pids):
    """The report at the end of a step, with processes' numbers for names."""
    report = dict(REPORTS[step])
    report['game'] = pids.get(report['game'])
    if report.get('running'):
        report['running'] = [pids[name] for name in report['running']]
    return report
