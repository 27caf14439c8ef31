# SPDX-License-Identifier: MIT
"""On the host: what the runs of the cases of the companion kernel series must show."""

import itertools

import model
from marks import Case, Mark

MIB = model.MIB
CLASSES = range(len(model.CLASS_ACCESS))


def p99(values):
    return model.percentile(values, 99)


def moved_of_control(arms, most):
    control, series = (model.mean(arms[name].moved) for name in ('control', 'series'))
    return Mark('series', 'mean moved, of control', 100 * series / control, True, most, '%')


def k1(arms):
    yield Mark('control', 'mean moved', model.mean(arms['control'].moved), False, 4, 'MiB', control=True)
    yield moved_of_control(arms, 10)


def k2(arms):
    control, series = arms['control'], arms['series']
    yield Mark('control', 'p99 frame', p99(control.ms), False, 145, 'ms', control=True)
    yield Mark('control', 'mean moved', model.mean(control.moved), False, 14, 'MiB', control=True)
    yield Mark('series', 'p99 frame', p99(series.ms), True, 45, 'ms')
    yield moved_of_control(arms, 5)
    spilled = series.mib('game.spilled')
    enough = series.part('before', spilled)[-1] + 2
    # Hard and soft phase, and a second.
    yield Mark('series', 'recovered after the burst, but for 2 MiB, after',
               series.seconds_until_all('after', [value <= enough for value in spilled]), True, 3.05, 's')


def k3(arms):
    yield Mark('control', 'p99 frame', p99(arms['control'].ms), False, 35, 'ms', control=True)
    yield Mark('series', 'p99 frame', p99(arms['series'].ms), True, 28, 'ms')


def submitted(arm):
    """What was submitted, what of it was refused, the most retries and the longest wait."""
    refused = sum(arm.failed(p) for p in arm.programs)
    done = sum(int(max(arm.numbers(f'{p}.submits'))) for p in arm.programs)
    return (done + refused, refused, max(max(arm.numbers(f'{p}.retries')) for p in arm.programs),
            max(max(arm.numbers(f'{p}.stall_ms')) for p in arm.programs))


def k4(arms):
    total, refused, _, _ = submitted(arms['control'])
    yield Mark('control', f'of {total} submissions fail', 100 * refused / total, False, 50, '%', control=True)
    total, refused, retries, stall = submitted(arms['series'])
    yield Mark('series', 'submissions', total, False, 10000)
    yield Mark('series', 'of them fail', refused, True, 0)
    yield Mark('series', 'most retries of one', retries, True, 64)
    yield Mark('series', 'longest submission', stall, True, 250, 'ms')


def k5(arms):
    control, series = arms['control'], arms['series']
    for arm in control, series:
        is_control = arm is control
        yield Mark(arm.name, 'failed', sum(arm.failed(p) for p in arm.programs), not is_control,
                   500 if is_control else 0, control=is_control)
        yield Mark(arm.name, "p99 of the compositor's submissions", p99(arm.words('compositor.took_ms')),
                   not is_control, 50 if is_control else 5, 'ms', control=is_control)
    yield Mark('series', "the compositor's longest submission: not even one hard phase,",
               max(series.words('compositor.took_ms')), True, 50, 'ms')
    yield Mark('series', "the game's frames, of control's", len(series.ms) / len(control.ms), False, 1.5, 'times')


def out_of_order(arm):
    """For each frame: whether a buffer is out while one that matters less is in."""
    out = [arm.numbers(f'game.out{i}') for i in CLASSES]
    inside = [arm.numbers(f'game.in{i}') for i in CLASSES]
    return [any(out[high][row] and inside[low][row] for low, high in itertools.combinations(CLASSES, 2))
            for row in range(len(arm.t))]


def k6(arms):
    control, series = arms['control'], arms['series']
    yield Mark('control', 'out of order when evicted', sum(control.part('evicted', out_of_order(control))), False, 1,
               'times of 4', control=True)
    yield Mark('series', 'out of order when evicted', sum(series.part('evicted', out_of_order(series))), True, 0,
               'times of 4')
    for phase, what in (('draws', 'too much for the card'), ('turned', 'priorities change')):
        wrong, moved = series.part(phase, out_of_order(series)), series.part(phase, series.moved)
        unsettled = [wrong[i] or moved[i] > 0 for i in range(len(wrong))]
        yield Mark('series', f'{what}: frames until all is in order and nothing moves',
                   max((i + 1 for i, bad in enumerate(unsettled) if bad), default=0), True, 3)


def k7(arms):
    yield Mark('control', 'mean moved', model.mean(arms['control'].moved), False, 125, 'MiB', control=True)
    yield Mark('series', 'mean moved', model.mean(arms['series'].moved), True, 5, 'MiB')


