# SPDX-License-Identifier: MIT
"""status, games, top, watch, dump: figures, JSON, widths, errors."""
import json
import subprocess

from support import BusTest, VRAMCTL, main

MIB = 1 << 20
CARD0 = 'drm/0000:03:00.0/vram0'
AMOUNTS = ['current', 'peak', 'low', 'min', 'eased', 'spilled', 'evicted', 'evictions']


class Read(BusTest):
    def test_status(self):
        self.vramd()
        out, err = self.run_ctl('status')
        self.assertEqual(err, '')
        self.assert_clean(out)
        self.assertEqual(self.run_ctl()[0], out)
        for text in ('vramd 0.1.0  protecting', 'Cyberpunk 2077 (1091500), menu closed, says gamescope',
                     'is in front and holds most', '6.9 GiB of 8 GiB used, 7.6 GiB protected', 'amdgpu at 0000:03:00.0',
                     '15.8 GB/s', 'integrated: nothing to gain', '6.1 GiB', '7.5 GiB', '312 MiB',
                     'vramctl run (process 4242 of'):
            self.assertIn(text, ' '.join(out.split()).replace('0.1.0 ', '0.1.0  '))

    def test_bar(self):
        self.vramd()
        self.assertRegex(self.run_ctl()[0], r'\[█{49}░*┃░*\]  87%')
        env = dict(self.env, LC_ALL='C')
        out, _ = self.run_ctl(env=env)
        self.assertRegex(out, r'\[#{49}\.*\|\.*\]  87%')
        self.assertIn('Evil?[2J', out)

    def test_status_json(self):
        self.vramd()
        s = json.loads(self.run_ctl('status', '--json')[0])
        self.assertEqual(list(s), ['version', 'state', 'reason', 'foreground', 'menu', 'focus_source',
                                   'abilities', 'regions', 'games', 'holds'])
        self.assertEqual(s['foreground'], '/io/github/vramd1/game/1')
        self.assertEqual(s['abilities'], ['dmem', 'dmem-peak'])
        self.assertEqual(s['regions'][0], {
            'name': CARD0, 'device': '/dev/dri/card0', 'pci': '0000:03:00.0', 'driver': 'amdgpu',
            'integrated': False, 'capacity': 8192 * MIB, 'current': 7100 * MIB,
            'protected': 7808 * MIB, 'link_bandwidth': 15753846153})
        self.assertEqual(s['holds'][0]['pid'], 4242)
        self.assertEqual(json.loads(self.run_ctl('--json')[0]), s)

    def test_nobody_in_front(self):
        self.vramd(ForegroundGame='/', State='idle')
        # a JSON string, not an object path: the client must skip it without an error
        self.assertIsNone(json.loads(self.run_ctl('--json')[0])['foreground'])
        self.assertIn('In front  nobody', self.run_ctl()[0])

    def test_games(self):
        self.vramd()
        out, _ = self.run_ctl('games')
        self.assert_clean(out)
        self.assertIn('by the name of its unit', out)
        self.assertIn('app-steam-app1091500-4242.scope', out)
        self.assertRegex(out, r'(?m)^\* Cyberpunk 2077')
        self.assertIn('card0/vram0 64 MiB', out)
        games = json.loads(self.run_ctl('games', '--json')[0])
        self.assertEqual(list(games[0]), ['object', 'appid', 'name', 'unit', 'control_group', 'uid',
                                          'mark', 'role', 'foreground', *AMOUNTS, 'eased_usec'])
        self.assertEqual([games[0][a].get(CARD0) for a in AMOUNTS],
                         [6246 * MIB, 7000 * MIB, 7680 * MIB, None, None, 312 * MIB, 64 * MIB, 12])
        self.assertIn('\x1b[2J\u202e', games[1]['name'])  # JSON carries what was said

    def test_eased(self):
        vramd = self.vramd()
        self.assertNotIn('eased', self.run_ctl()[0])
        vramd.call('Ease')
        for verb in ('status', 'games'):
            self.assertRegex(self.run_ctl(verb)[0], r'(?m)^    eased +card0/vram0 5.9 GiB, for 1.3 s yet$')
        game = json.loads(self.run_ctl('--json')[0])['games'][0]
        self.assertEqual((game['eased'], game['eased_usec']), ({CARD0: 6000 * MIB}, 1340000))

    def test_top_in_a_pipe(self):
        self.vramd()
        out, _ = self.run_ctl('top', '-n', '2', '--delay', '100ms')
        self.assert_clean(out)
        self.assertEqual(out.count('protecting'), 2)
        lines = self.run_ctl('top', '--json', '-n', '3', '-d', '100ms')[0].splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual(json.loads(lines[2])['state'], 'protecting')
        self.assertRegex(out, r'(?m)^    evicted +card0/vram0 64 MiB, 12 buffers$')

    def test_top_until_stopped(self):
        self.vramd()
        p = self.start_ctl('top', '--json', '--delay', '100ms')
        for _ in range(3):
            self.assertIn('games', json.loads(p.stdout.readline()))
        self.end_ctl(p)

    def test_tune(self):
        self.vramd()
        out, err = self.run_ctl('tune')
        self.assertEqual(err, '')
        self.assert_clean(out)
        rows = [line.split(maxsplit=3) for line in out.splitlines()]
        self.assertEqual(rows[0], ['NAME', 'VALUE', 'PARAMETER', 'BECAUSE OF'])
        self.assertEqual(rows[1:4], [
            ['ThrottleHard', '50ms', 'ttm.throttle_hard_ms', 'the configuration'],
            ['ThrottleSoft', '2s', 'ttm.throttle_soft_ms', 'set by hand'],
            ['ThrottleLevels', '-', 'ttm.throttle_levels', 'this kernel has none']])
        self.assertEqual(rows[5], ['ContigWindow', 'yes', 'ttm.contig_window',
                                   'another program, after vramd'])
        self.assertEqual(len(rows), 9)

    def test_tune_json(self):
        self.vramd()
        knobs = {k.pop('name'): k for k in json.loads(self.run_ctl('tune', '--json')[0])}
        self.assertEqual(knobs['ThrottleSoft'], {
            'module': 'ttm', 'parameter': 'throttle_soft_ms', 'available': True, 'value': 2000, 'unit': 'ms',
            'origin': 'hand'})
        self.assertEqual(knobs['ContigWindow']['value'], True)
        self.assertEqual(knobs['GfxoffDelay'], {
            'module': 'amdgpu', 'parameter': 'gfxoff_delay_ms', 'available': False, 'value': None, 'unit': 'ms',
            'origin': ''})
        self.assertEqual(len(knobs), 8)

    def test_dump(self):
        self.vramd()
        self.assertEqual(self.run_ctl('dump')[0], 'state: protecting\nname: a\x1b[2Jb\n')

    def test_reader_went_away(self):
        self.vramd()
        p = subprocess.run(f'{VRAMCTL} top --delay 100ms | head -n1', shell=True, env=self.env,
                           timeout=10, capture_output=True, check=False)
        self.assertEqual((p.returncode, p.stderr), (0, b''))


