# SPDX-License-Identifier: MIT
"""On the host: what the runs of a case must show. Each mark belongs to an arm; a control that misses one of its own
does not show the problem, and then the case proves nothing."""

import dataclasses
import hashlib
import math
import pathlib

import model

MIB = model.MIB


@dataclasses.dataclass
class Mark:
    arm: str
    what: str
    value: float
    at_most: bool
    bound: float
    unit: str = ''
    control: bool = False

    @property
    def ok(self):
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    @property
    def word(self):
        if self.control:
            return 'shown' if self.ok else 'NOT SHOWN'
        return 'ok' if self.ok else 'short'

    def to_json(self):
        # JSON has no infinity: what never came.
        return {'what': self.what, 'value': self.value if math.isfinite(self.value) else None,
                'relation': '<=' if self.at_most else '>=', 'bound': self.bound, 'unit': self.unit, 'result': self.word}

    def __str__(self):
        value, bound = (f'{x:.0f}' if 1000 <= x < math.inf else f'{x:.4g}' for x in (self.value, self.bound))
        return f'{self.what} {value} ({"<=" if self.at_most else ">="} {bound}) {self.unit}'.rstrip()


class Arm:
    """The frames of one run. Bytes become MiB."""

    def __init__(self, name, path):
        self.name = name
        text = pathlib.Path(path).read_bytes()
        self.digest = hashlib.md5(text).hexdigest()
        self.text = text.decode().splitlines()
        header, *lines = (line.split('\t') for line in self.text)
        self.columns = {key: [line[i] for line in lines] for i, key in enumerate(header)}
        self.programs = [key.split('.')[0] for key in header if key.endswith('.spilled')]
        self.phases = self.columns['phase']
        self.t = self.numbers('t_ms')
        self.ms = self.numbers('ms')
        self.moved = self.mib('moved')

    def numbers(self, key):
        return [float(value) if value else 0.0 for value in self.columns[key]]

    def mib(self, key):
        return [value / MIB for value in self.numbers(key)]

    @property
    def moving(self):
        """Percent of frames in which anything moved."""
        return 100 * model.mean([value > 0 for value in self.of_game(self.moved)])

    def of_game(self, values):
        """Those of frames of the game; before and after it there are others."""
        return [value for value, spilled in zip(values, self.columns['game.spilled']) if spilled]

    def words(self, key):
        """Of a column with several values a row."""
        return [float(word) for text in self.columns[key] for word in text.split()]

    def failed(self, program):
        return int(max(self.numbers(f'{program}.failed')))

    def spilled(self, program):
        return model.mean(self.of_game(self.mib(f'{program}.spilled')))

    def part(self, phase, values):
        return [value for value, name in zip(values, self.phases) if name == phase]

    def seconds_until(self, phase, program, mib):
        """From the phase's begin until the program has so much VRAM, and keeps it to the phase's end."""
        return self.seconds_until_all(phase, [value >= mib for value in self.mib(f'{program}.current')])

    def seconds_until_all(self, phase, good):
        """From the phase's begin until all its frames are good."""
        t, good = self.part(phase, self.t), self.part(phase, good)
        bad = [i for i, is_good in enumerate(good) if not is_good]
        if not bad:
            return 0.0
        return (t[bad[-1] + 1] - t[0]) / 1000 if bad[-1] + 1 < len(t) else math.inf

    def figures(self):
        moved, ms = self.of_game(self.moved), self.of_game(self.ms)
        return {
            'frames': len(ms), 'moved_mib_mean': model.mean(moved), 'moved_mib_p99': model.percentile(moved, 99),
            'moving_percent': self.moving, 'spilled_mib': {p: self.spilled(p) for p in self.programs},
            'frame_ms_mean': model.mean(ms), 'frame_ms_p99': model.percentile(ms, 99), 'frame_ms_max': max(ms),
            'failed': {p: self.failed(p) for p in self.programs},
        }


def p0(arms):
    for arm, gib in (('9-of-8', 9), ('10-of-8', 10)):
        ms = model.mean([model.frame_ms(0, s * MIB) for s in arms[arm].mib('game.spilled')])
        off = 100 * abs(ms / model.MEASURED[gib] - 1)
        yield Mark(arm, f'{ms:.1f} ms, measured {model.MEASURED[gib]}: off by', off, True, 10, '%')


def p1(arms):
    for size in ('1.125', '1.25'):
        control, policy = arms[f'control-{size}'], arms[f'vramd-{size}']
        yield Mark(control.name, 'mean moved', model.mean(control.moved), False, 4, 'MiB', control=True)
        yield Mark(control.name, 'frames that moved', control.moving, False, 95, '%', control=True)
        yield Mark(policy.name, 'p99 moved', model.percentile(policy.moved, 99), True, 0, 'MiB')
        yield Mark(policy.name, 'frames that moved', policy.moving, True, 1, '%')
        yield Mark(policy.name, 'mean frame', model.mean(policy.ms), True, model.mean(control.ms) - 5, 'ms')


def p2(arms):
    control, policy = arms['control'], arms['vramd']
    yield Mark('control', 'p99 frame', model.percentile(control.ms, 99), False, 45, 'ms', control=True)
    yield Mark('vramd', 'p99 frame', model.percentile(policy.ms, 99), True, 30, 'ms')
    yield Mark('vramd', 'mean moved', model.mean(policy.moved), True, 1, 'MiB')


