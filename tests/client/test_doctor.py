# SPDX-License-Identifier: MIT
"""doctor: each finding, on made-up /proc and /sys/fs/cgroup trees."""
import json
import os

from support import BusTest, main

MIB = 1 << 20
CARD0 = 'drm/0000:03:00.0/vram0'
CGROUP = ('sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/'
          'app-steam-app1091500-4242.scope')
SERIES = {'Available': ['ThrottleHard', 'ThrottleSoft', 'ThrottleLevels', 'ReclaimBackoff', 'ContigWindow',
                        'EvictPriority', 'DisplaceLower', 'GfxoffDelay'],
          'ThrottleSoft': 2000, 'ReclaimBackoff': 20, 'ContigWindow': True, 'EvictPriority': True, 'DisplaceLower': True,
          'GfxoffDelay': 100}
NAMES = ['throttle', 'reclaim-backoff', 'contig-window', 'evict-priority', 'displace-lower']
# What the series gains: tests/bench/contention/README.md. Said the same wherever it is said.
FIGURES = ['within 1 ms', '39 times', '507 to 661 ms', '1.5 to 2.9 ms', '10.8 MiB', '0.67 MiB', '283 ms', '38.5 ms', '46.0 ms',
           '27.0 ms', '223 at worst', '250 MiB', '4.05 MiB', '4 of 4 times', '24.6 ms', '14.6 ms', '32.1 ms', '16.2 ms',
           '78 % of 7201', 'none of 10693', '942', '98 ms', '1.2 ms', '1.67 times']
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
ALL = ['dmem', 'dmem-peak', 'dmem-events', 'device-memory-properties']


def line(source, place=None, why='not there', **more):
    """One of vramd-agent --once --json."""
    return {'source': source, 'place': place, 'counts': False, 'front': 'unknown', 'why': why, 'pid': None,
            'menu': 'unknown', **more}


def known(source, place, pid, counts=True, **more):
    return line(source, place, None, front='process' if pid else 'nobody', pid=pid, counts=counts, **more)


