# SPDX-License-Identifier: MIT
"""In the guest: what happens in each case. A case has a scenario, arms with a booster each, and perhaps parameters of
vramsim, and real time."""

import model
from boosters import Booster, Pair, Slack, Vramd
from stage import Stage

# At their own pace: a submission holds its locks for a millisecond, in place of what the GPU computes, and moves take
# the time that they take on the scaled link (bw_mib_per_ms).
HOLD_US = 1000
GAME_PACE = {'hold_us': HOLD_US, 'think': f'{round(model.FRAME_MS * 1000) - HOLD_US}us',
             'spilled_mib_ns': round(model.spilled_ms(model.MIB) * 1e6)}
COMPOSITOR_PACE = {'hold_us': HOLD_US, 'period': '16667us'}
PROGRAM_PACE = {'hold_us': HOLD_US, 'think': '33ms'}
LINK_MIB_MS = round(model.LINK_MIB_MS / model.SCALE)
LINK = f'bw_mib_per_ms={LINK_MIB_MS}'


def game_in_front(stage, game_mib, background=None, frames=900, **game):
    """A compositor, perhaps somebody in the background, then the game in front: for so many frames."""
    stage.begin(stage.add_compositor())
    if background:
        stage.begin(stage.add('browser', 'app-browser-1.scope', 'program', **background))
    stage.begin_front(stage.add_game(game_mib, **game))
    stage.frames(frames, 'play')


def working_set(percent):
    """MiB of a game that asks for so many percent of the card."""
    return 256 * percent / 100


def p0(stage, frames, percent):
    """The game alone: what it asks for beyond the card is what lies outside."""
    stage.begin_front(stage.add_game(working_set(percent)))
    stage.frames(frames, 'play')


def p1(stage, frames, percent):
    game_in_front(stage, working_set(percent), frames=frames)


def p2(stage, frames):
    game_in_front(stage, working_set(112.5), background={'size': '24M', 'churn': '2M'}, frames=frames)


def p3(stage, frames):
    """Something opens that needs a quarter of the card for six seconds."""
    del frames
    stage.begin(stage.add_compositor(**COMPOSITOR_PACE))
    stage.begin(stage.add('browser', 'app-browser-1.scope', 'program', size='16M', **PROGRAM_PACE))
    stage.browser.tell('grow-only 8M')
    stage.begin_front(stage.add_game(working_set(112.5), **GAME_PACE))
    stage.run(9, 'before')
    stage.browser.tell('grow-only 64M')
    stage.run(6, 'burst')
    stage.browser.tell('shrink')
    stage.browser.tell('grow-only 8M')
    stage.run(15, 'after')


def p4(stage, frames):
    """A browser holds most of the card before the game starts; while it runs, something opens for three seconds that
    has to lie in VRAM, and then the browser wants more at once, before the game draws again."""
    del frames
    stage.begin(stage.add_compositor())
    stage.begin(stage.add('browser', 'app-browser-1.scope', 'program', size='160M'))
    stage.seconds(1, 'before')
    stage.begin_front(stage.add_game(working_set(100)))
    stage.seconds(4, 'started')
    stage.browser.tell('grow-only 64M')
    stage.seconds(3, 'burst')
    stage.browser.tell('shrink')
    stage.browser.tell('grow 64M')
    stage.seconds(4, 'more')


def p5(stage, frames):
    """Steam's menu over the game, then Steam's home screen, then back. The game goes on drawing behind them."""
    del frames
    stage.begin(stage.add_compositor())
    steam = stage.add('steam', 'steam-launcher.service', 'program', size='8M')
    stage.begin(steam)
    stage.begin_front(stage.add_game(working_set(100)))
    stage.seconds(3, 'play')
    stage.front(menu='open')
    steam.tell('grow 16M')
    stage.seconds(3, 'menu')
    steam.tell('shrink')
    stage.front(menu='closed')
    stage.seconds(3, 'closed')
    stage.booster.home(steam, stage.compositor)
    steam.tell('grow-only 32M')
    steam.tell('grow 160M')
    stage.seconds(5, 'home')
    steam.tell('shrink')
    steam.tell('grow 96M')
    stage.front(menu='closed')
    stage.seconds(4, 'back')


def p6(stage, frames):
    """An AI job in a service of the machine, before, beside and after the game."""
    del frames
    stage.begin(stage.add_compositor())
    job = stage.add('job', 'ollama.service', 'program', slice_='system.slice', system=True, size='160M', largest='4M')
    stage.begin(job)
    stage.seconds(2, 'alone')
    stage.begin_front(stage.add_game(working_set(100)))
    stage.seconds(4, 'game')
    stage.end_game()
    stage.seconds(6, 'after')


def p7(stage, frames):
    """The machine sleeps: drivers then evict everything. The browser draws first afterwards."""
    del frames
    stage.begin(stage.add_compositor())
    stage.begin_front(stage.add_game(working_set(100)))
    stage.begin(stage.add('browser', 'app-browser-1.scope', 'program', size='160M'))
    stage.seconds(3, 'before')
    stage.sleep()
    stage.browser.tell('frame')
    stage.seconds(5, 'after')


def p9(stage, frames, most):
    """9,000 buffers; what the submission of all of them costs. With the control each takes seconds."""
    game_in_front(stage, working_set(112.5), frames=min(frames, most), smallest='16K', largest='58K')


def p8(stage, frames):
    game_in_front(stage, working_set(112.5), background={'size': '24M'}, frames=frames)


CASES = {
    'P0': (p0, {'9-of-8': (Booster(), 112.5), '10-of-8': (Booster(), 125)}),
    'P1': (p1, {'nobody-1.125': (Booster(), 112.5), 'control-1.125': (Pair(), 112.5), 'vramd-1.125': (Vramd(), 112.5),
                'nobody-1.25': (Booster(), 125), 'control-1.25': (Pair(), 125), 'vramd-1.25': (Vramd(), 125)}),
    'P2': (p2, {'nobody': (Booster(),), 'control': (Pair(),), 'vramd': (Vramd(),)}),
    'P3': (p3, {'control': (Vramd('[policy]\nEasing=0\n'),), 'vramd': (Vramd(),)}, LINK),
    'P4': (p4, {'control': (Booster(),), 'vramd': (Vramd(),)}),
    'P5': (p5, {'control': (Pair(),), 'vramd': (Vramd(),)}),
    'P6': (p6, {'control': (Booster(),), 'vramd': (Vramd('[service ollama]\nLow=25%\nMax=25%\n'),)}),
    'P7': (p7, {'control': (Booster(),), 'vramd': (Vramd(),)}),
    'P8': (p8, {'control': (Slack(),), 'vramd': (Vramd(),)}),
    'P9': (p9, {'control': (Pair(), 5), 'vramd': (Vramd(), 200)}, '', True),
}


def play(case, name, frames, folder):
    """Plays each arm of a case; leaves NAME.ARM.tsv in the folder."""
    scenario, arms, *parameters = case
    for arm, (booster, *details) in arms.items():
        stage = Stage(booster, *parameters)
        scenario(stage, frames, *details)
        stage.end()
        stage.dump(f'{folder}/{name}.{arm}.tsv')