class Watch(BusTest):
    def start(self, *args):
        """watch, once it listens: its first line says so."""
        vramd = self.vramd()
        p = self.start_ctl('watch', *args)
        self.assertRegex(p.stdout.readline(), 'state.+protecting.+is in front')
        return vramd, p

    def lines(self, p, n):
        return [p.stdout.readline().rstrip('\n') for _ in range(n)]

    def test_lines(self):
        vramd, p = self.start()
        vramd.call('Emit')
        lines = self.lines(p, 8)
        self.assert_clean('\n'.join(lines), 200)
        for line, text in zip(lines, [
                r'focus     Cyberpunk 2077 \(1091500\), menu closed, says gamescope - its window has',
                r'protected Cyberpunk 2077 \(1091500\) in app-steam-app1091500-4242.scope: 7.5 GiB of drm',
                r'contested dmem.low drm/\S+ of app-\S+: 7.5 GiB became 0 B - written by',
                r'evicted   Cyberpunk 2077 \(1091500\) lost 64 MiB of drm/\S+ to gamescope-session.service - others',
                r'eased     Cyberpunk 2077 \(1091500\) lost 128 MiB of drm/\S+ - its use fell at once',
                r'restored  Cyberpunk 2077 \(1091500\) has 7.5 GiB of drm/\S+ again - Easing= is over',
                r'released  Evil\?\[2J\?Name \S+ x+ in app-x\\x2dy.scope - it\?\[2J ended',
                r'focus     nobody, menu unknown - nobody has the focus']):
            self.assertRegex(line, r'^\d\d:\d\d:\d\d\.\d{3} ' + text)
        self.end_ctl(p)

    def test_json(self):
        vramd, p = self.start('--json')
        vramd.call('Emit')
        events = [json.loads(line) for line in self.lines(p, 8)]
        self.assertEqual([e['event'] for e in events],
                         ['focus', 'protected', 'contested', 'evicted', 'eased', 'restored', 'released',
                          'focus'])
        self.assertEqual(events[1]['low'], {CARD0: 7680 * MIB})
        self.assertEqual((events[2]['ours'], events[2]['theirs']), (7680 * MIB, 0))
        self.assertEqual(events[3]['by'], 'gamescope-session.service')
        self.assertEqual([e['bytes'] for e in events[3:6]], [64 * MIB, 128 * MIB, 7680 * MIB])
        self.assertGreater(events[0]['time'], 1600000000 * 10**6)
        self.end_ctl(p)

    def test_daemon_goes_and_comes(self):
        vramd, p = self.start()
        vramd.stop()
        self.assertIn('stopped   vramd went away', p.stdout.readline())
        self.vramd()
        self.assertIn('started   vramd is here', p.stdout.readline())
        self.end_ctl(p)

    def test_without_daemon(self):
        p = self.start_ctl('watch')
        self.assertIn('stopped   vramd is not running', p.stdout.readline())
        self.end_ctl(p)


