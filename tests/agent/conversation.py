# SPDX-License-Identifier: MIT
"""What real programs say to the agent: recorded between the two of them, and played without them.

A recording is text. "== STEP" begins a step, at whose end the agent has to have reported what REPORTS says. "agent N"
is N messages of the agent, which are counted and not kept: one to KWin has the agent's own number in it. Any other line
is one message to the agent, in hexadecimal; {NAME} in it is the number of that process, of 32 bits.

"ninja -C build record-conversations" makes them anew (tests/compositors/record.py)."""

import itertools
import os
import pathlib
import re
import select
import socket
import struct
import threading
import time

HERE = pathlib.Path(__file__).parent
QUIET = 0.3  # s: a step is over when nobody has said anything for so long
GAME = 730
STEAM_CLASS = f'steam_app_{GAME}'
WINDOW = {'menu': 'unknown', 'window': True, 'appid': None}
NOBODY = {'menu': 'unknown', 'game': None}

# What the agent has to report at the end of each step, names standing for processes; None: that its word has ended.
REPORTS = {
    'x11': {
        'nobody': NOBODY,
        'the first': {**WINDOW, 'game': 'One'},
        'the second': {**WINDOW, 'game': 'Two'},
        'the first again': {**WINDOW, 'game': 'One'},
        "one of Proton's": {**WINDOW, 'game': STEAM_CLASS, 'appid': GAME},
        'nobody is left': NOBODY,
    },
    'foreign-toplevel': {
        'nobody': NOBODY,
        'the first': {**WINDOW, 'game': 'org.example.One'},
        "one of Proton's": {**WINDOW, 'game': STEAM_CLASS, 'appid': GAME},
        'the first again': {**WINDOW, 'game': 'org.example.One'},
        'nobody is left': NOBODY,
    },
    'kwin': {
        'nobody': {**NOBODY, 'compositor': 'kwin'},
        'the first': {**WINDOW, 'game': 'One', 'compositor': 'kwin'},
        'the second': {**WINDOW, 'game': 'Two'},
        'the first again': {**WINDOW, 'game': 'One'},
        "one of Proton's": {**WINDOW, 'game': STEAM_CLASS, 'appid': GAME},
        'nobody is left': NOBODY,
        'KWin ends': None,
    },
    'gamemode': {
        'a game that was there before': {'menu': 'unknown', 'game': 'One', 'window': None, 'compositor': None},
        'a further process of it': {'game': 'Two'},
        'that one ends': {'game': 'One'},
        'the game ends': None,
        'another game': {'game': 'Two'},
    },
}


def wanted(source, step, pids):
    """The report at the end of a step, or None."""
    report = REPORTS[source][step]
    return report and {key: pids.get(value, value) if key in ('game', 'compositor') else value
                       for key, value in report.items()}


# --- Where messages end: struct.error or ValueError while too little of one is there

