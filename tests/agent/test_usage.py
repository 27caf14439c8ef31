# SPDX-License-Identifier: MIT
"""Arguments, help, exit statuses."""

import json
import os
import subprocess
import tempfile
import unittest

AGENT = os.environ['VRAMD_AGENT']


class Usage(unittest.TestCase):
    def run_agent(self, *args, status=0):
        with tempfile.TemporaryDirectory() as empty:
            env = {'PATH': os.environ['PATH'], 'XDG_RUNTIME_DIR': empty, 'HOME': empty, 'DISPLAY': ':4711',
                   'DBUS_SYSTEM_BUS_ADDRESS': f'unix:path={empty}/bus'}
            p = subprocess.run([AGENT, *args], env=env, capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        return p.stdout, p.stderr

    def test_help(self):
        out, err = self.run_agent('--help')
        self.assertEqual((err, (out, err)), ('', self.run_agent('-h')))
        for line in out.splitlines():
            self.assertLessEqual(len(line), 80, line)
        for word in ('--once', '--json', '--source', '--verbose', '--version', 'gamescope', 'kwin', 'sway', 'hyprland',
                     'x11', 'foreign-toplevel', 'gamemode'):
            self.assertIn(word, out)

    def test_version(self):
        out, err = self.run_agent('--version')
        self.assertRegex(out, r'^vramd-agent \d+\.\d+\.\d+\n$')
        self.assertEqual(err, '')

    def test_wrong_usage(self):
        for args, word in ((('--nonsense',), '--nonsense'), (('-x',), '-x'), (('--source',), '--source'),
                           (('extra',), 'extra'), (('--source', 'windows'), 'windows'), (('--json',), '--json')):
            out, err = self.run_agent(*args, status=2)
            self.assertEqual(out, '', args)
            self.assertEqual(err.count('\n'), 1, err)
            self.assertIn(f"'{word}'", err)

    def test_once_without_anything(self):
        out, err = self.run_agent('--once', status=3)
        self.assertEqual(err, '')
        self.assertRegex(out, r'(?m)^  gamescope +- +not there$')
        lines = json.loads(self.run_agent('--once', '--json', status=3)[0])
        names = self.run_agent('--help')[0].split('Sources:\n')[1].split('\n')[0].split(',')
        self.assertEqual([(li['source'], li['front']) for li in lines], [(n.strip(), 'unknown') for n in names])
        lines = json.loads(self.run_agent('--once', '-j', '--source', 'x11', status=3)[0])
        self.assertEqual([li['source'] for li in lines], ['x11'])


if __name__ == '__main__':
    unittest.main(verbosity=2)
