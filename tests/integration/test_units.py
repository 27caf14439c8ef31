# SPDX-License-Identifier: MIT
"""Units that move, end, come back or lose their values, and programs that write the same files."""

import contextlib
import os
import threading
import time

from support import FAST, FRONT1, MIB, R1, R2, USER, Case, C1, main, pidfds, wait_for

SERVICE = USER.format(uid=1000)
APP = SERVICE + '/app.slice'


class Moves(Case):
    def names(self):
        return [self.game_property(g[0], 'Name') for g in self.manager().ListGames()]

    def test_steam_moves_the_game_late(self):
        """Started in Steam's own unit, reported there, and moved to its scope a moment later."""
        steam, source = self.steam(), self.source()
        game = self.box.process(steam.group, comm='game', argv=('/games/game',),
                                environ={'SteamAppId': 10}, ppid=steam.pid)
        source.report(game)
        self.wait_low(steam, FRONT1)
        # News of that unit make no game of it: its name is not one's.
        self.box.write(steam.group, 'cgroup.events', 'changed')
        self.settle()
        listener = self.listen()
        game.move(self.box.unit('app-steam-app10-9.scope'))
        begin = time.monotonic()
        self.wait_low(game, FRONT1)
        self.assertLess(time.monotonic() - begin, 1, 'the new unit is followed at once')
        self.wait_low(steam, 0)
        listener.wait('Protected', lambda g, unit, *_: unit == 'app-steam-app10-9.scope')
        self.assertEqual(listener.wait('Released')[1:], ('steam-launcher.service', 'the game moved to another unit'))
        wait_for(lambda: [g[2] for g in self.manager().ListGames()] == ['app-steam-app10-9.scope'], 'one game')

    def test_a_move_to_a_unit_that_the_reaper_told_of(self):
        """Steam's scope is a game by its name, of which its first process tells; the game itself knows better."""
        self.reload(FAST + '[game exe=Game.exe]\nName=The one\n')
        scope = self.box.unit('app-steam-app10-9.scope')
        self.box.process(scope, comm='reaper', argv=('/steam/reaper', 'SteamLaunch', 'AppId=10', '--', 'proton'))
        steam, source = self.steam(), self.source()
        game = self.box.process(steam.group, comm='Game.exe', argv=(r'Z:\games\Game.exe',))
        source.report(game)
        self.wait_low(steam, FRONT1)
        game.move(scope)
        self.wait_low(game, FRONT1, timeout=6)
        wait_for(lambda: self.names() == ['The one'], 'its name')

    def test_a_unit_that_a_reload_makes_a_game(self):
        config = FAST + '[menu]\nUnits=overlay*.service\n'
        self.reload(config)
        self.box.process(self.box.unit('overlay-game.service'))
        self.settle()
        self.assertEqual(self.manager().ListGames(), [])
        self.reload(config + '[game unit=overlay-game.service]\nName=The one\n')
        self.assertEqual(self.names(), ['The one'])
        self.reload(config)
        self.assertEqual(self.names(), [])

    def test_a_move_to_a_unit_that_nobody_watches(self):
        steam, source = self.steam(), self.source()
        game = self.box.process(steam.group)
        source.report(game)
        self.wait_low(steam, FRONT1)
        game.move(self.box.unit('plain.scope'))
        # Nothing tells of it: it is looked for, once after a second and once after four more.
        self.wait_low(game, FRONT1, timeout=3)
        self.wait_low(steam, 0)

    def test_a_report_after_the_move(self):
        steam, source = self.steam(), self.source()
        game = self.box.process(steam.group)
        source.report(game)
        self.wait_low(steam, FRONT1)
        game.move(self.box.unit('plain.scope'))
        source.report(game, menu='open')
        self.wait_low(game, FRONT1, timeout=0.9)

    def test_game_in_its_launchers_unit(self):
        """Two processes, one unit: it is one game, and menu shares do not apply to it."""
        steam, source = self.steam(), self.source()
        game = self.box.process(steam.group, comm='game', environ={'SteamAppId': 10})
        source.report(game, menu='open')
        self.wait_low(steam, FRONT1)
        self.assertEqual(len(self.manager().ListGames()), 1)
        source.report(steam, running=pidfds(game))
        self.settle()
        self.assertEqual(len(self.manager().ListGames()), 1)
        self.assertEqual(self.low(steam), FRONT1)
        game.kill()
        source.report(None)
        self.wait_low(steam, 0)

    def test_game_in_a_session_scope(self):
        group = '/user.slice/user-1000.slice/session-3.scope'
        self.box.mkdir(group)
        game, source = self.box.process(group), self.source()
        source.report(game)
        self.wait_low(group, FRONT1)
        self.assertEqual(self.low(SERVICE), 0)
        self.assertEqual(self.manager().ListGames()[0][2], 'session-3.scope')
        source.report(None)
        self.wait_low(group, 0)

    def test_process_below_a_unit(self):
        group = self.box.unit('container.scope')
        self.box.mkdir(group + '/payload')
        game = self.box.process(group + '/payload')
        self.source().report(game)
        self.wait_low(group, FRONT1)


