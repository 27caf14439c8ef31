# SPDX-License-Identifier: MIT
"""libvramd in a program as a compositor would write it (compositor-example.c), with the built vramd on an emulated
machine."""
import itertools
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
import sandbox  # noqa: E402

EXAMPLE = os.environ['EXAMPLE']
BUILD = os.environ['VRAMD_BUILD']
UNIT = 'app-steam-app1091500-4242.scope'
OTHER = 'app-steam-app730-4343.scope'


class Library(unittest.TestCase):
    def setUp(self):
        self.box = sandbox.Sandbox(BUILD)
        self.box.__enter__()
        self.addCleanup(self.box.__exit__, None, None, None)
        self.game = self.box.process(self.box.unit(UNIT))
        self.other = self.box.process(self.box.unit(OTHER))

    def example(self):
        p = subprocess.Popen([EXAMPLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                             preexec_fn=sandbox.die_with_parent)
        self.addCleanup(p.__exit__, None, None, None)
        self.addCleanup(p.kill)
        return p

    def say(self, p, line):
        p.stdin.write(line + '\n')
        p.stdin.flush()

    def low(self, process):
        try:
            return self.box.low(process.group)
        except FileNotFoundError:
            return 0

    def wait_front(self, process, what):
        other = self.other if process is self.game else self.game
        sandbox.wait_for(lambda: self.low(process) > self.low(other), what, 15)

    def test_report(self):
        self.box.start()
        p = self.example()
        self.say(p, f'front {self.game.pid} 1091500')
        self.wait_front(self.game, 'the game in front')
        sandbox.wait_for(lambda: self.box.get('FocusSource') == 'example', 'the source')
        self.assertEqual(self.box.get('Menu'), 'unknown')
        self.say(p, 'menu open')
        sandbox.wait_for(lambda: self.box.get('Menu') == 'open', 'the menu')
        self.say(p, f'front {self.other.pid} 730')
        self.wait_front(self.other, 'the other game in front')
        self.assertEqual(self.box.get('Menu'), 'open')
        self.say(p, 'withdraw')
        sandbox.wait_for(lambda: self.box.get('FocusSource') != 'example', 'the end of the report')
        self.say(p, f'front {self.game.pid}')
        self.wait_front(self.game, 'a new report')

    def test_as_few_messages_as_can_be(self):
        self.box.start()
        p = self.example()
        self.say(p, f'front {self.game.pid}')
        self.wait_front(self.game, 'the game in front')
        monitor = subprocess.Popen(['dbus-monitor', '--address', self.box.address, 'member=ReportFocus'],
                                   stdout=subprocess.PIPE, text=True, preexec_fn=sandbox.die_with_parent)
        self.addCleanup(monitor.__exit__, None, None, None)
        self.addCleanup(monitor.kill)
        monitor.stdout.readline()
        for _ in range(100):
            self.say(p, f'front {self.game.pid}')
        self.say(p, 'menu open')
        self.say(p, f'front {self.other.pid} 730 closed')
        seen = ['']
        while 'string "closed"' not in seen[-1]:
            seen.append(monitor.stdout.readline())
        # One for the menu; one for the other game and the menu's end: never that game with the menu still open.
        self.assertEqual(sum('member=ReportFocus' in line for line in seen), 2)

    def test_vramd_comes_later_and_comes_back(self):
        p = self.example()
        self.say(p, f'front {self.game.pid}')
        self.box.start()
        self.wait_front(self.game, 'the report of before')
        self.box.stop(signal.SIGKILL)
        self.say(p, f'front {self.other.pid}')
        self.box.start()
        self.wait_front(self.other, 'the report of meanwhile')

    def test_bus_comes_back(self):
        self.box.start()
        p = self.example()
        self.say(p, f'front {self.game.pid}')
        self.wait_front(self.game, 'the game in front')
        self.box.stop_bus()
        self.say(p, f'front {self.other.pid}')
        self.box.start_bus()
        self.wait_front(self.other, 'what was said without a bus')

    def test_no_bus_at_first(self):
        self.box.stop_bus()
        p = self.example()
        self.say(p, f'front {self.game.pid}')
        self.box.start_bus()
        self.box.start()
        self.wait_front(self.game, 'what was said without a bus')

    def test_a_bus_that_says_nothing(self):
        """Nobody waits for it, also not at the end."""
        path = self.box.root / 'silent'
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(path))
            s.listen()
            p = subprocess.Popen([EXAMPLE], stdin=subprocess.PIPE, text=True, preexec_fn=sandbox.die_with_parent,
                                 env=dict(os.environ, DBUS_SYSTEM_BUS_ADDRESS=f'unix:path={path}'))
            self.addCleanup(p.kill)
            p.communicate(f'front {self.game.pid}\n', timeout=10)

    def allow_descriptors(self, p, more):
        used = {int(fd) for fd in os.listdir(f'/proc/{p.pid}/fd')}
        limit = next(itertools.islice((fd for fd in itertools.count() if fd not in used), more, None))
        hard = resource.prlimit(p.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(p.pid, resource.RLIMIT_NOFILE, (limit, hard))

    def test_no_descriptor_left_for_a_report(self):
        self.box.start()
        p = self.example()
        self.say(p, f'front {self.game.pid} 1091500')
        self.wait_front(self.game, 'the game in front')
        self.say(p, 'withdraw')
        sandbox.wait_for(lambda: self.box.get('FocusSource') != 'example', 'the end of the report')
        # One for the example's pidfd, none for the message.
        self.allow_descriptors(p, 1)
        self.say(p, f'front {self.game.pid} 1091500')
        self.assertEqual(p.stdout.readline(), 'front: Too many open files\n')
        self.allow_descriptors(p, 100)
        self.say(p, f'front {self.game.pid} 1091500')
        sandbox.wait_for(lambda: self.box.get('FocusSource') == 'example', 'the report, said again')

    def test_no_descriptor_left_for_what_goes_out_later(self):
        self.box.start()
        p = self.example()
        self.say(p, f'front {self.game.pid} 1091500')
        self.wait_front(self.game, 'the game in front')
        self.allow_descriptors(p, 0)
        self.say(p, 'menu open')
        time.sleep(0.1)
        self.assertNotEqual(self.box.get('Menu'), 'open')
        self.allow_descriptors(p, 100)
        sandbox.wait_for(lambda: self.box.get('Menu') == 'open', 'the menu, by itself')
        self.say(p, 'menu closed')
        sandbox.wait_for(lambda: self.box.get('Menu') == 'closed', 'the next change')

    def test_hold(self):
        self.box.start()
        p = self.example()
        self.say(p, f'hold {self.game.pid}')
        self.assertEqual(p.stdout.readline(), 'held\n')
        self.assertEqual([str(h[0]) for h in self.box.manager().ListHolds()], ['example'])
        p.kill()
        sandbox.wait_for(lambda: not self.box.manager().ListHolds(), 'the end of the hold')

    def test_errors(self):
        p = self.example()
        self.say(p, f'hold {self.game.pid}')
        self.assertEqual(p.stdout.readline(), 'hold: No such file or directory\n')
        self.say(p, 'hold -')
        self.assertEqual(p.stdout.readline(), 'hold: Bad file descriptor\n')
        self.box.start()
        stranger = self.box.process('/init.scope')
        self.say(p, f'front {stranger.pid} 10')
        self.assertEqual(p.stdout.readline(), 'vramd: Remote I/O error\n')
        self.assertRegex(p.stdout.readline(), '^refused: .+')
        self.say(p, f'hold {stranger.pid}')
        self.assertEqual(p.stdout.readline(), 'hold: Remote I/O error\n')
        # A refusal is the end of that report and of nothing else.
        self.say(p, f'front {self.game.pid}')
        self.wait_front(self.game, 'the next report')


if __name__ == '__main__':
    why = sandbox.missing()
    if why:
        print(f'skip: {why}', file=sys.stderr)
        sys.exit(77)
    unittest.main()