def p3(arms):
    control, policy = arms['control'], arms['vramd']
    yield Mark('control', 'p99 frame', model.percentile(control.ms, 99), False, 120, 'ms', control=True)
    yield Mark('vramd', 'p99 frame', model.percentile(policy.ms, 99), True, 60, 'ms')
    yield Mark('vramd', 'moved in all', sum(policy.moved), True, sum(control.moved) / 3, 'MiB')


# What the game in front gets: all but the reserve, a 16th. At least so much of it counts as having it.
SHARE_MIB = model.VRAM_MIB * 15 / 16
ENOUGH = 0.95


def p4(arms):
    share = ENOUGH * SHARE_MIB
    control, policy = arms['control'], arms['vramd']
    before, after = (control.part(phase, control.mib('game.current'))[-1] for phase in ('started', 'more'))
    yield Mark('control', "the game's share falls by", 100 * (before - after) / SHARE_MIB, False, 5, '%', control=True)
    yield Mark('control', "the game's share at the end", 100 * after / SHARE_MIB, True, 95, '%', control=True)
    for phase, what in (('started', 'its start'), ('more', 'the browser wants more')):
        yield Mark('vramd', f"95 % of the share is the game's, after {what},",
                   policy.seconds_until(phase, 'game', share), True, 2, 's')


def p5(arms):
    for arm in arms.values():
        control = arm.name == 'control'
        used = arm.part('closed', arm.mib('game.current'))[-1]
        shares = {'menu': ('with the menu open', SHARE_MIB), 'home': ('behind the home screen', used / 2)}
        for phase, (what, share) in shares.items():
            lowest = 100 * min(arm.part(phase, arm.mib('game.current'))) / share
            if not control:
                yield Mark(arm.name, f'least of its share {what}', lowest, False, 100, '%')
        if control:
            yield Mark(arm.name, 'least of its share behind the home screen', lowest, True, 95, '%', control=True)
        else:
            yield Mark(arm.name, '95 % of what it had is back, after', arm.seconds_until('back', 'game', ENOUGH * used),
                       True, 2, 's')


def p6(arms):
    for arm in arms.values():
        control = arm.name == 'control'
        job, game = (arm.mib(f'{p}.current') for p in ('job', 'game'))
        alone = arm.part('alone', job)[-1]
        yield Mark(arm.name, "the game's share at its end", 100 * arm.part('game', game)[-1] / SHARE_MIB, control, 95,
                   '%', control=control)
        if not control:
            yield Mark(arm.name, 'the job beside the game', arm.part('game', job)[-1], True, model.VRAM_MIB / 4, 'MiB')
            yield Mark(arm.name, "95 % of its use is the job's again, after",
                       arm.seconds_until('after', 'job', ENOUGH * alone), True, 5, 's')


def p7(arms):
    for arm in arms.values():
        before = arm.part('before', arm.mib('game.current'))[-1]
        if arm.name == 'control':
            yield Mark(arm.name, 'of what it had the game has back at the end',
                       100 * arm.part('after', arm.mib('game.current'))[-1] / before, True, 95, '%', control=True)
        else:
            yield Mark(arm.name, '95 % of what it had is back, after',
                       arm.seconds_until('after', 'game', ENOUGH * before), True, 3, 's')


def p9(arms):
    for arm in arms.values():
        control = arm.name == 'control'
        median = model.percentile(arm.numbers('game.ioctl_ns'), 50) / 1e6
        yield Mark(arm.name, 'a submission, median,', median, not control, 50 if control else 5, 'ms', control=control)


def p8(arms):
    yield Mark('control', 'mean moved', model.mean(arms['control'].moved), False, 20, 'MiB', control=True)
    yield Mark('vramd', 'mean moved', model.mean(arms['vramd'].moved), True, 3, 'MiB')


PAIR = "low = capacity for the unit in front and each group above it, as dmemcg-booster and gamescope write it"


@dataclasses.dataclass
class Case:
    title: str
    control: str
    marks: callable
    stock: bool = False  # is also played on the stock kernel, as NAME-stock
    real_time: bool = False  # measures processor time, which time travel does not count
    script: str = ''  # a test of the lab, on two CPUs; the marks are for its output


CASES = {
    'P0': Case('calibration: the game alone asks for 9 and 10 GiB of 8', 'none', p0),
    'P1': Case('working set of 1.125 and 1.25 x VRAM, nobody in the background', PAIR, p1),
    'P2': Case('working set of 1.125, a browser makes and frees VRAM-only buffers', PAIR, p2),
    'P3': Case('working set of 1.125; something takes a quarter of the card for six seconds; each at its own pace',
               'vramd with Easing=0', p3),
    'P4': Case('a browser has most of the card before the game starts, and wants more while it runs', 'no vramd', p4),
    'P5': Case('the menu over the game, the home screen, and back', PAIR, p5),
    'P6': Case('an AI job in a system service beside the game', 'no vramd', p6),
    'P7': Case('suspend evicts everything; a browser draws first after it', 'no vramd', p7),
    'P8': Case('working set of 1.125, a quiet browser, and slack above the game',
               'low = capacity - 1/16 for the game, but the capacity for each group above it', p8),
    'P9': Case('what a submission of 9,000 buffers costs the CPU (real time)', PAIR, p9, real_time=True),
}
