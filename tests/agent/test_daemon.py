# SPDX-License-Identifier: MIT
"""The agent and the built vramd together: a user's fake gamescope, and what is in the files of the emulated tree."""

import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'integration'))
import desk  # noqa: E402
from desk import XID, Desk  # noqa: E402
from support import C1, FRONT1, Case, floor, sandbox, wait_for  # noqa: E402

STEAM, GAME, OTHER = 769, 1091500, 348550
# What a compositor with a floor and nothing else leaves to the game.
FRONT = min(FRONT1, C1 - floor(C1))


class Daemon(Case):
    def setUp(self):
        super().setUp()
        self.desk = Desk(uid=1000)
        self.desk.env['DBUS_SYSTEM_BUS_ADDRESS'] = self.box.address
        self.addCleanup(self.desk.close)
        self.desk.xserver(0)

    def adopt(self, child, name, slice_='app.slice'):
        group = self.box.unit(name, 1000, slice_)
        desk.adopt(self.box, child.pid, group)
        return group

    def begin(self):
        game, other = (self.desk.process() for _ in range(2))
        self.game, self.other = game.pid, other.pid
        self.game_unit = self.adopt(game, f'app-steam-app{GAME}-7.scope')
        self.other_unit = self.adopt(other, f'app-steam-app{OTHER}-8.scope')
        self.gamescope = self.desk.gamescope(':0')
        self.compositor_unit = self.adopt(self.gamescope.process, 'gamescope-session.service', 'session.slice')
        self.agent = self.desk.agent()

    def show(self, gfx, app):
        self.gamescope.steam(gfx, app, (XID, GAME, self.game), (XID + 1, OTHER, self.other),
                             window=XID if gfx == GAME else XID + 1)

    def test_focus_and_menu(self):
        self.begin()
        self.show(GAME, GAME)
        self.wait_low(self.game_unit, FRONT)
        self.assertEqual(self.get('FocusSource'), 'gamescope')
        self.assertEqual(self.get('Menu'), 'closed')
        self.assertEqual(self.min(self.compositor_unit), floor(C1))
        self.show(GAME, STEAM)
        wait_for(lambda: self.get('Menu') == 'open', 'the menu')
        self.assertEqual(self.low(self.game_unit), FRONT)
        self.show(OTHER, OTHER)
        self.wait_low(self.other_unit, FRONT)
        self.wait_low(self.game_unit, 0)
        self.agent.kill(signal.SIGTERM)

    def test_vramd_restarts(self):
        self.begin()
        self.show(GAME, GAME)
        self.wait_low(self.game_unit, FRONT)
        self.box.stop()
        self.wait_low(self.game_unit, 0)
        self.start()
        self.wait_low(self.game_unit, FRONT)
        self.assertEqual(self.get('FocusSource'), 'gamescope')

    def test_agent_is_killed(self):
        """vramd keeps its word for Grace=; a new agent takes over without a gap."""
        self.begin()
        self.show(GAME, GAME)
        self.wait_low(self.game_unit, FRONT)
        self.agent.kill()
        self.assertEqual(self.low(self.game_unit), FRONT)
        self.desk.agent()
        self.show(GAME, STEAM)
        wait_for(lambda: self.get('Menu') == 'open', 'the menu')
        self.assertEqual(self.low(self.game_unit), FRONT)

    def test_not_the_users_own(self):
        """A user's agent may not speak of another user's process: it does not even try."""
        stranger = subprocess.Popen(['sleep', 'infinity'], preexec_fn=sandbox.die_with_parent)
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        self.begin()
        self.gamescope.steam(GAME, GAME, (XID, GAME, stranger.pid))
        line = self.desk.once('--source', 'gamescope', status=3)['gamescope', ':0']
        self.assertEqual(line['front'], 'unknown')


if __name__ == '__main__':
    desk.run_tests(sandbox.missing())
