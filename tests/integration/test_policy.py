# SPDX-License-Identifier: MIT
"""From who is in front to the values in the tree, with every role."""

from support import C1, C2, FAST, FRONT1, FRONT2, MIB, R2, Case, floor, main, pidfds, reserve, wait_for


class Roles(Case):
    def test_front_game_has_it_on_every_ancestor(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.wait_low(game, FRONT2, R2)
        path = game.group
        while path:
            self.assertEqual(self.low(path), FRONT1, path)
            self.assertEqual(self.low(path, R2), FRONT2, path)
            path = path.rsplit('/', 1)[0]
        self.assertEqual(self.min(game), 0)
        self.assertEqual(self.get('State'), 'protecting')
        source.report(None)
        self.wait_low(game, 0)

    def test_compositor_by_report(self):
        game, compositor, source = self.game(), self.compositor(), self.source()
        source.report(game, compositor=compositor)
        self.wait_low(game, FRONT1)
        self.charge(compositor, 700 * MIB)
        self.charge(compositor, 20 * MIB, R2)
        source.report(game, menu='open', compositor=compositor)
        self.wait_low(compositor, floor(C1, 700 * MIB))
        self.assertEqual(self.min(compositor), floor(C1, 700 * MIB))
        self.assertEqual(self.min(compositor, R2), C2 // 32)
        self.assertEqual(self.low(game), C1 - reserve(C1, 700 * MIB))
        self.assertEqual(self.low(game, R2), FRONT2)
        # Its floor is bounded, whatever it uses.
        self.charge(compositor, 4096 * MIB)
        source.report(game, menu='closed', compositor=compositor)
        self.wait_low(compositor, C1 // 8)
        self.assertEqual(self.low(game), C1 - C1 // 4)

    def test_compositor_by_the_name_of_its_unit(self):
        compositor, game, source = self.compositor(), self.game(), self.source()
        source.report(game)
        self.wait_low(compositor, C1 // 32)
        self.assertEqual(self.min(compositor), C1 // 32)
        # The one that a source names takes the place of the one that was guessed.
        other = self.box.process(self.box.unit('kwin.service', slice_='session.slice'), comm='kwin')
        source.report(game, compositor=other)
        self.wait_low(other, C1 // 32)
        self.wait_low(compositor, 0)
        source.report(None, compositor=other)
        self.wait_low(game, 0)

    def test_menu_gets_its_share_and_the_game_keeps_its_own(self):
        steam, game, source = self.steam(), self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.assertEqual(self.low(steam), 0)
        source.report(game, menu='open')
        # 10 % would fit beside a smaller game; beside this one there is only the reserve.
        self.wait_low(steam, min(C1 * 10 // 100, C1 - FRONT1))
        self.assertEqual(self.low(game), FRONT1)
        self.assertEqual(self.get('Menu'), 'open')
        source.report(game, menu='unknown')
        self.wait_low(steam, 0)
        self.assertEqual(self.low(game), FRONT1)

    def test_game_behind_home_keeps_a_share_of_what_it_uses(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.charge(game, 3000 * MIB)
        self.charge(game, 100 * MIB, R2)
        source.report(None, running=pidfds(game))
        self.wait_low(game, 1500 * MIB)
        self.wait_low(game, 50 * MIB, R2)
        self.assertEqual(self.get('ForegroundGame'), '/')
        self.assertEqual(self.get('State'), 'protecting')
        source.report(game)
        self.wait_low(game, FRONT1)

    def test_what_is_a_game_by_itself_stays_one(self):
        """A source that says nobody, and names no running games: in its launcher's unit, the environment tells."""
        group = self.box.unit('lutris.scope')
        game, source = self.box.process(group, environ={'LUTRIS_GAME_UUID': 'x', 'SteamAppId': 10}), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.charge(game, 3000 * MIB)
        source.report(None)
        self.wait_low(game, 1500 * MIB)
        game.kill()
        self.wait_low(group, 0)

    def test_two_games(self):
        one, two, source = self.game(10, pid=1), self.game(20, pid=2), self.source()
        source.report(one, running=pidfds(two))
        self.wait_low(one, FRONT1)
        self.charge(one, 1000 * MIB)
        self.charge(two, 600 * MIB)
        source.report(two, running=pidfds(one))
        self.wait_low(two, FRONT1)
        # What the game in front leaves, and no more.
        self.wait_low(one, min(500 * MIB, C1 - FRONT1))
        source.report(one, running=pidfds(two))
        self.wait_low(one, FRONT1)
        self.wait_low(two, 300 * MIB)

    def test_named_units_are_games_without_any_source(self):
        game = self.game()
        self.wait_low(game, FRONT1)
        self.assertEqual(self.get('FocusSource'), 'units')
        # Two of them, and nobody who says which: neither is in front.
        other = self.game(20, pid=2)
        self.wait_low(game, 0)
        other.kill()
        self.box.rmdir(other.group)
        self.wait_low(game, FRONT1)

    def test_a_source_that_says_nobody_counts_more_than_names(self):
        source = self.source()
        source.report(None)
        game = self.game()
        wait_for(lambda: self.manager().ListGames(), 'the game')
        self.settle()
        self.assertEqual(self.low(game), 0)


class Configured(Case):
    def run_with(self, text):
        self.reload(FAST + text)
        game, source = self.game(), self.source()
        source.report(game)
        return game, source

    def test_game_sections(self):
        game, _ = self.run_with('[game 1091500]\nName=Night City\nLow=3G\nMin=256M\n')
        self.wait_low(game, 3 << 30)
        self.assertEqual(self.min(game), 256 * MIB)
        self.assertEqual(self.low(game, R2), 3 << 30)
        self.assertIn('Night City', self.get('Reason'))
        self.reload(FAST + '[game exe=game.EXE]\nLow=50%\n')
        self.wait_low(game, C1 // 2)
        self.assertEqual(self.min(game), 0)
        self.reload(FAST + '[game unit=app-steam-app109*.scope]\nLow=25%\n')
        self.wait_low(game, C1 // 4)

    def test_unit_section_makes_a_game_of_any_unit(self):
        self.reload(FAST + '[game unit=heroic-*.scope]\nLow=1G\n')
        game = self.box.process(self.box.unit('heroic-7.scope'))
        self.wait_low(game, 1 << 30)
        self.reload(FAST)
        self.wait_low(game, 0)

    def test_deny_lists(self):
        for text in ('DenyGames=1091500', 'DenyGames=game.exe', 'DenyGames=app-steam-*', 'AllowGames=7',
                     '[game 1091500]\nProtect=no', '[user]\nDeny=1000', '[user]\nAllow=1001'):
            with self.subTest(text):
                self.reload(FAST)
                game, source = self.game(), self.source()
                source.report(game)
                self.wait_low(game, FRONT1)
                self.reload(FAST + text + '\n')
                self.wait_low(game, 0)
                self.assertEqual(self.get('State'), 'idle')
                source.close()
                game.kill()
                self.box.processes.remove(game)
                self.box.rmdir(game.group)

    def test_policy_keys(self):
        game, source = self.run_with('GameLow=5G\nGameMin=10%\n')
        self.wait_low(game, 5 << 30)
        self.assertEqual(self.min(game), C1 // 10)
        # The second region has less than that; promises stay within it.
        self.assertEqual(self.low(game, R2), C2)
        self.reload(FAST + 'Reserve=2G\n[compositor]\nFloor=0\n')
        self.wait_low(game, C1 - (2 << 30))
        self.reload(FAST + '[background]\nShare=100%\n')
        self.charge(game, 1000 * MIB)
        source.report(None)
        self.wait_low(game, 1000 * MIB)

    def test_enabled_no_gives_everything_back(self):
        game, source = self.run_with('')
        compositor = self.compositor()
        self.wait_low(game, FRONT1)
        self.wait_low(compositor, C1 // 32)
        self.reload(FAST + 'Enabled=no\n')
        self.wait_low(game, 0)
        self.check_defaults()
        self.assertEqual(self.get('State'), 'paused')
        source.report(game, menu='open')
        self.settle()
        self.check_defaults()
        self.reload(FAST)
        self.wait_low(game, FRONT1)
        self.assertEqual(self.get('State'), 'protecting')

    def test_siblings_ceiling(self):
        game, source = self.run_with('[background]\nMax=1G\nUnits=browser*\n')
        browser = self.box.unit('browser.service')
        other = self.box.unit('mail.service')
        self.wait_low(game, FRONT1)
        # Units that appear later are seen at the next decision.
        source.report(game, menu='open')
        wait_for(lambda: self.max(browser) == 1 << 30, 'ceiling')
        self.assertIsNone(self.max(other))
        self.assertIsNone(self.max(game))
        source.report(None)
        wait_for(lambda: self.max(browser) is None, 'no ceiling')
        self.check_sums()


class Services(Case):
    config = FAST + '[service ollama]\nLow=2G\nMax=1G\n[service stream.service]\nLow=512M\n'

    def check_service(self, ollama):
        self.wait_low(ollama, 2 << 30)
        self.assertIsNone(self.max(ollama))
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.wait_low(ollama, 0)
        self.assertEqual(self.max(ollama), 1 << 30)
        source.report(None)
        game.kill()
        self.wait_low(ollama, 2 << 30)
        self.assertIsNone(self.max(ollama))

    def test_unit_of_a_user(self):
        group = self.box.unit('ollama.service')
        self.check_service(group)

    def test_unit_of_the_system(self):
        self.box.mkdir('/system.slice/ollama.service')
        self.check_service('/system.slice/ollama.service')

    def test_unit_in_a_slice_of_the_system_and_its_end(self):
        self.box.mkdir('/system.slice/ai.slice')
        self.box.mkdir('/system.slice/ai.slice/ollama.service')
        self.box.mkdir('/system.slice/stream.service')
        self.wait_low('/system.slice/ai.slice/ollama.service', 2 << 30)
        self.wait_low('/system.slice', 2560 * MIB)
        self.box.rmdir('/system.slice/ai.slice/ollama.service')
        self.wait_low('/system.slice', 512 * MIB)
        self.reload(FAST)
        self.wait_low('/system.slice', 0)


class TwoUsers(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box.add_user_tree(1001)

    def test_each_session_has_its_own_game(self):
        self.box.set_user(1001, 'active')
        one, two = self.game(), self.game(20, 1001)
        self.source().report(one)
        self.source(uid=1001).report(two)
        # Two seats, one card: equals share what there is.
        self.wait_low(one, C1 // 2)
        self.wait_low(two, C1 // 2)
        self.box.set_user(1001, 'online')
        self.wait_low(one, FRONT1)
        self.wait_low(two, 0)


if __name__ == '__main__':
    main()