def k8(arms):
    control, series = (model.percentile(arms[arm].numbers('game.ioctl_ns'), 50) / 1e6 for arm in ('control', 'series'))
    yield Mark('control', 'a submission, median,', control, False, 50, 'ms', control=True)
    yield Mark('series', 'a submission, median,', series, True, 3, 'ms')
    yield Mark('series', 'times faster than control', control / series, False, 50)


def different(arm, other):
    """Rows that are not the same, the header included."""
    return sum(a != b for a, b in itertools.zip_longest(arm.text, other.text))


def k9(arms):
    yield Mark('control', 'frames that differ from the stock kernel', different(arms['control'], arms['stock-floor']),
               False, 1, control=True)
    for name in (name for name in arms if name != 'control' and not name.startswith('stock-')):
        yield Mark(name, 'frames that differ from the stock kernel', different(arms[name], arms[f'stock-{name}']), True,
                   0)


def k10(arms):
    for name, arm in arms.items():
        control = name.startswith('control')
        current = arm.mib('game.current')
        lost = (arm.part('before', current)[-1] - arm.part('after', current)[-1]) / 2
        yield Mark(name, 'buffers lost of 96', lost, not control, 1 if control else 0, control=control)


def k11(arms):
    for name, arm in arms.items():
        first, wakes, late, off, leaves, evictions = (
            arm.words(key)[-1] for key in ('first_ms', 'wakes', 'late', 'off', 'off_leaves', 'evictions'))
        yield Mark(name, 'evictions', evictions, False, 100 if name == 'storm' else 50, control=True)
        yield Mark(name, 'woken after', first, True, 30, 'ms')
        yield Mark(name, 'wakes in any second', wakes, True, 100)
        yield Mark(name, 'what was heard last is off by', late, True, 0)
        yield Mark(name, "the counters of user.slice and the card's differ by", off, True, 0)
        yield Mark(name, 'and those of all programs, added, by', leaves, True, 0)


def k12(lines):
    """Of tests/vramsim/locking.sh: a line for each check."""
    passed, failed = (sum(line.startswith(word) for line in lines) for word in ('ok: ', 'FAIL'))
    yield Mark('series', 'checks that pass', passed, False, 1)
    yield Mark('series', 'that fail', failed, True, 0)


def k13(arms):
    """One image is 1 MiB."""
    control, series = (arm.part('image', arm.moved) for arm in (arms['control'], arms['series']))
    yield Mark('control', 'worst image evicts', max(control), False, model.VRAM_MIB / 2, 'MiB', control=True)
    yield Mark('series', 'images', len(series), False, 100)
    yield Mark('series', 'mean of an image', model.mean(series), True, 2, 'MiB')
    yield Mark('series', 'worst image', max(series), True, 8, 'MiB')


def k14(arms):
    for size, least, most in (('1.125', 22, 19.6), ('1.25', 30, 29.8)):
        control, vramd = f'control-{size}', f'vramd-{size}'
        yield Mark(control, 'mean frame', model.mean(arms[control].ms), False, least, 'ms', control=True)
        yield Mark(vramd, 'mean frame', model.mean(arms[vramd].ms), True, most, 'ms')
    yield Mark('vramd-1.125', 'p99 frame', p99(arms['vramd-1.125'].ms), True, 33.3, 'ms')


ALL_LOW = 'low = capacity for the game'
CASES = {
    'K1': Case('working set of 1.125, throttling alone', f'{ALL_LOW}, no throttling', k1),
    'K2': Case('working set of 1.125; a quarter of the card is needed in VRAM for 100 frames', f'{ALL_LOW} and a floor',
               k2),
    'K3': Case('working set of 1.125, a browser makes and frees VRAM-only buffers', f'{ALL_LOW} and a floor', k3),
    'K4': Case('four programs need twice the card, all of it in VRAM', 'no back-off', k4),
    'K5': Case('working set of 1.125, each at its own pace', f'{ALL_LOW}, no throttling, no back-off', k5),
    'K6': Case('buffers of four priorities: who is evicted, and what is in VRAM at last', 'no order', k6),
    'K7': Case('small buffers of four priorities, and images in one piece', 'order without windows', k7),
    'K8': Case('what a submission of 9,000 buffers costs the CPU (real time)', f'{ALL_LOW} and a floor', k8,
               real_time=True),
    'K9': Case('all knobs 0, beside the stock kernel', 'all knobs set', k9, stock=True),
    'K10': Case('a system service beside a quiet protected game', 'the stock kernel', k10, stock=True),
    'K11': Case('dmem.events in a burst and in a storm', 'none', k11),
    'K12': Case('everything at once on two CPUs, lockdep watching (real time)', 'none', k12, real_time=True,
                script='tests/vramsim/locking.sh'),
    'K13': Case('a hundred images in one piece on a card full of small buffers', 'LRU order', k13),
    'K14': Case('working set of 1.125 and 1.25 in four classes, with a browser and a menu', 'all buffers alike', k14),
}
