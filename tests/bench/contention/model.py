# SPDX-License-Identifier: MIT
"""The model: what a frame would take on a card with 8 GiB, from what was moved and what lay outside of VRAM."""

SCALE = 32  # the simulated card has 256 MiB
VRAM_MIB = 256  # 8 GiB
FRAME_MS = 12.0  # a frame with everything in VRAM
LINK_MIB_MS = 32.2  # PCIe 4.0 x16
ACCESS = 0.25  # of a buffer outside of VRAM so much is read over the link in a frame
CLASS_ACCESS = 0.05, 0.15, 0.30, 0.50  # the same by class, of games that have classes (K14); the mean is the same
MIB = 1 << 20

# Indiana Jones and the Great Circle on a card with 8 GiB, by what it asks for: the mean frame in ms
# ("Linux 7.3 improves performance when running out of vRAM").
MEASURED = {9: 19.6, 10: 29.8}


def moved_ms(moved):
    return SCALE * moved / MIB / LINK_MIB_MS


def spilled_ms(spilled, by_class=()):
    """What is of no class is read like the mean of all."""
    classless = max(spilled - sum(by_class), 0)
    read = ACCESS * classless + sum(access * size for access, size in zip(CLASS_ACCESS, by_class))
    return SCALE * read / MIB / LINK_MIB_MS


def frame_ms(moved, spilled, by_class=()):
    """Of the game: bytes on the simulated card that anybody moved meanwhile, and of the game's that lay outside."""
    return FRAME_MS + moved_ms(moved) + spilled_ms(spilled, by_class)


def mean(values):
    return sum(values) / len(values)


def percentile(values, percent):
    """The smallest value that at least so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]


TEXT = f"""\
Model: 8 GiB of VRAM, 1/{SCALE} of it simulated ({VRAM_MIB} MiB); a frame of the game takes
  {FRAME_MS:g} ms + moved / {LINK_MIB_MS} MiB/ms + {ACCESS:g} x spilled / {LINK_MIB_MS} MiB/ms \
    (PCIe 4.0 x16; bytes x {SCALE})
  moved: what went over the link during it, for anybody; spilled: the game's buffers that lay in system memory.
Left out: fences and queues (several frames under way), caches, the driver's own limit on moves a submission, and
how the game's access to its buffers differs. "MiB" below are the simulated card's, "ms" the real one's."""