def round_up(n, to):
    return -(-n // to) * to


def x11(data, first, from_agent):
    if first and from_agent:
        return 12 + sum(round_up(n, 4) for n in struct.unpack_from('<HH', data, 6))
    if first:
        return 8 + 4 * struct.unpack_from('<H', data, 6)[0]
    if from_agent:
        return 4 * struct.unpack_from('<H', data, 2)[0]
    is_long = data[:1] in (b'\x01', b'\x23')  # replies and events of the generic kind
    return 32 + (4 * struct.unpack_from('<I', data, 4)[0] if is_long else 0)


def wayland(data, _first, _from_agent):
    return struct.unpack_from('<I', data, 4)[0] >> 16


def dbus(data, first, from_agent):
    if first:
        end = b'BEGIN\r\n' if from_agent else b'AGREE_UNIX_FD\r\n'
        return data.index(end) + len(end)
    body, fields = struct.unpack_from('<4xI4xI', data)
    return round_up(16 + fields, 8) + body


PROTOCOLS = {'x11': x11, 'foreign-toplevel': wayland, 'kwin': dbus, 'gamemode': dbus}


class Messages:
    """A stream of bytes, cut into them."""

    def __init__(self, source, from_agent):
        self.size, self.from_agent = PROTOCOLS[source], from_agent
        self.data, self.first = b'', True

    def take(self, data):
        """The whole ones that are there now."""
        self.data += data
        whole = []
        while True:
            try:
                size = self.size(self.data, self.first, self.from_agent)
            except (struct.error, ValueError):
                return whole
            if len(self.data) < size:
                return whole
            whole.append(self.data[:size])
            self.data, self.first = self.data[size:], False


# --- Files

def path_of(source):
    return HERE / f'conversation-{source}.txt'


def load(source):
    """{step: [messages of the agent, or a text for it, ...]}"""
    steps = {}
    for line in path_of(source).read_text(encoding='ascii').splitlines():
        if line.startswith('== '):
            items = steps[line[3:]] = []
        elif line and not line.startswith('#'):
            items.append(int(line[6:]) if line.startswith('agent ') else line)
    return steps


def save(source, steps, versions):
    text = ('# SPDX-License-Identifier: MIT\n'
            f'# What was said to the source {source} by {versions}.\n'
            '# conversation.py says how to read it. Made by "ninja -C build record-conversations".\n')
    for step, items in steps.items():
        lines = [f'agent {item}' if isinstance(item, int) else item for item in items]
        text += '\n'.join([f'== {step}', *lines, ''])
    path_of(source).write_text(text, encoding='ascii')


def to_text(message, pids):
    names = {pid.to_bytes(4, 'little'): name for name, pid in pids.items()}
    pieces = re.split(b'(' + b'|'.join(map(re.escape, names)) + b')', message) if names else [message]
    return ''.join(f'{{{names[p]}}}' if p in names else p.hex() for p in pieces)


def to_message(text, pids):
    return bytes.fromhex(re.sub(r'\{([^}]*)\}', lambda m: pids[m[1]].to_bytes(4, 'little').hex(), text))


# --- Both ends

def listen(path, uid=0):
    """As that user, which is what the agent looks at."""
    listener = socket.socket(socket.AF_UNIX)
    os.seteuid(uid)
    try:
        listener.bind(str(path))
        listener.listen()
    finally:
        os.seteuid(0)
    listener.settimeout(10)
    return listener


class Recorder:
    """Between the agent and a real program; one connection."""

    def __init__(self, source, path, real, uid=0):
        self.source, self.real = source, str(real)
        self.listener = listen(path, uid)
        self.said = []  # (from_agent, message), in the order in which they were sent on
        self.steps = {}
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        agent, _ = self.listener.accept()
        with agent, socket.socket(socket.AF_UNIX) as server:
            server.connect(self.real)
            ways = {agent: (server, Messages(self.source, True)), server: (agent, Messages(self.source, False))}
            while True:
                for end in select.select(list(ways), [], [])[0]:
                    other, messages = ways[end]
                    data = end.recv(1 << 20)
                    if not data:
                        return
                    self.said += [(messages.from_agent, message) for message in messages.take(data)]
                    other.sendall(data)

    def end_step(self, name, pids):
        """Once there is silence."""
        n = -1
        while n != len(self.said):
            n = len(self.said)
            time.sleep(QUIET)
        items, self.said = self.said, []
        step = self.steps[name] = []
        for from_agent, message in items:
            if not from_agent:
                step.append(to_text(message, pids))
            elif step and isinstance(step[-1], int):
                step[-1] += 1
            else:
                step.append(1)


class Player:
    """In the place of the real program."""

    def __init__(self, source, path, pids):
        self.pids = pids
        self.listener = listen(path)
        self.messages, self.n = Messages(source, True), 0

    def accept(self):
        self.agent, _ = self.listener.accept()
        self.agent.settimeout(10)

    def close(self):
        self.listener.close()
        self.agent.close()

    def hear(self, n, step):
        """That many messages of the agent."""
        while self.n < n:
            try:
                data = self.agent.recv(1 << 16)
            except TimeoutError:
                raise AssertionError(f'{step}: the agent is {n - self.n} messages short of the recording') from None
            if not data:
                raise AssertionError(f'{step}: the agent has closed the connection')
            self.n += len(self.messages.take(data))
        self.n -= n

    def play(self, step, items):
        """What comes between two words of the agent it gets at once: it must not answer the half of it."""
        for from_agent, some in itertools.groupby(items, lambda item: isinstance(item, int)):
            if from_agent:
                self.hear(sum(some), step)
            else:
                self.agent.sendall(b''.join(to_message(item, self.pids) for item in some))

    def rest(self):
        """How many messages the agent sends in a while that were not recorded."""
        if select.select([self.agent], [], [], QUIET)[0]:
            self.n += len(self.messages.take(self.agent.recv(1 << 16)))
        return self.n
