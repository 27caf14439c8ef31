# SPDX-License-Identifier: MIT
"""vramd-agent between a fake gamescope on Xvfb and a mock of vramd on a private bus."""

import os
import pathlib
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'client'))
import desk  # noqa: E402
from desk import SOCKETS, XID, Desk, wait_for  # noqa: E402
from support import BusTest  # noqa: E402

STEAM, GAME, SHORTCUT = 769, 1091500, 3156562597


class Case(BusTest):
    def setUp(self):
        super().setUp()
        self.desk = Desk()
        self.desk.env['DBUS_SYSTEM_BUS_ADDRESS'] = self.addresses['system']
        self.addCleanup(self.desk.close)
        self.game, self.other, self.steam = (self.desk.process().pid for _ in range(3))

    def reports(self, mock):
        return mock.log('ReportFocus')

    def wait_report(self, mock, what, **want):
        """The last report says this, whatever else; None: the key is not there."""
        def right():
            reports = self.reports(mock)
            return reports and all(reports[-1].get(k) == v for k, v in want.items()) and reports[-1]
        try:
            return wait_for(right, what)
        except TimeoutError:
            self.fail(f'{what}: {self.reports(mock)[-3:]}, want {want}')

    def start(self, servers=(0, 1), *options):
        """Everything, with a game in front."""
        mock = self.vramd()
        self.servers = [self.desk.xserver(n) for n in servers]
        gamescope = self.desk.gamescope(*options, *(f':{n}' for n in servers))
        agent = self.desk.agent()
        self.show_game(gamescope)
        self.wait_report(mock, 'the game', source='gamescope', game=self.game)
        return mock, gamescope, agent

    def show_game(self, gamescope):
        gamescope.steam(GAME, GAME, (XID, STEAM, self.steam), (XID, GAME, self.game))


