#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""demo.py BUILD   the story of tests/demo on an emulated machine with two graphics cards."""

import contextlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / 'harness'))
import sandbox  # noqa: E402
from story import Story  # noqa: E402


class EmulatedMachine:
    """What the story needs of a machine, on the sandbox."""

    def __init__(self, box):
        self.box = box
        self.log = box.log
        self.tree = box.tree
        self.steam = box.unit('steam-launcher.service')
        self.box.process(self.steam, comm='steam', argv=('/usr/bin/steam',))
        session = box.unit('gamescope-session.service', slice_='session.slice')
        self.compositor = box.process(session, comm='gamescope', argv=('/usr/bin/gamescope',))
        self.source = None

    def describe(self):
        return 'an emulated cgroup2 tree with ' + ' and '.join(
            f'{size >> 30} GiB in {name}' for name, size in self.box.regions.items())

    def start_daemon(self):
        self.box.start('--verbose')
        self.source = sandbox.Source(self.box)

    def stop_daemon(self):
        self.source.close()
        return self.box.stop()

    def use(self, group, mib):
        # There is nothing to charge to before vramd has switched dmem on above the group.
        with contextlib.suppress(FileNotFoundError):
            self.box.charge(group, mib << 20)

    def settle(self):
        """Waits until vramd has answered for everything that it was told."""
        if self.box.daemon:
            self.box.get('State', self.source.bus)

    def start_game(self, appid):
        group = self.box.unit(f'app-steam-app{appid}-4242.scope')
        return self.box.process(group, comm='Cyberpunk2077.exe', argv=(r'Z:\games\Cyberpunk2077.exe',),
                                environ={'SteamAppId': appid})

    def report(self, game, menu):
        self.source.report(game, menu=menu, compositor=self.compositor)
        self.settle()
        self.use(self.compositor.group, 300)
        if game:
            self.use(game.group, 6000)

    def end_game(self, game):
        game.kill()
        self.box.rmdir(game.group)

    def end_session(self):
        self.use(self.compositor.group, 0)
        self.compositor.kill()


def main():
    reason = sandbox.missing()
    if reason:
        sys.exit(f'demo: {reason}')
    with sandbox.Sandbox(sys.argv[1]) as box:
        status = Story(EmulatedMachine(box)).play()
    sys.exit(status)


if __name__ == '__main__':
    main()
