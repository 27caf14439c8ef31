# SPDX-License-Identifier: MIT
"""Whatever ends vramd, nothing of it stays; and what is not its own stays as it is."""

import os
import pathlib
import signal

from support import FAST, FRONT1, MIB, R1, R2, USER, Case, main

APP = USER.format(uid=1000) + '/app.slice'


class Restore(Case):
    def protect(self, **kwargs):
        game, source = self.game(), self.source()
        source.report(game, compositor=self.compositor(), **kwargs)
        self.wait_low(game, FRONT1)
        return game, source

    def journal(self):
        return self.box.root / 'run/vramd/journal'

    def test_stop_puts_everything_back(self):
        game, _ = self.protect()
        self.assertTrue(self.journal().exists())
        self.assertEqual(self.box.stop(), 0)
        self.check_defaults()
        self.assertFalse(self.journal().exists())
        # dmem was taken back at every level: nobody uses any.
        self.assertNotIn('dmem', self.box.read('/', 'cgroup.subtree_control'))
        self.assertNotIn('dmem', self.box.read(APP, 'cgroup.subtree_control'))

    def test_interrupt_is_an_orderly_end_too(self):
        self.protect()
        self.assertEqual(self.box.stop(signal.SIGINT), 0)
        self.check_defaults()

    def test_kill_and_start_again(self):
        game, source = self.protect()
        self.box.stop(signal.SIGKILL)
        self.assertEqual(self.low(game), FRONT1)
        self.assertTrue(self.journal().exists())
        game.kill()
        self.start()
        self.wait_low(game, 0)
        self.check_defaults()

    def test_kill_and_restore(self):
        game, _ = self.protect()
        self.box.stop(signal.SIGKILL)
        self.assertEqual(self.low(game), FRONT1)
        self.box.restore()
        self.check_defaults()
        self.assertFalse(self.journal().exists())
        self.assertNotIn('dmem', self.box.read('/', 'cgroup.subtree_control'))
        # Once more is no error, and changes nothing.
        tree = self.box.tree()
        self.box.restore()
        self.assertEqual(tree, self.box.tree())

    def test_kills_one_after_the_other(self):
        game, source = self.protect()
        for _ in range(3):
            self.box.stop(signal.SIGKILL)
            self.start()
            self.source().report(game)
            self.wait_low(game, FRONT1)
        self.box.stop()
        self.check_defaults()

    def test_what_somebody_set_before_comes_back(self):
        self.box.stop()
        game = self.box.process(self.box.unit('plain.scope'))
        for group in ('/', '/user.slice', '/user.slice/user-1000.slice', USER.format(uid=1000), APP):
            self.box.write(group, 'cgroup.subtree_control', '+dmem')
        self.box.write(game.group, 'dmem.low', f'{R1} {123 * MIB}')
        self.box.write(game.group, 'dmem.max', f'{R1} {7000 * MIB}')
        tree = self.box.tree()
        self.start()
        self.source().report(game)
        self.wait_low(game, FRONT1)
        self.assertEqual(self.max(game), 7000 * MIB)
        self.box.stop()
        self.assertEqual(tree, self.box.tree())
        self.box.write(game.group, 'dmem.low', f'{R1} 0')
        self.box.write(game.group, 'dmem.max', f'{R1} max')
        for group in (APP, USER.format(uid=1000), '/user.slice/user-1000.slice', '/user.slice', '/'):
            self.box.write(group, 'cgroup.subtree_control', '-dmem')

    def check_stranger_stays(self, end):
        game, source = self.box.process(self.box.unit('plain.scope')), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        self.box.stop(signal.SIGKILL)
        source.close()
        self.box.write(game.group, 'dmem.low', f'{R1} {77 * MIB}')
        end()
        self.assertEqual(self.low(game), 77 * MIB)
        self.assertEqual(self.low(game, R2), 0)
        self.assertEqual(self.low(APP), 0)
        self.box.write(game.group, 'dmem.low', f'{R1} 0')
        # dmem stays on above a value that is not ours; with it gone nobody needs it.
        for group in (APP, USER.format(uid=1000), '/user.slice/user-1000.slice', '/user.slice', '/'):
            self.box.write(group, 'cgroup.subtree_control', '-dmem')
        self.box.restore()

    def test_a_strangers_value_stays_at_restore(self):
        self.check_stranger_stays(self.box.restore)

    def test_a_strangers_value_stays_at_the_next_start(self):
        self.check_stranger_stays(lambda: (self.start(), self.settle(), self.box.stop()))

    def owner(self, group, name='dmem.low'):
        st = (self.box.cgroup / group.strip('/') / name).stat()
        return st.st_uid, st.st_gid, st.st_mode & 0o777

    def chowned_game(self):
        """A unit as systemd --user delegates it: its files belong to the user."""
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        source.report(None)
        self.wait_low(game, 0)
        for name in ('dmem.min', 'dmem.low', 'dmem.max'):
            os.chown(self.box.cgroup / game.group.strip('/') / name, 1000, 1000)
        source.report(game)
        self.wait_low(game, FRONT1)
        return game, source

    def keep_dmem(self, game):
        """A charge keeps dmem switched on, so that there are files to look at."""
        self.charge(game, 1 * MIB)

    def end_of_owners(self, game):
        self.assertEqual(self.owner(game.group), (1000, 1000, 0o644))
        game.kill()
        self.box.rmdir(game.group)
        self.box.restore()

    def test_owner_is_taken_and_given_back(self):
        game, source = self.chowned_game()
        self.keep_dmem(game)
        for name in ('dmem.min', 'dmem.low', 'dmem.max'):
            self.assertEqual(self.owner(game.group, name), (0, 0, 0o644))
        source.report(game, menu='open')
        self.settle()
        self.assertEqual(self.owner(game.group), (0, 0, 0o644))
        # Behind another window it has its share, and is still ours.
        source.report(None)
        self.wait_low(game, MIB // 2)
        self.assertEqual(self.owner(game.group), (0, 0, 0o644))
        self.box.stop()
        self.end_of_owners(game)

    def test_owner_is_given_back_after_a_kill(self):
        game, _ = self.chowned_game()
        self.keep_dmem(game)
        self.box.stop(signal.SIGKILL)
        self.assertEqual(self.owner(game.group), (0, 0, 0o644))
        self.box.restore()
        self.end_of_owners(game)

    def test_owner_is_left_alone_when_shared(self):
        self.reload(FAST + 'Ownership=share\n')
        game, _ = self.chowned_game()
        self.keep_dmem(game)
        self.assertEqual(self.owner(game.group), (1000, 1000, 0o644))
        self.box.stop()
        self.end_of_owners(game)

    def test_dmem_stays_on_where_it_is_used(self):
        game, _ = self.protect()
        self.charge(game, 100 * MIB)
        self.box.stop()
        self.check_defaults()
        self.assertIn('dmem', self.box.read(APP, 'cgroup.subtree_control'))
        self.assertIn('dmem', self.box.read('/', 'cgroup.subtree_control'))
        self.charge(game, 0)
        self.box.restore()
        self.assertNotIn('dmem', self.box.read('/', 'cgroup.subtree_control'))

    def test_a_damaged_journal_is_no_reason_to_stay_away(self):
        game, _ = self.protect()
        self.box.stop(signal.SIGKILL)
        text = self.journal().read_bytes()
        self.journal().write_bytes(text + b'nonsense\n\xff\x00\n')
        self.start()
        self.source().report(game)
        self.wait_low(game, FRONT1)
        self.assertIn('damaged lines', self.log())
        self.box.stop()
        self.check_defaults()

    def test_a_unit_that_took_the_place_of_a_protected_one(self):
        """Same path, other group: what was there before vramd came is its own."""
        game, _ = self.protect()
        self.box.stop(signal.SIGKILL)
        game.kill()
        self.box.rmdir(game.group)
        self.box.mkdir(game.group)
        self.box.write(game.group, 'dmem.low', f'{R1} {FRONT1}')
        self.box.restore()
        self.assertEqual(self.low(game), FRONT1)
        self.box.write(game.group, 'dmem.low', f'{R1} 0')
        self.box.rmdir(game.group)
        for group in (APP, USER.format(uid=1000), '/user.slice/user-1000.slice', '/user.slice', '/'):
            self.box.write(group, 'cgroup.subtree_control', '-dmem')
        self.box.restore()


class RuntimeDir(Case):
    config = None

    def test_journal_in_another_folder(self):
        folder = self.box.root / 'elsewhere'
        folder.mkdir()
        self.start(f'--runtime-dir={folder}', config=FAST)
        game = self.game()
        self.source().report(game)
        self.wait_low(game, FRONT1)
        self.assertEqual([p.name for p in pathlib.Path(folder).iterdir()], ['journal'])
        self.box.stop()
        self.assertEqual(list(folder.iterdir()), [])


if __name__ == '__main__':
    main()