class Scenario(Case):
    def test_truth_table(self):
        mock, gamescope, _ = self.start()
        steam, game = (XID, STEAM, self.steam), (XID, GAME, self.game)
        other, ours = (XID + 1, SHORTCUT, self.other), {'source': 'gamescope', 'compositor': gamescope.pid}
        for what, gfx, app, windows, want in (
                ('the game', GAME, GAME, (steam, game), {'game': self.game, 'appid': GAME, 'menu': 'closed'}),
                ('the menu', GAME, STEAM, (game,), {'game': self.game, 'appid': GAME, 'menu': 'open'}),
                ('closed again', GAME, GAME, (steam, game), {'game': self.game, 'menu': 'closed'}),
                ('home', STEAM, STEAM, (steam, game), {'game': None, 'menu': 'closed', 'running': [self.game]}),
                ('the game again', GAME, GAME, (steam, game), {'game': self.game, 'running': None}),
                ('another overlay', GAME, 5335, (steam, game), {'game': self.game, 'menu': 'open'}),
                ('no input', GAME, '-', (steam, game), {'game': self.game, 'menu': 'unknown'}),
                ('two games', GAME, GAME, (steam, game, other), {'game': self.game, 'running': [self.other]}),
                ('the shortcut', SHORTCUT, SHORTCUT, (steam, game, other),
                 {'game': self.other, 'appid': SHORTCUT, 'running': [self.game]}),
                ('the end', '-', '-', (), {'game': None, 'running': None, 'menu': 'closed'})):
            with self.subTest(what):
                gamescope.steam(gfx, app, *windows, window=XID if gfx != SHORTCUT else XID + 1)
                self.wait_report(mock, what, **ours, **want)
        self.assertEqual(len({r['sender'] for r in self.reports(mock)}), 1)
        self.assertEqual(mock.log('Withdraw'), [])

    def test_around_one_game(self):
        mock, gamescope, _ = self.start(servers=(0,))
        gamescope.say('forget')
        gamescope.plain(XID, (XID, XID, self.other))
        self.wait_report(mock, 'the game', game=self.other, appid=None, menu='unknown')
        gamescope.plain('-')
        self.wait_report(mock, 'the end', game=None, menu='unknown')

    def test_a_process_that_cannot_be(self):
        """Of somebody else, of nobody, of no number: no source then, and vramd keeps the last word for a while."""
        mock, gamescope, _ = self.start()
        stranger = self.desk.spawn('setpriv', '--reuid=4242', 'sleep', 'infinity').pid
        wait_for(lambda: os.stat(f'/proc/{stranger}').st_uid == 4242, 'the stranger')
        n = len(self.reports(mock))
        for pid in (stranger, 0, 1 << 30, 0x7fffffff, 0xffffffff):
            gamescope.steam(GAME, GAME, (XID, GAME, pid))
            time.sleep(0.1)
            line = self.desk.once('--source', 'gamescope', status=3)['gamescope', ':0']
            self.assertEqual((line['front'], line['pid']), ('unknown', None))
        self.assertEqual(len(self.reports(mock)), n)

    def test_values_of_other_kinds(self):
        _, gamescope, _ = self.start()
        for words, front in ((('GAMESCOPE_FOCUSED_APP_GFX', 8, 'aca71000'), 'process'),  # absent: as without --steam
                             (('GAMESCOPE_FOCUSED_WINDOW', 16, '00000040'), 'unknown'),
                             (('GAMESCOPE_FOCUSABLE_WINDOWS', 8, '00'), 'unknown'),
                             (('GAMESCOPE_PID', 8, 'ffffffff'), 'unknown')):
            gamescope.say('raw', *words)
            line = self.desk.once('--source', 'gamescope')['gamescope', ':0']
            self.assertIn(line['front'], (front, 'unknown'), words)

    def test_without_its_pid(self):
        """Old versions do not say it, and here Xvfb listens: then the compositor is not known."""
        mock, _, _ = self.start((0, 1), '--old')
        self.wait_report(mock, 'the game', compositor=None)

    def test_a_pid_that_is_not_gamescope(self):
        mock, gamescope, _ = self.start()
        # Any client of the server can write it.
        gamescope.say('raw', 'GAMESCOPE_PID', 32, self.other.to_bytes(4, 'little').hex())
        line = wait_for(lambda: (li := self.desk.once('--source', 'gamescope')['gamescope', ':0'])['front'] == 'unknown'
                        and li, 'unknown')
        self.assertIsNone(line['compositor'])


