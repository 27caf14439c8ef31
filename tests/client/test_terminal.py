# SPDX-License-Identifier: MIT
"""On a real pseudo terminal: colours, top's screen, resizing, job control of run."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

from support import BusTest, VRAMCTL, main, wait_for

ENTER, LEAVE = b'\x1b[?1049h', b'\x1b[?1049l'


class Terminal(BusTest):
    def spawn(self, *args, columns=80, rows=24, **env):
        """vramctl as the leader of a session whose terminal is ours."""
        pid, fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
            os.execve(VRAMCTL, [VRAMCTL, *args], dict(self.env, **env))
        self.pid, self.fd, self.seen = pid, fd, b''
        self.addCleanup(os.close, fd)
        self.addCleanup(self.reap)

    def reap(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def read(self, seconds=0.0):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the other side is gone
                return self.seen
            if not data:
                break
            self.seen += data
        return self.seen

    def until(self, text):
        wait_for(lambda: text in self.read(), text)

    def end(self, status=0):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            self.read()
            pid, result = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                self.assertEqual(os.waitstatus_to_exitcode(result), status, self.read())
                return
            time.sleep(0.01)
        raise AssertionError('it does not end')

    def test_colour(self):
        self.vramd()
        self.spawn('status')
        self.end()
        self.assertIn(b'\x1b[32mprotecting\x1b[0m', self.read())
        for args, env in ((['--no-color'], {}), ([], {'NO_COLOR': '1'}), ([], {'TERM': 'dumb'})):
            self.spawn('status', *args, **env)
            self.end()
            self.assertIn(b'protecting', self.read())
            self.assertNotIn(b'\x1b', self.read())

    def test_dump_is_cleaned(self):
        self.vramd()
        self.spawn('dump')
        self.end()
        self.assertIn(b'name: a?[2Jb', self.read())

    def test_width(self):
        self.vramd()
        for columns in (40, 60, 80, 120, 200):
            self.spawn('status', columns=columns, NO_COLOR='1')
            self.end()
            lines = self.read().decode().replace('\r', '').split('\n')
            if columns >= 80:
                self.assert_clean('\n'.join(lines), columns)

    def test_top(self):
        self.vramd()
        self.spawn('top', '--delay', '100ms', rows=12, columns=100)
        wait_for(lambda: self.read().count(b'\x1b[H') > 1, 'a whole frame, and the next one')
        self.assertTrue(self.seen.startswith(ENTER))
        self.assertFalse(termios.tcgetattr(self.fd)[3] & termios.ECHO)
        frames = self.seen.split(b'\x1b[H')
        self.assertIn(b'Cyberpunk', frames[1])
        self.assertIn(b'SPILLED', frames[1])  # the last column is not cleared away
        self.assertLessEqual(frames[1].count(b'\n'), 11)  # never scrolls
        os.write(self.fd, b'q')
        self.end()
        self.assertIn(LEAVE, self.seen)
        self.assertIn(b'\x1b[?25h', self.seen)
        self.assertTrue(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def test_top_resize_and_interrupt(self):
        self.vramd()
        self.spawn('top', '--delay', '1h')
        self.until(b'Cyberpunk')
        n = self.seen.count(b'\x1b[H')
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 120, 0, 0))
        wait_for(lambda: self.read().count(b'\x1b[H') > n, 'a frame for the new size')
        os.write(self.fd, b'\x03')
        self.end()
        self.assertIn(LEAVE, self.seen)

    def test_top_waits_for_the_daemon(self):
        self.spawn('top', '--delay', '100ms')
        self.until(b'waiting for it')
        self.vramd()
        self.until(b'Cyberpunk')
        os.write(self.fd, b'q')
        self.end()

    def test_top_says_why_it_ends(self):
        vramd = self.vramd()
        self.spawn('top', '--delay', '100ms')
        self.until(b'Cyberpunk')
        vramd.call('Fail', 'ListGames', 'io.github.vramd1.Busy', 'Busy "now".')
        self.end(1)
        self.assertIn(b'Busy "now".', self.seen.split(LEAVE)[1])

    def test_run_and_ctrl_c(self):
        self.vramd()
        # Ctrl-C reaches the command once, from the terminal, and not again from us.
        self.spawn('run', '--no-scope', 'sh', '-c',
                   'n=0; trap "n=\\$((n+1))" INT; echo ready; sleep 0.5; sleep 0.5; echo got $n; '
                   'exit 9')
        self.until(b'ready')
        os.write(self.fd, b'\x03')
        self.end(9)
        self.assertIn(b'got 1\r', self.seen)

    def test_run_keeps_the_terminal(self):
        self.vramd()
        self.spawn('run', '--no-scope', 'sh', '-c', 'test -t 0 && test -t 1 && read x && echo "<$x>"')
        os.write(self.fd, b'typed\n')
        self.end()
        self.assertIn(b'<typed>', self.seen)


if __name__ == '__main__':
    main()
