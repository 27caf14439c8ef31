# SPDX-License-Identifier: MIT
"""argv: help, versions, what is refused; completions agree with --help."""
import os
import re
import shutil
import subprocess

from support import BusTest, HERE, main

COMPLETIONS = os.path.join(HERE, '..', '..', 'client', 'completions')
VERBS = ['status', 'games', 'top', 'watch', 'run', 'hold', 'focus', 'tune', 'reload', 'doctor', 'dump']


class Usage(BusTest):
    def options(self, *verb):
        out, _ = self.run_ctl(*verb, '--help')
        return set(re.findall(r'--[a-z-]+', out.split('Options:')[1].split('\n"vramctl')[0]))

    def test_help_fits_and_goes_to_stdout(self):
        for verb in [[]] + [[v] for v in VERBS]:
            out, err = self.run_ctl(*verb, '--help')
            self.assertEqual(err, '')
            self.assert_clean(out)
            self.assertEqual(self.run_ctl(*verb, '-h')[0], out)
        out, _ = self.run_ctl('--help')
        for verb in VERBS:
            self.assertRegex(out, rf'(?m)^  {verb}\b')

    def test_version(self):
        for args in (['--version'], ['status', '--version']):
            self.assertRegex(self.run_ctl(*args)[0], r'^vramctl \d+\.\d+\.\d+\n$')

    def test_refused(self):
        wrong = [['--bogus'], ['status', '--bogus'], ['bogus'], ['status', 'x'], ['hold'],
                 ['hold', 'x'], ['hold', '0'], ['hold', '-1'], ['hold', '1', '2'],
                 ['hold', '--for', 'soon', '1'], ['hold', '1', '--for'], ['focus'],
                 ['focus', '1', '--clear'], ['focus', '--menu', 'ajar', '1'],
                 ['focus', '--appid', '4294967296', '1'], ['top', '-n', 'x'],
                 ['top', '--delay', '1ms'], ['run'], ['run', '--bogus', 'true'],
                 ['run', '--make-room=much', 'true'], ['dump', '--json'],
                 ['-x'], ['status', '-x'], ['tune', 'ThrottleHard'], ['tune', 'Nonsense=1'],
                 ['tune', 'throttlehard=50ms'], ['tune', 'ThrottleHard=50'], ['tune', 'ThrottleLevels=9'],
                 ['tune', 'EvictPriority=2'], ['tune', 'ThrottleHard='], ['tune', '=1'],
                 ['tune', 'ThrottleHard=1ms', 'ThrottleSoft=x'], ['tune', '--reset', 'ThrottleHard=1ms']]
        for args in wrong:
            out, err = self.run_ctl(*args, status=2)
            self.assertEqual(out, '', args)
            self.assertRegex(err, r'^vramctl: [^\n]+\n$', args)

    def test_bad_value_is_quoted(self):
        self.assertIn('"a?b"', self.run_ctl('a\x1bb', status=2)[1])
        self.assertIn('"4294967296"', self.run_ctl('focus', '--appid', '4294967296', '1', status=2)[1])
        self.assertIn('"-x"', self.run_ctl('-x', status=2)[1])

    def test_full_disk(self):
        with open('/dev/full', 'w', encoding='ascii') as full:
            p = subprocess.run([os.environ['VRAMCTL'], '--help'], stdout=full, env=self.env,
                               stderr=subprocess.PIPE, check=False)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b'cannot write', p.stderr)


class Completions(Usage):
    test_help_fits_and_goes_to_stdout = test_version = test_refused = None
    test_bad_value_is_quoted = test_full_disk = None

    def bash(self, *words):
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_vramctl; printf "%s\\n" "${COMPREPLY[@]}"')
        p = subprocess.run(['bash', '-c', script, 'bash', os.path.join(COMPLETIONS, 'vramctl'),
                            'vramctl', *words], capture_output=True, text=True, check=True)
        return set(p.stdout.split())

    def test_bash(self):
        self.assertEqual(self.bash(''), set(VERBS))
        self.assertEqual(self.bash('st'), {'status'})
        self.assertEqual(self.bash('--'), self.options())
        for verb in VERBS:
            self.assertEqual(self.bash(verb, '--'), self.options(verb), verb)
        self.assertEqual(self.bash('focus', '--menu', ''), {'open', 'closed', 'unknown'})

    def test_syntax(self):
        for shell, name in (('bash', 'vramctl'), ('zsh', '_vramctl'), ('fish', 'vramctl.fish')):
            if not shutil.which(shell):
                print(f'{shell} is not here: its completion is not parsed')
                continue
            subprocess.run([shell, '-n', os.path.join(COMPLETIONS, name)], check=True)

    def test_zsh_and_fish_name_each_option(self):
        for name in ('_vramctl', 'vramctl.fish'):
            with open(os.path.join(COMPLETIONS, name), encoding='utf-8') as f:
                text = f.read()
            for verb in VERBS:
                self.assertIn(verb, text)
                for option in self.options(verb):
                    word = option[2:] if name.endswith('fish') else option
                    self.assertRegex(text, rf'(?<![a-z-]){word}(?![a-z-])', (name, verb))


if __name__ == '__main__':
    main()