class Ends(Case):
    def test_unit_removed_while_protected(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        game.kill()
        self.box.rmdir(game.group)
        self.wait_low(APP, 0)
        wait_for(lambda: not self.manager().ListGames(), 'no game')
        self.assertNotRegex(self.log(), '(?m)^<[0-4]>')

    def test_same_name_again(self):
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        for _ in range(3):
            game.kill()
            self.box.rmdir(game.group)
            game = self.game()
            self.assertEqual(self.box.low(game.group) if (self.box.cgroup / game.group[1:] / 'dmem.low').exists()
                             else 0, 0)
            source.report(game)
            self.wait_low(game, FRONT1)
        self.assertEqual(len(self.manager().ListGames()), 1)

    def test_many_units_come_and_go(self):
        source = self.source()
        for i in range(9):
            game = self.game(appid=100 + i)
            source.report(game)
            if i % 3 == 0:
                self.wait_low(game, FRONT1)
            game.kill()
            self.box.rmdir(game.group)
        self.wait_low(APP, 0)
        wait_for(lambda: not self.manager().ListGames(), 'no game')
        self.assertNotRegex(self.log(), '(?m)^<[0-4]>')

    def remove_user_tree(self):
        for group in reversed([g for g in self.groups() if g.startswith(SERVICE)]):
            self.box.rmdir(group)

    def test_restart_of_the_users_manager(self):
        game, compositor, source = self.game(), self.compositor(), self.source()
        source.report(game, compositor=compositor)
        self.wait_low(game, FRONT1)
        for process in (game, compositor):
            process.kill()
        self.remove_user_tree()
        wait_for(lambda: self.low('/user.slice') == 0, 'nothing above')
        for group in (SERVICE, SERVICE + '/init.scope', APP, SERVICE + '/session.slice'):
            self.box.mkdir(group)
        game = self.game()
        source.report(game, compositor=self.compositor())
        self.wait_low(game, FRONT1, timeout=1)
        self.assertEqual(self.low('/user.slice'), FRONT1 + C1 // 32)

    def test_restart_around_a_process_that_stays(self):
        """The tree is gone and back before anybody reports: the process was put into the new one."""
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.box.write('/system.slice', 'cgroup.procs', str(game.pid))
        self.remove_user_tree()
        for group in (SERVICE, SERVICE + '/init.scope', APP, SERVICE + '/session.slice'):
            self.box.mkdir(group)
        game.move(self.box.unit(os.path.basename(game.group)))
        self.wait_low(game, FRONT1, timeout=1)


class Lost(Case):
    def protect(self):
        game, source = self.game(), self.source()
        source.report(game, compositor=self.compositor())
        self.wait_low(game, FRONT1)
        return game, source

    def test_a_rival_switches_dmem_off_and_on(self):
        game, _ = self.protect()
        for group in (APP, SERVICE + '/session.slice', SERVICE):
            with contextlib.suppress(OSError):
                self.box.write(group, 'cgroup.subtree_control', '-dmem')
        self.box.write(SERVICE, 'cgroup.subtree_control', '+dmem')
        self.box.write(APP, 'cgroup.subtree_control', '+dmem')
        self.wait_low(game, FRONT1, timeout=1)
        # Where the rival was quicker it is his, and so is what is above: vramd leaves it on, and a record of what is its
        # own, until the rival does not need it any more.
        self.assertEqual(self.box.stop(), 0)
        for group in (APP, SERVICE + '/session.slice'):
            with contextlib.suppress(OSError):
                self.box.write(group, 'cgroup.subtree_control', '-dmem')
        self.start()

    def test_only_off(self):
        game, _ = self.protect()
        self.box.write(APP, 'cgroup.subtree_control', '-dmem')
        self.wait_low(game, FRONT1, timeout=1)

    def test_region_back_after_suspend(self):
        """A region that went and came back has lost all its values, without an event in the tree."""
        game, source = self.protect()
        listener = self.listen()
        self.sleep(True)
        wait_for(lambda: self.get('State') == 'paused', 'paused')
        self.assertEqual(self.low(game), FRONT1)
        self.box.control(f'region - {R1}')
        self.box.control(f'region + {R1} {C1}')
        self.assertEqual(self.low(game), 0)
        self.sleep(False)
        self.wait_low(game, FRONT1, timeout=1)
        self.assertEqual(self.get('State'), 'protecting')
        self.assertEqual(listener.all('Released'), [])

    def test_systemd_reload(self):
        game, _ = self.protect()
        self.box.control(f'region - {R1}')
        self.box.control(f'region + {R1} {C1}')
        self.emit('org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager',
                  'Reloading', 'b', False)
        self.wait_low(game, FRONT1, timeout=1)

    def test_a_region_that_is_gone(self):
        game, source = self.protect()
        self.box.control(f'region - {R1}')
        try:
            for menu in ('open', 'closed', 'open'):
                source.report(game, menu=menu)
                self.settle()
            self.assertEqual(self.low(game, R2), 4 * 1024 * MIB * 15 // 16)
            self.assertNotRegex(self.log(), '(?m)^<[0-3]>')
        finally:
            self.box.control(f'region + {R1} {C1}')


class Contested(Case):
    def test_reasserted_then_yielded(self):
        self.reload(FAST + 'Ownership=share\nReassertLimit=3\n')
        game, source, listener = self.game(), self.source(), self.listen()
        source.report(game)
        self.wait_low(game, FRONT1)
        for i in range(3):
            self.box.write(game.group, 'dmem.low', f'{R1} {(i + 1) * MIB}')
            self.wait_low(game, FRONT1)
            self.assertEqual(len(wait_for(lambda: listener.all('Contested')[i:], 'Contested')), 1)
        self.box.write(game.group, 'dmem.low', f'{R1} {99 * MIB}')
        wait_for(lambda: listener.all('Contested')[3:], 'the fourth')
        self.settle()
        self.assertEqual(self.low(game), 99 * MIB)
        unit, region, file, ours, theirs, reason = listener.all('Contested')[3]
        self.assertEqual((unit, region, file, ours, theirs), (game.group, R1, 'dmem.low', FRONT1, 99 * MIB))
        self.assertIn('leaves it alone', reason)
        self.assertIn('leaves it alone', self.log())
        # The other region is still ours.
        self.box.write(game.group, 'dmem.low', f'{R2} {5 * MIB}')
        # What is yielded stays theirs to the end.
        self.box.stop()
        self.assertEqual(self.low(game), 99 * MIB)
        self.box.write(game.group, 'dmem.low', f'{R1} 0')
        for group in (APP, SERVICE, '/user.slice/user-1000.slice', '/user.slice', '/'):
            self.box.write(group, 'cgroup.subtree_control', '-dmem')
        self.box.restore()

    def test_no_reassertion(self):
        self.reload(FAST + 'Ownership=share\nReassertLimit=0\n')
        game, source, listener = self.game(), self.source(), self.listen()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.box.write(game.group, 'dmem.low', f'{R1} {MIB}')
        listener.wait('Contested')
        self.settle()
        self.assertEqual(self.low(game), MIB)
        game.kill()
        self.box.rmdir(game.group)

    def test_an_ancestor(self):
        game, source, listener = self.game(), self.source(), self.listen()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.box.write('/user.slice', 'dmem.low', f'{R1} 0')
        wait_for(lambda: self.low('/user.slice') == FRONT1, 'ancestor')
        self.assertEqual(listener.wait('Contested')[0], '/user.slice')
        self.check_sums()

    def test_a_storm(self):
        """A rival that writes all the time costs a few writes a minute, and no more."""
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        stop = threading.Event()
        fd = os.open(self.box.cgroup / game.group[1:] / 'dmem.low', os.O_WRONLY)
        self.addCleanup(os.close, fd)

        def rival():
            while not stop.is_set():
                os.pwrite(fd, f'{R1} {MIB}'.encode(), 0)
        thread = threading.Thread(target=rival)
        thread.start()
        try:
            wait_for(lambda: 'leaves it alone' in self.log(), 'vramd yields')
        finally:
            stop.set()
            thread.join()
        self.settle()
        self.assertLessEqual(self.log().count('wrote: ' + game.group + ' ' + R1), 1 + 6)
        game.kill()
        self.box.rmdir(game.group)


if __name__ == '__main__':
    main()