class Storm(Case):
    def storm(self, mock, agent, make):
        """Nothing of it is reported; its seconds, and the agent's share of a core and wake-ups a second."""
        n = len(mock.log())
        before, began = desk.cpu_and_wakeups(agent.pid), time.monotonic()
        make()
        seconds, after = time.monotonic() - began, desk.cpu_and_wakeups(agent.pid)
        self.assertEqual(len(mock.log()), n)
        return seconds, (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds

    def test_equal_values(self):
        """10,000 of them at 1,000 a second (6 of each look at the focus): no report, and next to no time."""
        mock, gamescope, agent = self.start()
        seconds, share, wakeups = self.storm(mock, agent, lambda: gamescope.say('again', 1700, 5500))
        print(f'storm: {share:.2%} of a core, {wakeups:.0f} wake-ups/s, {6 * 1700 / seconds:.0f} values/s',
              file=sys.stderr)
        if not os.environ.get('VRAMD_SANITIZED'):
            self.assertLess(share, 0.01)
        # It still hears.
        gamescope.steam(GAME, STEAM, (XID, GAME, self.game))
        self.wait_report(mock, 'the menu', menu='open')

    def test_noise(self):
        """What changes with each input is not even read."""
        mock, gamescope, agent = self.start()
        _, _, wakeups = self.storm(mock, agent, lambda: gamescope.say('noise', 3000, 900))
        self.assertLess(wakeups, 250)

    def test_many_at_once(self):
        """As fast as it can be written; the last value counts."""
        mock, gamescope, _ = self.start()
        for i in range(300):
            gamescope.say('steam', GAME, STEAM if i % 2 else GAME, XID, ':1', f'{XID}:{GAME}:{self.game}')
        gamescope.steam(STEAM, STEAM, (XID, GAME, self.game))
        self.wait_report(mock, 'home', game=None, running=[self.game])
        self.assertLess(len(self.reports(mock)), 300)

    def test_quiet(self):
        """Nothing changes: it does not even wake up."""
        _, _, agent = self.start()
        time.sleep(0.5)
        self.assertEqual(agent.usage(3)[1], 0)

    def test_quiet_without_anything(self):
        """Neither X nor gamescope, so nobody is talked to."""
        agent = self.desk.agent()
        time.sleep(0.5)
        self.assertEqual(agent.usage(3)[1], 0)


class Lives(Case):
    def test_agent_first(self):
        mock = self.vramd()
        shutil.rmtree(SOCKETS, ignore_errors=True)
        self.desk.agent()
        self.desk.xserver(0)
        gamescope = self.desk.gamescope(':0')
        self.show_game(gamescope)
        self.wait_report(mock, 'the game', game=self.game)

    def test_marked_late(self):
        mock = self.vramd()
        self.desk.xserver(0)
        gamescope = self.desk.gamescope('--late', ':0')
        self.desk.agent()
        self.show_game(gamescope)
        time.sleep(0.3)
        self.assertEqual(self.reports(mock), [])
        gamescope.say('mark')
        self.wait_report(mock, 'the game', game=self.game)

    def test_never_first_to_leave(self):
        """A server that ends with its last client must not end with us."""
        self.vramd()
        server = self.desk.xserver(0, '-terminate')
        (self.desk.runtime / 'gamescope-0').touch()
        self.desk.agent()
        time.sleep(1)
        gamescope = self.desk.gamescope(':0')
        self.show_game(gamescope)
        time.sleep(0.3)
        self.assertIsNone(server.poll())

    def test_gamescope_ends_and_comes_back(self):
        mock, gamescope, _ = self.start()
        sender = self.reports(mock)[-1]['sender']
        n = len(self.reports(mock))
        gamescope.kill()
        for server in self.servers:
            server.kill()
            server.wait()
        # The connection ends without a word: vramd's grace begins.
        wait_for(lambda: not mock.bus.name_has_owner(sender), 'the end of the connection')
        self.assertEqual((len(self.reports(mock)), mock.log('Withdraw')), (n, []))
        for n in (0, 1):
            self.desk.xserver(n)
        gamescope = self.desk.gamescope(':0', ':1')
        self.show_game(gamescope)
        self.wait_report(mock, 'the game again', game=self.game, compositor=gamescope.pid)

    def test_it_ends_while_its_server_is_asked(self):
        mock, gamescope, agent = self.start(servers=(0,))
        sender = self.reports(mock)[-1]['sender']
        gamescope.steam(GAME, STEAM, (XID, GAME, self.game))
        self.servers[0].send_signal(signal.SIGSTOP)  # within the debounce: the questions come later
        time.sleep(0.1)
        gamescope.kill()
        wait_for(lambda: not mock.bus.name_has_owner(sender), 'the end of the connection')
        self.assertEqual(agent.kill(signal.SIGTERM), 0)

    def test_only_gamescope_ends(self):
        """Its server lives on, with properties of the past."""
        mock, gamescope, _ = self.start(servers=(0,))
        sender = self.reports(mock)[-1]['sender']
        gamescope.kill()
        wait_for(lambda: not mock.bus.name_has_owner(sender), 'the end of the connection')
        time.sleep(0.5)
        line = self.desk.once('--source', 'gamescope', status=3)['gamescope', ':0']
        self.assertEqual((line['front'], line['compositor']), ('unknown', None))
        gamescope = self.desk.gamescope(':0')
        self.show_game(gamescope)
        self.wait_report(mock, 'the game again', game=self.game, compositor=gamescope.pid)

    def test_vramd_restarts(self):
        mock, gamescope, _ = self.start()
        mock.stop()
        gamescope.steam(GAME, STEAM, (XID, GAME, self.game))
        mock = self.vramd()
        self.wait_report(mock, 'all of it', game=self.game, appid=GAME, menu='open', compositor=gamescope.pid)

    def test_vramd_refuses(self):
        mock = self.vramd()
        mock.call('Fail', 'ReportFocus', 'io.github.vramd1.NotPermitted', 'not today')
        self.desk.xserver(0)
        gamescope = self.desk.gamescope(':0')
        with open(self.desk.runtime / 'log', 'w', encoding='utf-8') as log:
            agent = self.desk.agent(stderr=log)
        self.show_game(gamescope)
        text = wait_for((self.desk.runtime / 'log').read_text, 'a line')
        self.assertIn('not today', text)
        gamescope.steam(GAME, STEAM, (XID, GAME, self.game))
        wait_for(lambda: len(self.reports(mock)) == 2, 'the second')
        time.sleep(0.1)
        self.assertEqual((self.desk.runtime / 'log').read_text().count('\n'), 1)
        mock.call('Fail', 'ReportFocus', '', '')
        self.show_game(gamescope)
        self.wait_report(mock, 'the third', menu='closed')
        self.assertEqual(agent.kill(signal.SIGTERM), 0)

    def test_ends_in_order(self):
        mock, _, agent = self.start()
        self.assertEqual(agent.kill(signal.SIGTERM), 0)
        self.assertEqual(mock.log('Withdraw'), [])

    def test_a_server_that_hangs(self):
        """Stopped: it takes connections, and greets nobody."""
        mock = self.vramd()
        server = self.desk.xserver(0)
        gamescope = self.desk.gamescope(':0')
        self.show_game(gamescope)
        server.send_signal(signal.SIGSTOP)
        self.desk.agent()  # is ready in spite of it
        server.send_signal(signal.SIGCONT)
        self.wait_report(mock, 'the game', game=self.game)

    def test_slow_to_greet(self):
        """Nor does it end when we had no patience until it greets."""
        mock = self.vramd()
        server = self.desk.xserver(0, '-terminate')
        server.send_signal(signal.SIGSTOP)
        (self.desk.runtime / 'gamescope-0').touch()
        log = self.desk.runtime / 'log'
        with open(log, 'w', encoding='utf-8') as f:
            self.desk.agent('--source', 'gamescope', '-v', stderr=f)
        wait_for(lambda: 'will try again' in log.read_text(), 'its first try', timeout=60)
        server.send_signal(signal.SIGCONT)
        time.sleep(1)
        self.assertIsNone(server.poll())
        gamescope = self.desk.gamescope(':0')
        self.show_game(gamescope)
        self.wait_report(mock, 'the game', game=self.game)

    def test_a_left_over_socket(self):
        """Where nobody listens any more it is given up after some tries, until something comes or goes."""
        mock, gamescope, agent = self.start()
        gamescope.kill()
        for server in self.servers:
            server.kill()
            server.wait()
        self.assertTrue(os.path.exists(f'{SOCKETS}/X0'))
        time.sleep(12)  # the tries end after 8 to 9 s
        self.assertEqual(agent.usage(2)[1], 0)
        self.desk.xserver(2)
        gamescope = self.desk.gamescope(':2')
        self.show_game(gamescope)
        self.wait_report(mock, 'the game', compositor=gamescope.pid)

    def test_servers_of_others(self):
        self.vramd()
        stranger = Desk(uid=4242)
        self.addCleanup(stranger.close)
        stranger.xserver(0)
        theirs = stranger.gamescope(':0')
        theirs.steam(GAME, GAME, (XID, GAME, self.game))
        (self.desk.runtime / 'gamescope-0').touch()
        self.assertEqual(list(self.desk.once('--source', 'gamescope', status=3)), [('gamescope', None)])


if __name__ == '__main__':
    desk.run_tests()
