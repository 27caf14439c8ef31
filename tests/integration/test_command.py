# SPDX-License-Identifier: MIT
"""The command line, --dry-run, and machines on which vramd cannot help."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import BUILD, C1, FAST, FRONT1, R1, Case, main, wait_for


def vramd(*args, timeout=5):
    return subprocess.run([f'{BUILD}/daemon/vramd', *args], capture_output=True, text=True, timeout=timeout,
                          check=False)


class Options(unittest.TestCase):
    def test_help(self):
        for option in ('--help', '-h'):
            result = vramd(option)
            self.assertEqual((result.returncode, result.stderr), (0, ''))
            for word in ('--config', '--dry-run', '--restore', '--root', '--version', 'vramd.conf(5)'):
                self.assertIn(word, result.stdout)
            self.assertLessEqual(max(map(len, result.stdout.splitlines())), 80)

    def test_version(self):
        result = vramd('--version')
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        self.assertRegex(result.stdout, r'^vramd \d+\.\d+\.\d+\n$')

    def test_bad_options(self):
        for args in (('--nonsense',), ('-x',), ('word',), ('--config',), ('--version=1',)):
            result = vramd(*args)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn(args[0].lstrip('-').split('=')[0], result.stderr)
            self.assertEqual(result.stdout, '')


class Config(Case):
    config = None

    def other(self, text):
        path = self.box.root / 'other.conf'
        path.write_text(text)
        return path

    def test_other_file(self):
        game = self.game()
        self.start(f'--config={self.other("[game 1091500]" + chr(10) + "Low=2G" + chr(10))}', config='[policy]\nx=1\n')
        self.wait_low(game, 2 << 30)
        self.assertNotIn('etc/vramd/vramd.conf', self.log())

    def test_bad_lines_are_named_and_the_rest_counts(self):
        game = self.game()
        path = self.other('[policy]\nNonsense=1\nDebounce=soon\n[game 1091500]\nLow=2G\n')
        self.start('-c', str(path))
        self.wait_low(game, 2 << 30)
        self.assertIn(f'{path}:2: ', self.log())
        self.assertIn(f'{path}:3: ', self.log())

    def test_a_file_that_cannot_be_read(self):
        for path in ('/nonexistent/vramd.conf', '/'):
            result = vramd(f'--root={self.box.root}', f'--config={path}')
            self.assertEqual(result.returncode, 1, path)
            self.assertIn(path, result.stderr)
            self.assertIn('Cannot read the configuration', result.stderr.splitlines()[-1])

    def test_a_second_vramd(self):
        self.start()
        game, source = self.game(), self.source()
        source.report(game)
        self.wait_low(game, FRONT1)
        result = vramd(f'--root={self.box.root}', f'--runtime-dir={self.box.root}/second')
        self.assertEqual(result.returncode, 1)
        self.assertIn('another vramd is running', result.stderr)
        self.assertEqual(self.low(game), FRONT1)
        shutil.rmtree(self.box.root / 'second', ignore_errors=True)


class DryRun(Case):
    config = None

    def test_writes_nothing_and_says_what_it_would(self):
        game, compositor = self.game(), self.compositor()
        before = self.box.tree()
        self.start('--dry-run', config=FAST)
        source = self.source()
        source.report(game, compositor=compositor)
        line = f'would write: {game.group} {R1} dmem.low 0 -> {FRONT1} (the game in front)'
        wait_for(lambda: line in self.log(), 'the game')
        self.assertIn(f'would write: {compositor.group} {R1} dmem.min 0 -> {C1 // 32} (floor of the compositor)',
                      self.log())
        # At once, or after the game alone.
        self.assertRegex(self.log(), rf'would write: /user.slice {R1} dmem.low \d+ -> {FRONT1 + C1 // 32} \(sum of')
        source.report(None, compositor=compositor)
        wait_for(lambda: f'would write: {game.group} {R1} dmem.low {FRONT1} -> 0 (put back)' in self.log(), 'put back')
        source.report(game, compositor=compositor)
        wait_for(lambda: self.log().count(line) == 2, 'again')
        self.assertNotIn('>wrote: ', self.log())
        self.assertEqual(before, self.box.tree())
        self.box.stop()
        self.assertEqual(before, self.box.tree())
        self.assertFalse((self.box.root / 'run/vramd/journal').exists())

    def test_restore_dry_run(self):
        self.start(config=FAST)
        game = self.game()
        self.source().report(game)
        self.wait_low(game, FRONT1)
        self.box.stop(9)
        before = self.box.tree()
        result = vramd(f'--root={self.box.root}', '--restore', '--dry-run')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(before, self.box.tree())
        self.box.restore()
        self.check_defaults()

    def test_restore_of_nothing(self):
        result = vramd(f'--root={self.box.root}', '--restore')
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, '', ''))


class Unsupported(Case):
    config = None

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(tempfile.mkdtemp(prefix='vramd-test-'))
        self.addCleanup(shutil.rmtree, self.root)
        for d in ('proc', 'run', 'etc/vramd', 'sys/fs/cgroup'):
            (self.root / d).mkdir(parents=True)

    def run_there(self):
        with (self.root / 'log').open('w') as log:
            process = subprocess.Popen([f'{BUILD}/daemon/vramd', f'--root={self.root}'], stdout=log, stderr=log)
        self.addCleanup(process.kill)
        return process, self.root / 'log'

    def check_unsupported(self, reason):
        process, log = self.run_there()
        wait_for(lambda: self.bus.name_has_owner('io.github.vramd1') or process.poll() is not None, 'name')
        self.assertIsNone(process.poll(), log.read_text())
        self.assertEqual(self.get('State'), 'unsupported')
        self.assertRegex(self.get('Reason'), reason)
        self.assertEqual(self.get('Abilities'), [])
        self.refuses('ControllerUnavailable', lambda: self.source().report(None), text=self.get('Reason'))
        self.refuses('ControllerUnavailable', lambda: self.source().manager.Withdraw())
        self.assertEqual(self.manager().ListGames(), [])
        self.assertEqual(self.manager().ListHolds(), [])
        self.manager().Reload()
        process.terminate()
        self.assertEqual(process.wait(5), 0)
        lines = log.read_text().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], reason)

    def test_kernel_without_dmem(self):
        (self.root / 'sys/fs/cgroup/cgroup.controllers').write_text('cpuset cpu io memory pids\n')
        (self.root / 'sys/fs/cgroup/cgroup.subtree_control').write_text('')
        (self.root / 'sys/fs/cgroup/cgroup.procs').write_text('')
        self.check_unsupported('dmem')

    def test_old_hierarchies(self):
        for controller in ('cpu', 'memory', 'unified'):
            (self.root / 'sys/fs/cgroup' / controller).mkdir()
        self.check_unsupported('cgroup|hierarchy')

    def test_no_hierarchy(self):
        (self.root / 'sys/fs/cgroup').rmdir()
        process, log = self.run_there()
        wait_for(lambda: self.bus.name_has_owner('io.github.vramd1') or process.poll() is not None, 'name')
        process.terminate()
        self.assertEqual(process.wait(5), 0, log.read_text())

    def test_restore_there(self):
        (self.root / 'sys/fs/cgroup/cgroup.controllers').write_text('cpu memory\n')
        result = vramd(f'--root={self.root}', '--restore')
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == '__main__':
    main()
