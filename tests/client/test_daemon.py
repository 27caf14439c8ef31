# SPDX-License-Identifier: MIT
"""vramctl and the built vramd together, on an emulated machine: what one says the other understands."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
import sandbox  # noqa: E402

VRAMCTL = os.environ['VRAMCTL']
BUILD = os.environ['VRAMD_BUILD']
CARD0 = next(iter(sandbox.REGIONS))
UNIT = 'app-steam-app1091500-4242.scope'


class Daemon(unittest.TestCase):
    def setUp(self):
        self.box = sandbox.Sandbox(BUILD)
        self.box.__enter__()
        self.addCleanup(self.box.__exit__, None, None, None)
        self.group = self.box.unit(UNIT)
        self.game = self.box.process(self.group, environ={'SteamAppId': '1091500'})
        self.env = dict(os.environ, LC_ALL='C.UTF-8')

    def ctl(self, *args, status=0):
        p = subprocess.run([VRAMCTL, *args], env=self.env, capture_output=True, text=True, timeout=30,
                           check=False)
        self.assertEqual(p.returncode, status, f'{args}: {p.stdout}{p.stderr}')
        return p.stdout + p.stderr

    def start_ctl(self, *args):
        p = subprocess.Popen([VRAMCTL, *args], env=self.env, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def status(self):
        return json.loads(self.ctl('--json'))

    def wait_for_source(self, name):
        sandbox.wait_for(lambda: self.status()['focus_source'] == name, name)

    def test_focus_status_and_back(self):
        self.box.start()
        s = self.status()
        self.assertEqual([r['name'] for r in s['regions']], sorted(sandbox.REGIONS))
        self.assertEqual(s['regions'][0]['capacity'], sandbox.REGIONS[CARD0])
        self.assertIn('dmem', s['abilities'])
        self.assertNotEqual(s['focus_source'], 'manual')  # the only game is in front unasked
        focus = self.start_ctl('focus', str(self.game.pid), '--menu', 'closed')
        focus.stdout.readline()
        self.wait_for_source('manual')
        s = self.status()
        self.assertEqual((s['state'], s['menu'], s['focus_source']), ('protecting', 'closed', 'manual'))
        game = s['games'][0]
        self.assertEqual((game['object'], game['unit'], game['appid'], game['role'], game['mark'],
                          game['control_group'], game['foreground']),
                         (s['foreground'], UNIT, 1091500, 'front', 'scope', self.group, True))
        self.assertEqual(game['low'][CARD0], self.box.low(self.group))
        self.box.charge(self.group, 1 << 30)
        self.assertEqual(self.status()['games'][0]['current'][CARD0], 1 << 30)
        for verb in ('status', 'games'):
            self.assertIn('(1091500)', self.ctl(verb))
        self.assertIn(UNIT, self.ctl('dump'))
        self.assertIn('1 GiB', self.ctl('top', '-n', '1'))
        focus.terminate()
        self.assertEqual(focus.wait(10), 0)

    def test_hold(self):
        self.box.start()
        hold = self.start_ctl('hold', str(self.game.pid), '--who', 'me', '--why', 'because')
        hold.stdout.readline()
        held = self.status()['holds'][0]
        self.assertEqual((held['who'], held['why'], held['unit']), ('me', 'because', UNIT))
        hold.kill()
        sandbox.wait_for(lambda: not self.status()['holds'], 'the hold to end')

    def test_persistent_report(self):
        self.box.start()
        self.ctl('focus', str(self.game.pid), '--persist')
        self.wait_for_source('manual')
        self.ctl('focus', '--clear')
        sandbox.wait_for(lambda: self.status()['focus_source'] != 'manual', 'the report to end', 20)

    def test_watch(self):
        other = 'app-steam-app730-4343.scope'
        second = self.box.process(self.box.unit(other), environ={'SteamAppId': '730'})
        self.box.start()
        watch = self.start_ctl('watch', '--json')
        self.assertEqual(json.loads(watch.stdout.readline())['event'], 'state')
        source, events = sandbox.Source(self.box), [{}]
        source.report(self.game)
        self.wait_for_source('gamescope')
        source.report(second)  # at least now another one comes to the front
        while events[-1].get('unit') != other:
            events.append(json.loads(watch.stdout.readline()))
        self.box.stop()
        while events[-1].get('event') != 'stopped':
            events.append(json.loads(watch.stdout.readline()))
        source.close()
        focus = [e for e in events if e.get('event') == 'focus'][-1]
        self.assertEqual((focus['source'], focus['menu']), ('gamescope', 'closed'))
        self.assertIn('(730)', focus['name'])
        protected = next(e for e in events if e.get('event') == 'protected' and e['unit'] == other)
        self.assertGreater(protected['low'][CARD0], 0)
        self.assertTrue(protected['reason'])

    def test_reload_names_bad_lines(self):
        self.box.start()
        (self.box.root / 'etc/vramd/vramd.conf').write_text('[policy]\nbogus=1\nreserve=x\n')
        text = self.ctl('reload', status=1)
        self.assertIn('vramd.conf:2', text)
        self.assertIn('vramd.conf:3', text)
        self.assertTrue(all(line.startswith('vramctl: ') for line in text.splitlines()), text)

    def test_errors(self):
        self.box.start()
        stranger = self.box.process('/init.scope')
        text = self.ctl('hold', str(stranger.pid), status=1)
        self.assertRegex(text, r'^vramctl: [^\n]+\n$')
        self.box.stop()
        self.ctl('status', status=69)

    def test_doctor(self):
        self.box.start()
        self.ctl('focus', str(self.game.pid), '--persist')
        self.wait_for_source('manual')
        found = json.loads(self.ctl('doctor', '--json', '--root', str(self.box.root)))
        checks = {(f['check'], f['level']) for f in found['findings']}
        self.assertLessEqual({('cgroup', 'ok'), ('dmem', 'ok'), ('state', 'ok'), ('ownership', 'ok')},
                             checks)
        self.assertEqual(found['problems'], 0)
        self.assertNotIn(('ownership', 'warning'), checks)


if __name__ == '__main__':
    why = sandbox.missing()
    if why:
        print('SKIP:', why)
        sys.exit(77)
    unittest.main()
