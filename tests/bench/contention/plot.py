# SPDX-License-Identifier: MIT
"""On the host: frame times and VRAM over time, drawn by gnuplot: the control on the left, on the right vramd or the
companion series."""

import math
import pathlib
import subprocess
import tempfile

import model

WIDTH, LEGEND, HEAD, FRAMES, VRAM = 1000, 30, 48, 150, 180  # pixels; the last three of a case
COLOURS = {'game': '#4c78a8', 'compositor': '#e45756', 'browser': '#f2a541', 'steam': '#72a886', 'job': '#9d75b6',
           'second': '#8ab0d8', 'third': '#2f4b6e', 'fourth': '#b9cde4'}
ORDER = tuple(COLOURS)  # from the bottom up

SETTINGS = """\
set terminal svg size {width},{height} font 'sans-serif,11' background '#ffffff' noenhanced
set output '{output}'
set multiplot
set border 3 lc rgb '#888888'
set tics nomirror out scale 0.5 textcolor rgb '#444444'
set grid ytics lc rgb '#dddddd' lt 1 lw 0.5
set style fill solid 0.85 noborder
"""


def quote(text):
    return "'" + str(text).replace("'", "''") + "'"


def write_data(arm, path):
    """Columns: seconds, frame ms, low of the game, and for each program the top of its band."""
    programs = [p for p in ORDER if p in arm.programs]
    bands = [arm.mib(f'{p}.current') for p in programs]
    low = arm.mib('game.low')
    with open(path, 'w', encoding='ascii') as f:
        for i, t in enumerate(arm.t):
            tops, total = [], 0.0
            for band in bands:
                total += band[i]
                tops.append(f'{total:.3f}')
            print(f'{t / 1000:.4f}', f'{arm.ms[i]:.3f}', f'{low[i]:.3f}', *tops, file=f)
    return programs


def phases(arm):
    """Where each phase begins, in seconds; nowhere, where they only alternate."""
    parts = [(t / 1000, name) for t, name, before in zip(arm.t, arm.phases, [None, *arm.phases]) if name != before]
    return parts if len(parts) == len({name for _, name in parts}) else []


def step(top):
    """Between two tics: 1, 2 or 5 times a power of ten, and about four of them."""
    power = 10 ** math.floor(math.log10(top / 4))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= top / 4.5)


class Page:
    """Places panels by pixels from the top."""

    def __init__(self, output, height):
        self.height = height
        self.lines = [SETTINGS.format(output=str(output).replace("'", "''"), width=WIDTH, height=height)]

    def text(self, x, y, text, size=11, colour='#000000'):
        self.lines.append(f'set label {quote(text)} at screen {x / WIDTH:.4f},{1 - y / self.height:.4f} '
                          f"font 'sans-serif,{size}' textcolor rgb '{colour}' front")

    def legend(self, programs):
        x = 62
        for name in [p for p in ORDER if p in programs]:
            self.text(x, 16, '\u25a0 ' + name, 12, COLOURS[name])
            x += 110
        self.text(x, 16, '- - dmem.low of the game', 12)

    def panel(self, column, top, height, settings, plots):
        left = 62 + column * (WIDTH - 70) // 2
        right = left + (WIDTH - 70) // 2 - 50
        self.lines += [f'set lmargin at screen {left / WIDTH:.4f}', f'set rmargin at screen {right / WIDTH:.4f}',
                       f'set tmargin at screen {1 - top / self.height:.4f}',
                       f'set bmargin at screen {1 - (top + height) / self.height:.4f}', *settings,
                       'plot ' + ', \\\n  '.join(plots), 'unset label', 'unset arrow']


def draw_arm(page, column, top, arm, data, limits):
    frame_max, end = limits
    programs = write_data(arm, data)
    x = [f'set xrange [0:{end:.3f}]']
    parts = phases(arm)
    marks = [f'set arrow from {t:.3f}, graph 0 to {t:.3f}, graph 1 nohead lc rgb "#aaaaaa" dt 2' for t, _ in parts[1:]]
    names = [f'set label {quote(name)} at {t:.3f}, graph 1 offset 0.4,0.5 font "sans-serif,9" textcolor rgb "#666666"'
             for t, name in parts if len(parts) > 1]
    figures = arm.figures()
    page.text(62 + column * (WIDTH - 70) // 2, top - 16, f'{arm.name}: mean {figures["frame_ms_mean"]:.1f} ms, '
              f'p99 {figures["frame_ms_p99"]:.1f} ms, max {figures["frame_ms_max"]:.1f} ms')
    page.panel(column, top + 8, FRAMES - 40,
               [*x, *marks, *names, f'set yrange [0:{frame_max:.1f}]', f'set ytics {step(frame_max):g}',
                'set format x ""', 'unset xlabel',
                'set ylabel "frame, ms" offset 1' if column == 0 else 'unset ylabel'],
               [f'{quote(data)} using 1:2 with lines lw 1.2 lc rgb "#333333" notitle'])
    plots = []
    for i, program in enumerate(programs):
        below = f'${3 + i}' if i else '0'
        plots.append(f'{quote(data)} using 1:({below}):{4 + i} with filledcurves lc rgb "{COLOURS[program]}" '
                     'notitle')
    if any(arm.numbers('game.low')):
        plots.append(f'{quote(data)} using 1:3 with lines lw 1.5 dt 2 lc rgb "#000000" notitle')
    page.panel(column, top + FRAMES - 16, VRAM - 62,
               [*x, *marks, f'set yrange [0:{model.VRAM_MIB}]', 'set format x "%g"', 'set ytics 64',
                'set ylabel "VRAM, MiB" offset 1' if column == 0 else 'unset ylabel', 'set xlabel "s" offset 0,0.9'],
               plots)


def draw_case(page, top, name, case, pair, folder):
    page.text(12, top + 14, f'{name}  {case.title}', 14)
    page.text(12, top + 30, f'control: {case.control}', 9)
    # What is far above nearly all frames would hide them; the text has it.
    frame_max = 1.15 * max(min(max(arm.ms), 2 * model.percentile(arm.ms, 99)) for arm in pair)
    end = max(arm.t[-1] + arm.ms[-1] for arm in pair) / 1000
    for column, arm in enumerate(pair):
        draw_arm(page, column, top + HEAD + 14, arm, folder / f'{name}.{arm.name}', (frame_max, end))


def pairs(runs, cases):
    """The first control of each case, and vramd's arm beside it."""
    for name, arms in runs.items():
        control = next((arm for key, arm in arms.items() if key.startswith('control')), None)
        if control:
            others = (control.name.replace('control', other) for other in ('vramd', 'series', 'floor'))
            yield name, cases[name], (control, next(arms[other] for other in others if other in arms))


def draw(output, runs, cases):
    shown = list(pairs(runs, cases))
    each = HEAD + FRAMES + VRAM
    page = Page(pathlib.Path(output).resolve(), LEGEND + each * len(shown))
    page.legend({program for _, _, pair in shown for arm in pair for program in arm.programs})
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, case, pair) in enumerate(shown):
            draw_case(page, LEGEND + i * each, name, case, pair, pathlib.Path(folder))
        subprocess.run(['gnuplot'], input='\n'.join([*page.lines, 'unset multiplot', '']), text=True, check=True)
