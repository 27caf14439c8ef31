# SPDX-License-Identifier: MIT
"""In the guest: the cases of the companion kernel series. The bench sets its knobs and the limits; in K14 vramd does."""

from boosters import Booster, Limits, Vramd
from cases import COMPOSITOR_PACE, GAME_PACE, LINK, LINK_MIB_MS, PROGRAM_PACE, game_in_front, working_set
from stage import CAPACITY, Watch, events
import model

THROTTLE = {'throttle_hard_ms': 50, 'throttle_soft_ms': 2000, 'throttle_levels': 1}
ORDER = {'contig_window': 1, 'evict_priority': 1, 'displace_lower': 1}
ALL = {**THROTTLE, **ORDER, 'reclaim_backoff_ms': 20}  # what vramd sets
FLOOR = 12 * model.MIB  # more than a compositor ever uses here: 4 of its own, 3 images, 3 of the game's


def k1(stage, frames):
    """Everything that the card has is promised to the game, and the compositor has no floor."""
    game_in_front(stage, working_set(112.5), frames=frames)


def k2(stage, frames):
    """Something needs a quarter of the card in VRAM for 100 frames."""
    game_in_front(stage, working_set(112.5), background={'size': '2M'}, frames=0)
    stage.frames(200, 'before')
    stage.browser.tell('grow-only 64M')
    stage.frames(100, 'burst')
    stage.browser.tell('shrink')
    stage.frames(max(frames - 300, 1), 'after')


def k3(stage, frames):
    game_in_front(stage, working_set(112.5), background={'size': '24M', 'churn': '2M'}, frames=frames)


def k4(stage, frames, backoff, seconds):
    """Four programs that together need twice the card, all of it in VRAM, each submitting again after 0.2 ms. The link
    is 128 times as fast as elsewhere: else bringing in one of these sets alone would take a quarter of a second."""
    del frames
    names = 'game', 'second', 'third', 'fourth'
    games = [stage.add_game(128, name, 100 + i, vram_only='yes', largest='4M', smallest='4M', backoff=backoff,
                            hold_us=500, think='200us') for i, name in enumerate(names)]
    for game in games:
        stage.begin(game)
    stage.run(seconds, 'play')


def k5(stage, frames, backoff):
    """As many seconds as the frames would take at 30 a second."""
    stage.begin(stage.add_compositor(backoff=backoff, **COMPOSITOR_PACE))
    stage.begin(stage.add('browser', 'app-browser-1.scope', 'program', size='16M', backoff=backoff, **PROGRAM_PACE))
    stage.browser.tell('grow-only 8M')
    stage.begin_front(stage.add_game(working_set(112.5), backoff=backoff, **GAME_PACE))
    stage.run(frames / 30, 'play')


