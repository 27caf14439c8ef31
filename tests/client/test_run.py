# SPDX-License-Identifier: MIT
"""run: scope before the command, hold beside it, and nothing of the command lost."""
import os
import signal
import subprocess

from support import BusTest, VRAMCTL, main, wait_for


class Run(BusTest):
    def test_scope_hold_then_command(self):
        vramd, systemd = self.vramd(), self.systemd()
        # The command looks at what was done before it began.
        out, err = self.run_ctl('run', '--', 'sh', '-c', 'echo $$')
        self.assertEqual(err, '')
        pid = int(out)
        unit = systemd.log('StartTransientUnit')[0]
        self.assertEqual(unit['name'], f'app-vramd-sh-{pid}.scope')
        self.assertEqual((unit['pids'], unit['how'], unit['Slice'], unit['mode'], unit['aux']),
                         ([pid], 'PIDFDs', 'app.slice', 'fail', 0))
        self.assertEqual(unit['program'], 'vramctl')  # it was not the command yet
        self.assertEqual([c[0] for c in systemd.log()], ['Subscribe', 'StartTransientUnit', 'JobDone'])
        self.assertEqual(vramd.log('Hold'),
                         [{'pid': pid, 'who': 'vramctl run', 'why': 'sh', 'options': 0}])
        wait_for(lambda: vramd.log('HoldClosed'), 'the hold to be closed')

    def test_make_room(self):
        vramd = self.vramd()
        self.systemd()
        out, err = self.run_ctl('run', '--make-room=2G', 'sh', '-c', 'echo $$')
        self.assertEqual(err, 'vramctl: made room: 512 MiB of drm/0000:03:00.0/vram0\n')
        self.assertEqual(vramd.log('MakeRoom'), [{'pid': int(out), 'size': '2G', 'options': 0}])
        # In its scope, and before anybody protects it.
        self.assertEqual([c[0] for c in vramd.log()][:2], ['MakeRoom', 'Hold'])
        self.run_ctl('run', '--no-scope', '--make-room', 'true')
        self.assertEqual(self.run_ctl('run', '--no-scope', 'true')[1], '')
        self.assertEqual([c['size'] for c in vramd.log('MakeRoom')], ['2G', 'max', ''])

    def test_no_room(self):
        vramd = self.vramd()
        vramd.call('Fail', 'MakeRoom', 'io.github.vramd1.Busy', 'Room is being made for another game now')
        out, err = self.run_ctl('run', '--no-scope', '--make-room', 'echo', 'ran')
        self.assertEqual((out, err), ('ran\n', 'vramctl: Room is being made for another game now\n'))
        # An older vramd does not know it, and nobody asked.
        vramd.call('Fail', 'MakeRoom', 'org.freedesktop.DBus.Error.UnknownMethod', 'none')
        self.assertEqual(self.run_ctl('run', '--no-scope', 'echo', 'ran'), ('ran\n', ''))

    def test_waits_for_the_job(self):
        systemd = self.systemd()
        marker = os.path.join(self.dir.name, 'began')
        p = self.start_ctl('run', 'touch', marker)
        wait_for(lambda: systemd.log('StartTransientUnit'), 'the scope')
        self.assertFalse(os.path.exists(marker))
        p.communicate(timeout=10)
        self.assertTrue(os.path.exists(marker))

    def test_old_systemd(self):
        systemd = self.systemd('252')
        self.run_ctl('run', 'true')
        self.assertEqual(systemd.log('StartTransientUnit')[0]['how'], 'PIDs')

    def test_names(self):
        systemd = self.systemd()
        self.run_ctl('run', 'true', env=dict(self.env, SteamAppId='1091500'))
        self.run_ctl('run', 'true', env=dict(self.env, SteamAppId='0'))
        self.run_ctl('run', '--scope-name', 'my.scope', '--slice', 'background.slice', 'true')
        tool = os.path.join(self.dir.name, 'my-game é')
        os.symlink('/bin/true', tool)
        self.run_ctl('run', tool)
        units = systemd.log('StartTransientUnit')
        self.assertRegex(units[0]['name'], r'^app-steam-app1091500-\d+\.scope$')
        self.assertRegex(units[1]['name'], r'^app-vramd-true-\d+\.scope$')
        self.assertEqual((units[2]['name'], units[2]['Slice']), ('my.scope', 'background.slice'))
        self.assertRegex(units[3]['name'],
                         r'^app-vramd-my\\x2dgame\\x20\\xc3\\xa9-\d+\.scope$')

    def test_no_scope(self):
        systemd, vramd = self.systemd(), self.vramd()
        self.run_ctl('run', '--no-scope', 'true')
        self.assertEqual(systemd.log('StartTransientUnit'), [])
        self.assertEqual(len(vramd.log('Hold')), 1)

    def test_exit_status(self):
        self.vramd()
        for code in (0, 1, 3, 69, 255):
            self.run_ctl('run', '--no-scope', 'sh', '-c', f'exit {code}', status=code)
        self.run_ctl('run', '--no-scope', 'sh', '-c', 'kill -SEGV $$', status=128 + signal.SIGSEGV)
        self.assertIn('"nonexistent-program"',
                      self.run_ctl('run', '--no-scope', 'nonexistent-program', status=127)[1])
        self.run_ctl('run', '--no-scope', '/etc/passwd', status=126)

    def test_options_of_the_command_are_its_own(self):
        self.vramd()
        self.assertEqual(self.run_ctl('run', '--no-scope', 'echo', '--help', '-n')[0], '--help -n\n')
        self.assertEqual(self.run_ctl('run', '--no-scope', '--', 'echo', '--', 'x')[0], '-- x\n')

    def test_signals_are_passed_on(self):
        self.vramd()
        for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT, signal.SIGQUIT):
            p = self.start_ctl('run', '--no-scope', 'sh', '-c',
                               f'trap "echo got; exit 42" {sig.value}; echo ready; '
                               'while :; do sleep 0.05; done', start_new_session=True)
            self.assertEqual(p.stdout.readline(), 'ready\n')
            self.assertEqual(self.end_ctl(p, sig, 42)[0], 'got\n')

    def test_signals_of_the_command_are_as_before(self):
        self.vramd()
        out = self.run_ctl('run', '--no-scope', 'grep', '-E', 'SigBlk|SigIgn', '/proc/self/status')[0]
        plain = subprocess.run(['grep', '-E', 'SigBlk|SigIgn', '/proc/self/status'],
                               capture_output=True, text=True, check=True).stdout
        self.assertEqual(out, plain)

    def test_no_descriptor_leaks(self):
        self.vramd()
        self.systemd()
        out = self.run_ctl('run', 'sh', '-c', 'ls /proc/$$/fd')[0]
        self.assertEqual(out.split(), ['0', '1', '2'])

    def test_stdin_is_the_commands(self):
        self.vramd()
        p = subprocess.run([VRAMCTL, 'run', '--no-scope', 'cat'], env=self.env, input=b'hello',
                           capture_output=True, timeout=30, check=False)
        self.assertEqual((p.returncode, p.stdout), (0, b'hello'))

    def test_without_vramd(self):
        self.systemd()
        out, err = self.run_ctl('run', 'echo', 'ran')
        self.assertEqual(out, 'ran\n')
        self.assertRegex(err, r'^vramctl: vramd is not running[^\n]*\n$')
        out, _ = self.run_ctl('run', '--require', 'echo', 'ran', status=125)
        self.assertEqual(out, '')

    def test_without_any_bus(self):
        env = dict(self.env, DBUS_SYSTEM_BUS_ADDRESS='unix:path=/nonexistent',
                   DBUS_SESSION_BUS_ADDRESS='unix:path=/nonexistent')
        out, err = self.run_ctl('run', 'sh', '-c', 'echo ran; exit 7', env=env, status=7)
        self.assertEqual(out, 'ran\n')
        self.assertIn('no systemd of this user', err)
        self.assertEqual(len(err.splitlines()), 2)
        self.run_ctl('run', '--require', 'true', env=env, status=125)

    def test_scope_fails(self):
        self.vramd()
        self.systemd('failed')
        out, err = self.run_ctl('run', 'echo', 'ran')
        self.assertEqual(out, 'ran\n')
        self.assertIn('no scope "app-vramd-echo-', err)

    def test_daemon_that_hangs_delays_little(self):
        vramd = self.vramd()
        vramd.call('Fail', 'Hold', 'hang', '')
        out, err = self.run_ctl('run', '--no-scope', 'echo', 'ran')
        self.assertEqual(out, 'ran\n')
        self.assertIn('did not answer', err)

    def test_hold_comes_back_with_vramd(self):
        vramd = self.vramd()
        p = self.start_ctl('run', '--no-scope', 'sleep', '600')
        wait_for(lambda: vramd.log('Hold'), 'the hold')
        vramd.stop()
        self.assertIn('went away', p.stderr.readline())
        again = self.vramd()
        wait_for(lambda: again.log('Hold'), 'the hold')
        self.end_ctl(p, signal.SIGTERM, 128 + signal.SIGTERM)


if __name__ == '__main__':
    main()
