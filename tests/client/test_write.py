# SPDX-License-Identifier: MIT
"""hold, focus, reload: what reaches the daemon, and for how long."""
import os
import signal
import subprocess

from support import BusTest, main, wait_for


class Write(BusTest):
    def setUp(self):
        super().setUp()
        self.mock = self.vramd()
        self.game = subprocess.Popen(['sleep', '600'])
        self.addCleanup(self.game.wait)
        self.addCleanup(self.game.kill)
        self.pid = str(self.game.pid)

    def test_hold_until_interrupted(self):
        p = self.start_ctl('hold', self.pid, '--who', 'me', '--why', 'because')
        self.assertIn('until Ctrl-C', p.stdout.readline())
        self.assertEqual(self.mock.log('Hold'),
                         [{'pid': self.game.pid, 'who': 'me', 'why': 'because', 'options': 0}])
        self.assertEqual(self.mock.log('HoldClosed'), [])
        self.end_ctl(p)
        wait_for(lambda: self.mock.log('HoldClosed'), 'the hold to be closed')

    def test_hold_for_a_time(self):
        self.run_ctl('hold', self.pid, '--for', '100ms')
        wait_for(lambda: self.mock.log('HoldClosed'), 'the hold to be closed')

    def test_hold_ends_with_the_process(self):
        p = self.start_ctl('hold', self.pid)
        p.stdout.readline()
        self.game.kill()
        out, _ = p.communicate(timeout=10)
        self.assertEqual((p.returncode, out), (0, 'The process ended.\n'))

    def test_hold_closes_when_killed(self):
        p = self.start_ctl('hold', self.pid)
        p.stdout.readline()
        self.end_ctl(p, signal.SIGKILL, -signal.SIGKILL)
        wait_for(lambda: self.mock.log('HoldClosed'), 'the hold to be closed')

    def test_hold_survives_a_restart_of_vramd(self):
        p = self.start_ctl('hold', self.pid)
        p.stdout.readline()
        self.mock.stop()
        self.assertIn('went away', p.stderr.readline())
        again = self.vramd()
        self.assertIn('is back', p.stderr.readline())
        self.assertEqual(len(again.log('Hold')), 1)
        self.end_ctl(p)

    def test_no_such_process(self):
        gone = subprocess.Popen(['true'])
        gone.wait()
        err = self.run_ctl('hold', str(gone.pid), status=1)[1]
        self.assertEqual(err, f'vramctl: there is no process {gone.pid}\n')
        self.assertEqual(self.mock.log('Hold'), [])

    def test_refused(self):
        self.mock.call('Fail', 'Hold', 'io.github.vramd1.NotPermitted', 'Not your process: "7"')
        self.assertEqual(self.run_ctl('hold', self.pid, status=1)[1],
                         'vramctl: Not your process: "7"\n')

    def test_focus(self):
        p = self.start_ctl('focus', self.pid, '--appid', '1091500', '--menu', 'open', '--compositor',
                           str(os.getpid()))
        self.assertIn('in front until Ctrl-C', p.stdout.readline())
        report = self.mock.log('ReportFocus')[0]
        self.assertGreater(report.pop('seq'), 0)
        sender = report.pop('sender')
        self.assertEqual(report, {'source': 'manual', 'game': self.game.pid, 'appid': 1091500,
                                  'menu': 'open', 'compositor': os.getpid()})
        self.assertTrue(self.mock.bus.name_has_owner(sender))
        self.end_ctl(p)
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the report to end')

    def test_focus_persist(self):
        self.run_ctl('focus', self.pid, '--persist')
        report = self.mock.log('ReportFocus')[0]
        self.assertIs(report['persist'], True)
        self.assertEqual(report['menu'], 'unknown')
        self.assertNotIn('appid', report)

    def test_focus_comes_back_with_vramd(self):
        p = self.start_ctl('focus', self.pid)
        p.stdout.readline()
        first = self.mock.log('ReportFocus')[0]['seq']
        self.mock.stop()
        p.stderr.readline()
        again = self.vramd()
        self.assertIn('is back', p.stderr.readline())
        self.assertGreater(again.log('ReportFocus')[0]['seq'], first)
        self.end_ctl(p)

    def test_focus_clear(self):
        self.run_ctl('focus', '--clear')
        self.assertEqual(len(self.mock.log('Withdraw')), 1)

    def test_tune(self):
        self.assertEqual(self.run_ctl('tune', 'EvictPriority=no', 'ContigWindow=yes', 'ThrottleHard=80ms'), ('', ''))
        # What others need comes first.
        self.assertEqual(self.mock.log('Set'), [
            {'name': 'ThrottleHard', 'type': 'UInt32', 'value': 80},
            {'name': 'ContigWindow', 'type': 'Boolean', 'value': 1},
            {'name': 'EvictPriority', 'type': 'Boolean', 'value': 0}])
        self.assertEqual(self.run_ctl('tune', '--reset'), ('', ''))
        self.assertEqual(len(self.mock.log('Reset')), 1)
        self.assertIn('ThrottleLevels', self.run_ctl('tune', 'ThrottleLevels=2', '--json')[0])
        self.assertEqual(self.mock.log('Set')[-1], {'name': 'ThrottleLevels', 'type': 'UInt32', 'value': 2})

    def test_tune_sets_all_or_nothing_of_what_it_understands(self):
        err = self.run_ctl('tune', 'ThrottleHard=80ms', 'ThrottleSoft=1day', status=2)[1]
        self.assertEqual(err, 'vramctl: "ThrottleSoft=1day": not a time such as 50ms or 2s\n')
        err = self.run_ctl('tune', 'ThrottleHard=80ms', 'ThrottleSoft=2min', status=2)[1]
        self.assertEqual(err, 'vramctl: "ThrottleSoft=2min": at most 60s\n')
        self.assertEqual(self.mock.log('Set'), [])

    def test_tune_refused(self):
        for name in ('NoSuchKnob', 'NeedsKnob', 'OutOfRange', 'NotPermitted'):
            self.mock.call('Fail', 'Set', 'io.github.vramd1.' + name, "'ContigWindow' is not there")
            self.assertEqual(self.run_ctl('tune', 'ContigWindow=yes', 'EvictPriority=yes', status=1)[1],
                             "vramctl: 'ContigWindow' is not there\n")
        self.assertEqual(len(self.mock.log('Set')), 4)

    def test_reload(self):
        self.assertEqual(self.run_ctl('reload'), ('', ''))
        self.mock.call('Fail', 'Reload', 'io.github.vramd1.InvalidConfiguration',
                       'vramd.conf:3: reserve="x" is no size\nvramd.conf:9: there is no key "y"')
        self.assertEqual(self.run_ctl('reload', status=1)[1].splitlines(), [
            'vramctl: vramd.conf:3: reserve="x" is no size',
            'vramctl: vramd.conf:9: there is no key "y"',
            'vramctl: these lines keep their defaults; everything else took effect'])


if __name__ == '__main__':
    main()