def k6(stage, frames):
    """First somebody takes 48 MiB four times, while the game does not draw. Then it draws, with too much for the card;
    then other buffers matter."""
    game = stage.add_game(240, smallest='256K', classes='yes', priorities='yes')
    stage.begin_front(game)
    stage.frames(3, 'fits')
    browser = stage.add('browser', 'app-browser-1.scope', 'program')
    stage.begin(browser)
    for _ in range(4):
        stage.step(browser, 'grow-only 48M', 'evicted')
    stage.step(browser, 'shrink', 'freed')
    stage.frames(10, 'back')
    browser.tell('grow-only 64M')
    stage.frames(max(frames // 3, 10), 'draws')
    game.tell('turn')
    stage.frames(max(frames // 3, 10), 'turned')


def k7(stage, frames, most):
    game_in_front(stage, working_set(112.5), frames=min(frames, most), smallest='16K', largest='512K',
                  priorities='yes')


def k8(stage, frames, most):
    """As P9: with the control each submission takes most of a second."""
    game_in_front(stage, working_set(112.5), frames=min(frames, most), smallest='16K', largest='58K')


def k9(stage, frames):
    """Priorities are set, too. In lockstep: where programs pace themselves, each look at a clock, which takes time, is felt,
    and the series looks at it where it counts."""
    game_in_front(stage, working_set(112.5), background={'size': '24M', 'churn': '2M'}, frames=frames,
                  priorities='yes')


def k10(stage, frames):
    """A service of the system takes VRAM; the game is quiet. Nothing but the root group is common to both."""
    del frames
    game = stage.add('game', 'app-steam-app100-1.scope', 'program', size='192M', largest='2M')
    stage.begin_front(game)
    stage.frames(2, 'before')
    job = stage.add('job', 'ollama.service', 'program', slice_='system.slice', system=True)
    stage.begin(job)
    stage.step(job, 'grow-only 256M', 'after')


def k11(stage, frames):
    """One burst and what is heard of it; then everybody at its own pace, evicting each other for five seconds."""
    del frames
    stage.begin(stage.add_compositor(**COMPOSITOR_PACE))
    stage.begin(stage.add('browser', 'app-browser-1.scope', 'program', size='16M', **PROGRAM_PACE))
    stage.begin_front(stage.add_game(working_set(112.5), **GAME_PACE))
    stage.run(1, 'before')
    heard = Watch(stage.game.group)
    burst = stage.browser.tell('grow-only 64M')
    stage.run(5, 'storm')
    last, now = heard.end(), events(stage.game.group)
    first = next((ns for ns, evictions, _ in last[1:] if evictions > last[0][1]), None)
    wakes = [ns for ns, _, _ in last[1:]]
    counted, moved = events('/user.slice'), stage.game.tell('look')
    stage.note(first_ms=f'{(first - burst["begin_ns"]) / 1e6:.1f}' if first else '',
               wakes=max(sum(0 <= other - ns < 1e9 for other in wakes) for ns in wakes) if wakes else 0,
               late=now[0] - last[-1][1] + now[1] - last[-1][2], evictions=now[0] - last[0][1],
               off=abs(counted[0] - moved['evictions']) + abs(counted[1] - moved['out']),
               off_leaves=abs(counted[0] - sum(events(p.group)[0] for p in stage.programs)))


def k13(stage, frames):
    """VRAM is full of small buffers, used in an order that has nothing to do with where they are. A hundred times the
    screen needs an image in one piece; in between the game draws, and fills the hole."""
    del frames
    stage.begin(stage.add_compositor())
    stage.begin_front(stage.add_game(working_set(112.5), smallest='16K', largest='64K', scattered='yes'))
    stage.frames(3, 'before')
    for _ in range(100):
        stage.step(stage.compositor, 'image', 'image')
        stage.frames(1, 'between')


def k14(stage, frames, percent, priorities):
    """With a browser in the background; Steam's menu opens over the game and closes."""
    stage.begin(stage.add_compositor())
    stage.begin(stage.add('browser', 'app-browser-1.scope', 'program', size='24M'))
    steam = stage.add('steam', 'steam-launcher.service', 'program', size='8M')
    stage.begin(steam)
    stage.begin_front(stage.add_game(working_set(percent), classes='yes', priorities=priorities))
    stage.frames(frames // 3, 'play')
    stage.front(menu='open')
    steam.tell('grow 16M')
    stage.frames(frames // 3, 'menu')
    steam.tell('shrink')
    stage.front(menu='closed')
    stage.frames(frames // 3, 'closed')


LOW = {'low': CAPACITY}
K9 = {'nobody': (Booster(),), 'low': (Limits(**LOW),), 'floor': (Limits(**LOW, floor=FLOOR),)}

# What ends in -stock is the same case on the stock kernel.
CASES = {
    'K1': (k1, {'control': (Limits(**LOW),), 'series': (Limits(**LOW, **THROTTLE),)}),
    'K2': (k2, {'control': (Limits(**LOW, floor=FLOOR),), 'series': (Limits(**LOW, floor=FLOOR, **THROTTLE),)}),
    'K3': (k3, {'control': (Limits(**LOW, floor=FLOOR),), 'series': (Limits(**LOW, floor=FLOOR, **THROTTLE),)}),
    'K4': (k4, {'control': (Booster(), 'no', 2), 'series': (Booster(**ALL), 'yes', 6)},
           f'bw_mib_per_ms={128 * LINK_MIB_MS}'),
    'K5': (k5, {'control': (Limits(**LOW), 'no'), 'series': (Limits(**LOW, floor=FLOOR, **ALL), 'yes')}, LINK),
    'K6': (k6, {'control': (Booster(),), 'series': (Booster(**ORDER),)}),
    'K7': (k7, {'control': (Limits(**LOW, evict_priority=1), 100),
                'series': (Limits(**LOW, evict_priority=1, contig_window=1), 100)}),
    'K8': (k8, {'control': (Limits(**LOW, floor=FLOOR), 5),
                'series': (Limits(**LOW, floor=FLOOR, reclaim_backoff_ms=20), 200)}, '', True),
    'K9': (k9, {'control': (Limits(**LOW, floor=FLOOR, **ALL),), **K9}),
    'K9-stock': (k9, {f'stock-{name}': arm for name, arm in K9.items()}),
    'K10': (k10, {'series-min': (Limits(minimum=192 * model.MIB),), 'series-low': (Limits(low=192 * model.MIB),)}),
    'K10-stock': (k10, {'control-min': (Limits(minimum=192 * model.MIB),),
                        'control-low': (Limits(low=192 * model.MIB),)}),
    'K11': (k11, {'storm': (Limits(**LOW),), 'throttled': (Limits(**LOW, floor=FLOOR, **ALL),)}, LINK),
    'K13': (k13, {'control': (Booster(),), 'series': (Booster(contig_window=1),)}),
    'K14': (k14, {f'{arm}-{size}': (Vramd(), percent, told) for size, percent in (('1.125', 112.5), ('1.25', 125))
                  for arm, told in (('control', 'no'), ('vramd', 'yes'))}),
}