class Errors(BusTest):
    def test_daemon_absent(self):
        for verb in (['status'], ['games'], ['top'], ['dump'], ['reload'], ['focus', '--clear'],
                     ['hold', '1'], ['focus', '1'], ['status', '--json']):
            out, err = self.run_ctl(*verb, status=69)
            self.assertEqual(out, '')
            self.assertEqual(err, 'vramctl: vramd is not running; start it with: '
                                  'systemctl start vramd.service\n')

    def test_no_bus(self):
        env = dict(self.env, DBUS_SYSTEM_BUS_ADDRESS='unix:path=/nonexistent/bus')
        out, err = self.run_ctl('status', status=1, env=env)
        self.assertEqual(out, '')
        self.assertRegex(err, r'^vramctl: the system bus cannot be reached [^\n]*\n$')

    def test_named_error(self):
        self.vramd().call('Fail', 'ListGames', 'io.github.vramd1.Busy', 'Too many calls of "deck"\n.')
        self.assertEqual(self.run_ctl('games', status=1)[1], 'vramctl: Too many calls of "deck" .\n')

    def test_answer_of_another_version(self):
        self.vramd().call('Fail', 'ListGames', 'org.freedesktop.DBus.Error.UnknownMethod', 'no "X"')
        self.assertIn('from one release', self.run_ctl('games', status=1)[1])

    def test_daemon_dies_while_top_runs(self):
        vramd = self.vramd()
        p = self.start_ctl('top', '--json', '--delay', '100ms')
        p.stdout.readline()
        vramd.stop()
        _, err = p.communicate(timeout=10)
        self.assertEqual(p.returncode, 69)
        self.assertIn('not running', err)


if __name__ == '__main__':
    main()
