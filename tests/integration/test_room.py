# SPDX-License-Identifier: MIT
"""MakeRoom: others come down for a moment, and everything is as before when the answer is there. Nothing is moved out
here, since the emulated tree charges what it is told to: tests/lab/tests/make-room.sh has the kernel."""

import os
import pathlib
import signal
import time

import dbus
import dbus.mainloop.glib
from gi.repository import GLib

from support import BUS_NAME, BUS_PATH, FAST, MANAGER, MIB, R1, R2, Case, main, status_of, wait_for

FD = dbus.types.UnixFd
LOOP = dbus.mainloop.glib.DBusGMainLoop()
OPTIONS = dbus.Dictionary({}, signature='sv')


class Room(Case):
    def setUp(self):
        super().setUp()
        self.caller = type(self).get_caller()
        # dmem is on in app.slice from the start, as its user is active.
        self.starting = self.unit('app-vramd-game-1.scope')
        self.browser = self.unit('app-browser-1.scope')
        self.chat = self.unit('app-chat-1.scope')
        self.settle()
        self.charge(self.browser, 5120 * MIB)
        self.charge(self.chat, 1024 * MIB)

    caller_of_all = None

    @classmethod
    def get_caller(cls):
        """One for all tests: dbus-python gives what comes for a closed connection to the next one's loop."""
        if not cls.caller_of_all:
            os.seteuid(1000)
            try:
                cls.caller_of_all = dbus.bus.BusConnection(cls.box.address, mainloop=LOOP)
            finally:
                os.seteuid(0)
            cls.addClassCleanup(cls.caller_of_all.close)
        return cls.caller_of_all

    def unit(self, name, **kwargs):
        return self.box.process(self.box.unit(name, **kwargs))

    def make_room(self, size, process=None, bus=None, **kwargs):
        pidfd = (process or self.starting).pidfd()
        try:
            vramd = (bus or self.caller).get_object(BUS_NAME, BUS_PATH, introspect=False)
            answer = dbus.Interface(vramd, MANAGER).MakeRoom(FD(pidfd), size, OPTIONS, **kwargs)
            self.caller.flush()
            return answer
        finally:
            os.close(pidfd)

    def written(self, group, name='dmem.max'):
        """What was written there, in order: "from -> to"."""
        prefix = f'wrote: {getattr(group, "group", group)} {R1} {name} '
        return [line.split(prefix)[1].split(' (')[0] for line in self.log().splitlines() if prefix in line]

    def test_the_biggest_comes_down(self):
        # 2 GiB are free.
        freed, done = self.make_room('4G')
        self.assertEqual(dict(freed), {})
        self.assertFalse(done)  # for nothing was moved out
        self.assertEqual(self.written(self.browser), [f'max -> {3072 * MIB}', f'{3072 * MIB} -> max'])
        self.assertEqual(self.written(self.chat), [])
        self.assertIsNone(self.max(self.browser))

    def test_all_come_down(self):
        self.make_room('max')
        for process in self.browser, self.chat:
            self.assertEqual(self.written(process), ['max -> 0', '0 -> max'])
        self.assertEqual(self.written(self.starting), [])

    def test_there_is_room(self):
        freed, done = self.make_room('25%')
        self.assertEqual((dict(freed), bool(done)), ({}, True))
        self.assertEqual(self.written(self.browser), [])

    def test_what_is_moved_out_is_told(self):
        answers = []
        self.slow()
        self.make_room('4G', reply_handler=lambda *a: answers.append(a), error_handler=self.fail)
        wait_for(lambda: self.max(self.browser) == 3072 * MIB, 'the ceiling')
        # As the kernel would, while the child waits.
        self.charge(self.browser, 3000 * MIB)
        self.resume()
        self.spin(lambda: answers)
        self.assertEqual([(dict(f), bool(d)) for f, d in answers], [({R1: 2120 * MIB}, True)])

    def spin(self, condition):
        def step():
            while GLib.MainContext.default().iteration(False):
                pass
            return condition()
        wait_for(step, 'an answer', 20)

    def child(self):
        """The pid of the child that waits; None without one."""
        pid = self.box.daemon.pid
        children = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
        return int(children[0]) if children else None

    def slow(self):
        """Who waits for buffers to be moved out does so until resume()."""
        self.box.control('slow on')
        self.addCleanup(self.resume)

    def resume(self):
        self.box.control('slow off')

    def test_games_and_promises_are_spared(self):
        game = self.game()
        self.charge(game, 1024 * MIB)
        self.source().report(game=game)
        self.wait_low(game, self.low(game))
        promised = self.unit('app-promised-1.scope')
        self.charge(promised, 512 * MIB)
        self.box.write(promised.group, 'dmem.low', f'{R1} {MIB}')
        self.make_room('max')
        self.assertEqual(self.written(game), [])
        self.assertEqual(self.written(promised), [])
        self.assertEqual(self.written(self.browser), ['max -> 0', '0 -> max'])
        self.box.write(promised.group, 'dmem.low', f'{R1} 0')

    def test_lower_ceilings_of_others_stay(self):
        self.box.write(self.browser.group, 'dmem.max', f'{R1} {100 * MIB}')
        self.make_room('4G')
        self.assertEqual(self.written(self.browser), [])
        self.assertEqual(self.max(self.browser), 100 * MIB)
        self.make_room('max')
        self.assertEqual(self.written(self.browser), [f'{100 * MIB} -> 0', f'0 -> {100 * MIB}'])
        self.box.write(self.browser.group, 'dmem.max', f'{R1} max')

    def test_a_service_keeps_its_ceiling(self):
        ai = self.unit('ai.service')
        self.charge(ai, 4096 * MIB, R2)
        self.reload(FAST + '[service ai]\nMax=1G\n')
        self.make_room('max')
        lines = [line for line in self.log().splitlines() if f'wrote: {ai.group} {R2} dmem.max' in line]
        self.assertIn(f'max -> {1024 * MIB} (room', lines[0])

    def test_a_stranger_is_not_fought(self):
        answers = []
        self.slow()
        self.make_room('max', reply_handler=lambda *a: answers.append(a), error_handler=self.fail)
        wait_for(self.child, 'the child')
        # The child waits at the browser's.
        fd = os.open(self.box.cgroup / self.chat.group[1:] / 'dmem.max', os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, f'{R1} {7 * MIB}'.encode())
        os.close(fd)
        wait_for(lambda: 'leaves it alone' in self.log(), 'vramd to see it')
        os.kill(self.child(), signal.SIGKILL)
        self.resume()
        self.spin(lambda: answers)
        self.assertEqual(self.max(self.chat), 7 * MIB)
        self.assertIsNone(self.max(self.browser))
        self.box.write(self.chat.group, 'dmem.max', f'{R1} max')

    def test_bounded_in_time(self):
        self.slow()
        begun = time.monotonic()
        answers = []
        self.make_room('4G', reply_handler=lambda *a: answers.append(a), error_handler=self.fail)
        wait_for(self.child, 'the child')
        # Killed after 3 s; the emulated file, unlike the kernel's, lets nobody else write before it is answered.
        wait_for(lambda: self.child() is None or self.killed(self.child()), 'its time to be over', 20)
        self.assertGreaterEqual(time.monotonic() - begun, 3)
        self.resume()
        self.spin(lambda: answers)
        self.assertFalse(answers[0][1])
        self.assertIsNone(self.max(self.browser))
        self.make_room('4G')

    @staticmethod
    def killed(pid):
        try:
            pending = int(status_of(pid)['ShdPnd'], 16) | int(status_of(pid)['SigPnd'], 16)
        except (OSError, KeyError):
            return True
        return bool(pending & 1 << signal.SIGKILL - 1)

    def test_one_at_a_time_and_the_loop_runs(self):
        answers = []
        self.slow()
        self.make_room('4G', reply_handler=lambda *a: answers.append(a), error_handler=self.fail)
        wait_for(self.child, 'the child')
        self.assertEqual(self.get('State'), 'idle')
        self.refuses('Busy', self.make_room, '4G', self.chat, text='another game')
        self.assertEqual(answers, [])
        self.resume()
        self.spin(lambda: answers)

    def test_killed_in_the_middle(self):
        self.slow()
        self.make_room('4G', reply_handler=lambda *a: None, error_handler=lambda e: None)
        wait_for(self.child, 'the child')
        child = self.child()
        self.box.stop(signal.SIGKILL)
        self.assertEqual(self.max(self.browser), 3072 * MIB)
        self.resume()
        wait_for(lambda: not os.path.exists(f'/proc/{child}') or
                 ') Z' in pathlib.Path(f'/proc/{child}/stat').read_text(), 'the child to die with it')
        self.start()
        self.assertIsNone(self.max(self.browser))

    def test_stopped_in_the_middle(self):
        self.slow()
        self.make_room('4G', reply_handler=lambda *a: None, error_handler=lambda e: None)
        wait_for(self.child, 'the child')
        daemon, child = self.box.daemon, self.child()
        daemon.send_signal(signal.SIGTERM)
        wait_for(lambda: self.killed(child), 'the child to be killed first')
        self.resume()
        self.assertEqual(self.box.stop(), 0)
        self.assertIsNone(self.max(self.browser))
        self.start()

    def test_configured_by_unit(self):
        self.reload(FAST + '[game 1091500]\nMakeRoom=4G\n')
        game = self.game()
        wait_for(lambda: len(self.written(self.browser)) == 2, 'room')
        # vramctl run asks as well, in case that nobody saw it.
        self.make_room('', game)
        self.assertEqual(self.make_room('')[1], True)
        self.assertEqual(self.max(self.browser), None)

    def test_a_game_waits_for_anothers_room(self):
        self.reload(FAST + '[game 1091500]\nMakeRoom=4G\n')
        self.slow()
        self.make_room('3G', self.chat, reply_handler=lambda *a: None, error_handler=lambda e: None)
        wait_for(self.child, 'the child')
        self.game()
        self.settle()
        self.assertNotIn("'app-steam-app1091500-4242.scope': busy", self.log())
        self.resume()
        wait_for(lambda: len(self.written(self.browser)) == 4, 'room twice')
        self.assertEqual(self.max(self.browser), None)

    def test_a_user_who_comes_to_the_seat(self):
        self.box.set_user(1000, 'online')
        self.reload(FAST + '[game 1091500]\nMakeRoom=4G\n')
        self.game()
        self.settle()
        self.assertEqual(self.written(self.browser), [])
        self.box.set_user(1000, 'active')
        wait_for(lambda: len(self.written(self.browser)) == 2, 'room')

    def test_not_for_one_that_runs_already(self):
        game = self.game()
        self.charge(game, MIB)
        self.box.stop()
        self.conf(FAST + '[game 1091500]\nMakeRoom=4G\n')
        self.start(config=FAST + '[game 1091500]\nMakeRoom=4G\n')
        self.settle()
        self.assertEqual(self.written(self.browser), [])

    def test_enabled_no(self):
        self.reload(FAST + 'Enabled=no\n')
        self.assertEqual(self.make_room('max')[1], True)
        self.assertEqual(self.written(self.browser), [])

    def test_refused(self):
        for size in 'much', '-1', '101%', '4 G':
            self.refuses('InvalidArgs', self.make_room, size, text='size')
        stranger = self.connect(1001)
        self.polkit_allows()
        self.refuses('NotPermitted', lambda: self.make_room('4G', bus=stranger), text='hold')
        self.polkit_allows('hold')
        self.make_room('4G', bus=stranger)
        outside = self.box.process('/')
        self.refuses('NoUnit', lambda: self.make_room('4G', outside, self.bus))

    def test_dry_run(self):
        self.box.stop()
        self.start('--dry-run')
        self.make_room('4G')
        self.assertIn(f'would write: {self.browser.group} {R1} dmem.max', self.log())
        self.assertIsNone(self.max(self.browser))
        self.box.stop()
        self.start()


if __name__ == '__main__':
    main()