class Doctor(BusTest):
    def setUp(self):
        super().setUp()
        self.root = os.path.join(self.dir.name, 'root')
        self.write('sys/fs/cgroup/cgroup.controllers', 'cpu memory dmem pids\n')
        self.write('sys/fs/cgroup/dmem.capacity', f'{CARD0} {8192 * MIB}\n')
        self.write('proc/cmdline', 'quiet\n')
        self.write('proc/kallsyms', '0000000000000000 T drm_exec_init\t[drm_exec]\n'
                   '0000000000000000 T drm_exec_backoff\t[drm_exec]\n0 t x\n\nnonsense\n')
        self.low = self.write(CGROUP + '/dmem.low', f'{CARD0} {7680 * MIB}\n')
        os.chmod(self.low, 0o644)
        self.write('sys/fs/cgroup/user.slice/x/dmem.low', f'{CARD0} {128 * MIB}\n')
        self.env['PATH'] = f'{self.root}/bin:' + self.env['PATH']
        self.env.pop('XDG_CURRENT_DESKTOP', None)
        self.agent(known('gamescope', ':0', 4242, menu='closed'))

    def agent(self, *lines, text=None):
        """What vramd-agent prints."""
        text = json.dumps(lines) if text is None else text
        path = self.write('bin/vramd-agent', f"#!/bin/sh\n[ \"$*\" = '--once --json' ] && cat <<'EOF'\n{text}\nEOF\n")
        os.chmod(path, 0o755)

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def doctor(self, status=0):
        out, _ = self.run_ctl('doctor', '--root', self.root, status=status)
        self.assert_clean(out)
        findings = json.loads(self.run_ctl('doctor', '--json', '--root', self.root, status=status)[0])
        self.assertEqual(set(findings), {'findings', 'problems', 'warnings'})
        return findings['findings']

    def find(self, findings, check, level, text):
        for f in findings:
            if f['check'] == check and f['level'] == level and text in f['text']:
                if level in ('warning', 'problem'):
                    self.assertTrue(f['advice'], f)
                return f
        raise AssertionError(f'no {level} of {check} with "{text}" in {findings}')

    def levels(self, findings):
        return {f['level'] for f in findings}

    def test_all_is_well(self):
        self.vramd(Abilities=ALL, **SERIES)
        findings = self.doctor()
        self.assertEqual(self.levels(findings), {'ok', 'note'})
        self.assertEqual([f['text'] for f in findings if f['level'] == 'note'],
                         ['card1/vram0 is carved out of system memory: there is nothing to gain.'])

    def test_hierarchies(self):
        self.vramd()
        os.unlink(os.path.join(self.root, 'sys/fs/cgroup/cgroup.controllers'))
        self.find(self.doctor(1), 'cgroup', 'problem', 'not unified')
        self.write('sys/fs/cgroup/unified/cgroup.controllers', 'cpu\n')
        self.find(self.doctor(1), 'cgroup', 'problem', 'hybrid')

    def test_no_dmem(self):
        self.vramd(State='unsupported', Reason='no dmem', Abilities=[])
        self.write('sys/fs/cgroup/cgroup.controllers', 'cpu memory pids\n')
        findings = self.doctor(1)
        self.find(findings, 'dmem', 'problem', 'has no dmem controller')
        self.find(findings, 'state', 'problem', 'no dmem')
        self.write('proc/cmdline', 'quiet cgroup_disable=rdma,dmem ro\n')
        self.find(self.doctor(1), 'dmem', 'problem', 'switched off')

    def test_no_region(self):
        self.vramd()
        self.write('sys/fs/cgroup/dmem.capacity', '')
        self.assertIn('Nouveau', self.find(self.doctor(1), 'dmem', 'problem', 'no driver')['advice'])

    def test_daemon_absent(self):
        f = self.find(self.doctor(1), 'daemon', 'problem', 'not running')
        self.assertIn('systemctl enable --now vramd.service', f['advice'])

    def test_abilities(self):
        self.vramd()
        findings = self.doctor()
        self.find(findings, 'ability', 'ok', 'dmem-peak')
        self.find(findings, 'ability', 'note', 'dmem-events is missing')
        self.find(findings, 'ability', 'note', 'device-memory-properties is missing')

    def test_old_kernel(self):
        self.vramd(Abilities=['dmem'])
        self.find(self.doctor(), 'ability', 'warning', 'way back only')

    def test_series(self):
        self.vramd(Abilities=ALL, **SERIES)
        findings = self.doctor()
        for name in NAMES:
            self.find(findings, 'ability', 'ok', name + ':')
        self.find(findings, 'ability', 'ok', 'root-protection is probably there')
        self.find(findings, 'ability', 'ok', 'lock-backoff:')
        self.find(findings, 'ability', 'ok', 'gfxoff-delay:')
        self.find(findings, 'ability', 'ok', 'set-priority is probably there')

    def test_series_missing(self):
        self.write('proc/kallsyms', '0000000000000000 T drm_exec_init\t[drm_exec]\n0 T drm_exec_backoff2\n')
        self.vramd(Available=[])
        findings = self.doctor()
        for name in (*NAMES, 'dmem-events', 'lock-backoff', 'gfxoff-delay', 'root-protection is probably',
                     'set-priority is probably'):
            f = self.find(findings, 'ability', 'note', name + (' missing' if ' ' in name else ' is missing: '))
            self.assertIn('vramd-kernel', f['advice'])
        # What it costs, in figures.
        texts = {'doctor': ' '.join(f['text'] for f in findings)}
        for page in ('README.md', 'man/vramd-kernel.7.scd'):
            with open(os.path.join(SOURCE, page), encoding='utf-8') as f:
                texts[page] = ' '.join(f.read().split())
        for figure in FIGURES:
            for where, text in texts.items():
                self.assertIn(figure, text, where)
        os.unlink(os.path.join(self.root, 'proc/kallsyms'))
        self.find(self.doctor(), 'ability', 'note', 'lock-backoff cannot be seen')

    def test_series_without_amdgpu(self):
        self.vramd(Available=[], Driver='xe')
        findings = self.doctor()
        self.assertFalse([f for f in findings if 'gfxoff' in f['text'] or 'set-priority' in f['text']])

    def test_series_switched_off(self):
        self.vramd(**SERIES | {'ThrottleSoft': 0, 'ContigWindow': False})
        findings = self.doctor()
        self.find(findings, 'ability', 'note', 'throttle is there, and off: ')
        self.find(findings, 'ability', 'note', 'contig-window is there, and off: ')
        self.find(findings, 'ability', 'ok', 'reclaim-backoff:')

    def test_focus(self):
        self.vramd()
        self.agent(known('gamescope', ':0', 4242, menu='open'), line('kwin', 'bus', 'KWin is not there'), line('sway'),
                   known('x11', ':1', None, counts=False), line('foreign-toplevel'))
        findings = self.doctor()
        self.find(findings, 'focus', 'ok', 'vramd goes by "gamescope".')
        self.find(findings, 'focus', 'ok', 'gamescope (:0) says that process 4242 is in front; the menu is open.')
        self.find(findings, 'focus', 'ok', 'kwin (bus) knows nothing: KWin is not there.')
        self.find(findings, 'focus', 'ok', 'x11 (:1) says that nobody is in front, but a better one knows; a menu')
        self.find(findings, 'focus', 'ok', 'Not there: sway, foreign-toplevel.')
        self.assertEqual(len([f for f in findings if f['check'] == 'focus']), 5)

    def test_focus_that_nobody_tells(self):
        for source in ('', 'units', 'hold', 'gamemode'):
            with self.subTest(source):
                mock = self.vramd(FocusSource=source)
                findings = self.doctor()
                self.find(findings, 'focus', 'note', f'vramd goes by "{source}"' if source else 'Nobody tells vramd')
                f = self.find(findings, 'focus', 'warning', 'gamescope knows who is in front, but nobody tells vramd')
                self.assertIn('systemctl --user enable --now vramd-agent', f['advice'])
                mock.process.kill()
                mock.process.wait()

    def test_focus_that_nobody_knows(self):
        self.vramd(FocusSource='')
        self.agent(line('gamescope'), line('x11', ':0', 'it does not\x1b[2J let us in'))
        findings = self.doctor()
        self.find(findings, 'focus', 'ok', 'x11 (:0) knows nothing')
        level = 'note' if os.getuid() == 0 else 'warning'
        self.find(findings, 'focus', level, 'no source knows who is in front.')
        self.assertEqual("root's own" in json.dumps(findings), os.getuid() == 0)

    def test_gnome(self):
        """vramd reads mutter's marks itself; no source of the agent's knows anything there."""
        self.env['XDG_CURRENT_DESKTOP'] = 'ubuntu:GNOME'
        self.agent(line('gamescope'), line('kwin', 'bus', 'KWin is not there'), line('x11'), line('gamemode'))
        mock = self.vramd(Abilities=ALL, FocusSource='gnome', **SERIES)
        findings = self.doctor()
        self.find(findings, 'focus', 'ok', 'vramd goes by "gnome": it reads itself')
        self.find(findings, 'focus', 'ok', 'vramd-agent has nothing to tell here')
        self.assertEqual({f['level'] for f in findings if f['check'] == 'focus'}, {'ok'})
        mock.process.kill()
        mock.process.wait()
        if os.getuid() != 0:
            findings = self.doctor(1)
            self.assertEqual({f['level'] for f in findings if f['check'] == 'focus'}, {'ok'})
        self.vramd(FocusSource='units')
        findings = self.doctor()
        if os.getuid() == 0:
            self.find(findings, 'focus', 'note', "In root's own session")
        else:
            self.find(findings, 'focus', 'warning', 'has seen no mark yet')

    def test_compositor_that_tells_vramd_itself(self):
        self.vramd(FocusSource='mycompositor')
        self.agent(line('gamescope'), line('x11'))
        findings = self.doctor()
        self.assertEqual({f['level'] for f in findings if f['check'] == 'focus'}, {'ok'})

    def test_agent_that_is_broken(self):
        self.vramd()
        for text in ('', '{}', '[', '[1, null, {"place": 3}, []] x', 'x' * 300000):
            self.agent(text=text)
            self.doctor()
        self.agent(text='{}')
        self.find(self.doctor(), 'focus', 'warning', 'does not say what its sources see')

    def test_agent_that_is_absent(self):
        mock = self.vramd()
        os.unlink(os.path.join(self.root, 'bin/vramd-agent'))
        self.env['PATH'] = f'{self.root}/bin'
        self.find(self.doctor(), 'focus', 'note', 'not installed')
        mock.process.kill()
        mock.process.wait()
        self.vramd(FocusSource='')
        self.find(self.doctor(), 'focus', 'warning', 'not installed')

    def test_rivals(self):
        self.vramd()
        self.find(self.doctor(), 'rival', 'ok', 'No other program')
        self.write('proc/11/comm', 'falcond\n')
        self.write('proc/12/comm', 'hyprland-dmemcg\n')  # a script; comm is cut
        self.write('proc/13/comm', 'main\n')
        os.symlink('/usr/bin/gnome-foreground-booster', os.path.join(self.root, 'proc/13/exe'))
        self.write('proc/14/comm', 'gamescope-wl\n')
        self.write('proc/15/comm', 'falcon\n')
        self.write('proc/16/comm', 'gamescopereaper\n')
        self.write('proc/self/comm', 'vram-guard\n')
        findings = self.doctor()
        self.find(findings, 'rival', 'warning', '"falcond" runs (process 11)')
        self.find(findings, 'rival', 'warning', '"hyprland-dmemcg-boost" runs (process 12)')
        self.find(findings, 'rival', 'warning', '"gnome-foreground-booster" runs (process 13)')
        self.find(findings, 'rival', 'note', '"gamescope-wl" runs (process 14)')
        self.assertEqual(len([f for f in findings if f['check'] == 'rival']), 4)

    def test_services(self):
        self.vramd()
        self.write('sys/fs/cgroup/system.slice/ollama.service/dmem.current', f'{CARD0} {900 * MIB}\n')
        self.write('sys/fs/cgroup/system.slice/plymouth.service/dmem.current', f'{CARD0} {MIB}\n')
        findings = self.doctor()
        f = self.find(findings, 'service', 'warning', 'system.slice/ollama.service" holds 900 MiB')
        self.assertIn('Max=', f['advice'])
        self.assertEqual(len([f for f in findings if f['check'] == 'service']), 1)

    def test_services_with_the_series(self):
        self.vramd(Abilities=ALL, **SERIES)
        self.write('sys/fs/cgroup/system.slice/ollama.service/dmem.current', f'{CARD0} {900 * MIB}\n')
        f = self.find(self.doctor(), 'service', 'note', 'system.slice/ollama.service" holds 900 MiB')
        self.assertIn('cannot be seen', f['advice'])

    def test_services_without_dmem_of_their_own(self):
        self.vramd()
        os.makedirs(os.path.join(self.root, 'sys/fs/cgroup/system.slice/ollama.service'))
        self.write('sys/fs/cgroup/system.slice/dmem.current', f'{CARD0} {900 * MIB}\n')
        self.find(self.doctor(), 'service', 'warning', '"system.slice" holds 900 MiB')

    def test_contested_value(self):
        self.vramd()
        self.write(CGROUP + '/dmem.low', f'{CARD0} 0\n')
        self.find(self.doctor(), 'ownership', 'warning', f'is 0 B of {CARD0}, where vramd promised 7.5')

    def test_page_rounding_is_no_contest(self):
        self.vramd()
        self.write(CGROUP + '/dmem.low', f'{CARD0} {7680 * MIB + 100}\n')
        self.assertEqual(self.levels(self.doctor()), {'ok', 'note'})

    def test_unreadable_value(self):
        self.vramd()
        os.unlink(self.low)
        self.find(self.doctor(), 'ownership', 'warning', 'cannot be read')

    def test_shared_leaf(self):
        if os.getuid() != 0:
            self.skipTest('only root can give a file to user 1000')
        self.vramd()
        self.find(self.doctor(), 'ownership', 'ok', 'Only vramd may write')
        os.chown(self.low, 1000, 1000)
        self.find(self.doctor(), 'ownership', 'note', 'may write dmem.low')


if __name__ == '__main__':
    main()
