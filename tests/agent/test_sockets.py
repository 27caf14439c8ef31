# SPDX-License-Identifier: MIT
"""The sources that are sockets, beside fakes of their other ends: Hyprland, which does not run without a graphics card,
and whatever else a socket of sway's or of Wayland's may say, or not say."""

import json
import os
import pathlib
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'client'))
import desk  # noqa: E402
from desk import readable, wait_for  # noqa: E402
from test_gamescope import Case  # noqa: E402

GAME = 1091500
SIGNATURE = '5f2a1b7c_1732990000_42'


class Server:
    """A socket; what a connection to it is told, says talk(connection). All stay open until it is closed."""

    def __init__(self, path, talk=lambda connection: None):
        self.path, self.talk, self.connections = path, talk, []
        path.parent.mkdir(parents=True, exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(10)
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            readable(self.listener, None)
            with self.lock:
                try:
                    connection, _ = self.listener.accept()
                except OSError:
                    return
                connection.settimeout(10)
                self.connections.append(connection)
            try:
                self.talk(connection)
            except OSError:
                pass  # it is gone

    def settle(self):
        """Whoever has connected until now will be sent to."""
        wait_for(lambda: not readable(self.listener, 0), 'to be accepted')
        with self.lock:
            pass

    def send(self, data):
        for connection in self.connections:
            try:
                connection.sendall(data)
            except OSError:
                pass

    def close(self, unlink=True):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        for s in (self.listener, *self.connections):
            s.close()
        if unlink:
            self.path.unlink(missing_ok=True)


class SocketCase(Case):
    def setUp(self):
        super().setUp()
        self.mock = self.vramd()

    def server(self, path, talk=lambda connection: None):
        server = Server(self.desk.runtime / path, talk)
        self.addCleanup(lambda: server.thread.is_alive() and server.close())
        return server

    def why(self, source, place):
        line = self.desk.once('--source', source, status=3)[source, place]
        self.assertEqual(line['front'], 'unknown')
        return line['why']

    def assert_quiet(self, agent):
        time.sleep(0.3)
        self.assertEqual(agent.usage(2)[1], 0)


class Hyprland(SocketCase):
    def setUp(self):
        super().setUp()
        self.asked, self.delay = 0, 0
        self.window = {}

    def talk(self, connection):
        """One question a connection; until it is asked, all of Hyprland waits."""
        self.assertEqual(connection.recv(100), b'j/activewindow')
        self.events.settle()
        self.asked += 1
        window = self.window
        time.sleep(self.delay)
        connection.sendall(window if isinstance(window, bytes) else json.dumps(window, indent=4).encode())
        connection.close()

    def hyprland(self, signature=SIGNATURE):
        directory = f'hypr/{signature}'
        self.events = self.server(f'{directory}/.socket2.sock')  # first: talk() waits for it
        self.questions = self.server(f'{directory}/.socket.sock', self.talk)

    def show(self, pid, address, name='foot', tell=True):
        self.window = {'address': f'0x{address}', 'mapped': True, 'workspace': {'id': 1, 'name': '1'}, 'class': name,
                       'title': 'activewindowv2>>', 'pid': pid, 'xwayland': False} if pid else {}
        if tell:
            self.tell(address)

    def tell(self, address):
        self.events.send(f'activewindow>>foot,a > b\nactivewindowv2>>{address}\n'.encode())

    def wait_game(self, what, game, **want):
        return self.wait_report(self.mock, what, source='hyprland', game=game, menu='unknown', **want)

    def start(self):
        self.hyprland()
        self.show(self.game, 'a0', tell=False)
        agent = self.desk.agent()
        self.wait_game('what was there before', self.game, compositor=os.getpid())
        return agent

    def test_windows(self):
        agent = self.start()
        self.show(self.other, 'b0', f'steam_app_{GAME}')
        self.wait_game('another one', self.other, appid=GAME)
        self.show(None, '')
        self.wait_game('an empty workspace', None, appid=None)
        self.show(self.game, 'a0')
        self.wait_game('back', self.game)
        self.assertEqual(self.asked, 4)
        self.assert_quiet(agent)
        self.assertEqual(len({r['sender'] for r in self.reports(self.mock)}), 1)

    def test_titles(self):
        """The same window again, a thousand times: it is not even asked."""
        self.start()
        self.show(self.other, 'b0')
        self.wait_game('another one', self.other)
        asked, n = self.asked, len(self.mock.log())
        for _ in range(1000):
            self.tell('b0')
        self.show(self.game, 'a0')
        self.wait_game('the next', self.game)
        self.assertEqual((self.asked, len(self.mock.log())), (asked + 1, n + 1))

    def test_while_it_is_asked(self):
        """What moves before the answer is there is asked once more, and the last answer counts."""
        self.start()
        self.delay = 0.3
        self.show(self.other, 'b0')
        wait_for(lambda: self.asked == 2, 'the question')
        self.show(self.game, 'a0')
        self.wait_game('the one in between', self.other)
        self.wait_game('the last', self.game)
        self.assertEqual(self.asked, 3)

    def test_storm(self):
        self.start()
        for i in range(2000):
            self.show(self.other if i % 2 else self.game, 'b0' if i % 2 else 'a0')
        self.wait_game('the last', self.other)
        self.assertLess(self.asked, 500)

    def test_in_pieces(self):
        self.start()
        self.show(self.other, 'b0', tell=False)
        for byte in b'activewindowv2>>b0\n':
            self.events.send(bytes([byte]))
            time.sleep(0.002)
        self.wait_game('another one', self.other)

    def test_ends_and_comes_back(self):
        self.start()
        sender = self.reports(self.mock)[-1]['sender']
        for server in (self.questions, self.events):
            server.close(unlink=False)  # as after kill -9
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of the connection')
        self.assertEqual(self.mock.log('Withdraw'), [])
        self.show(self.other, 'b0', tell=False)
        self.hyprland('another_1_2')
        self.wait_game('the next one', self.other)

    def test_garbage(self):
        self.hyprland()
        for window in (b'', b'unknown request', b'{"pid": ', b'\0' * 1000, b'[' * 5000, b'{} {}'):
            self.window = window
            self.assertEqual(self.why('hyprland', SIGNATURE), 'what it says makes no sense', window)
        self.window = b'{' + b' ' * 100000
        self.assertEqual(self.why('hyprland', SIGNATURE), 'it does not take questions')
        self.window = {'pid': 1}
        self.assertEqual(self.why('hyprland', SIGNATURE), 'it does not say who is in front')
        # A line without end.
        self.show(self.game, 'a0', tell=False)
        self.desk.agent()
        sender = self.wait_game('the game', self.game)['sender']
        self.events.send(b'x' * 200000)
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of the connection')
        wait_for(lambda: self.reports(self.mock)[-1]['sender'] != sender, 'the next try')

    def test_no_answer(self):
        """It is asked and says nothing: after a while the source is over, and nobody hangs until then."""
        self.start()
        self.delay = 20
        self.addCleanup(setattr, self, 'delay', 0)
        sender = self.reports(self.mock)[-1]['sender']
        self.show(self.other, 'b0')
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of the source', timeout=15)


class Sway(SocketCase):
    PLACE = 'sway-ipc.0.1.sock'

    def message(self, kind, payload, size=None):
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return b'i3-ipc' + struct.pack('=II', len(data) if size is None else size, kind) + data

    def tree(self, pid):
        return self.message(4, {'type': 'root', 'focus': [2], 'nodes': [
            {'type': 'con', 'id': 2, 'focus': [], 'nodes': [], 'pid': pid}]})

    def sway(self, *pieces):
        """Says this to each that comes, piece by piece."""
        def talk(connection):
            self.assertTrue(connection.recv(1000).startswith(b'i3-ipc'))
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.05)
        return self.server(self.PLACE, talk)

    def whole(self):
        return self.message(2, {'success': True}) + self.tree(self.game)

    def test_in_pieces(self):
        data = self.whole()
        self.sway(*(data[i:i + 40] for i in range(0, len(data), 40)))
        self.desk.agent()
        self.wait_report(self.mock, 'the game', source='sway', game=self.game)

    def test_half_a_message(self):
        """It is kept, costs no wake-up, and then the whole one counts."""
        server = self.sway(self.whole())
        agent = self.desk.agent()
        self.wait_report(self.mock, 'the game', game=self.game)
        event = self.message(0x80000003, {'change': 'focus', 'container': {'name': 'x' * 5000}})
        server.send(event[:3000])
        self.assert_quiet(agent)
        server.send(event[3000:])
        time.sleep(0.3)
        server.send(self.tree(self.other))
        self.wait_report(self.mock, 'the other', game=self.other)

    def test_no_answer(self):
        """Neither then nor later: the source is over in the end."""
        server = self.sway(self.whole())
        self.desk.agent()
        sender = self.wait_report(self.mock, 'the game', game=self.game)['sender']
        server.talk = lambda connection: None
        server.send(self.message(0x80000000, {'change': 'focus'}) + self.tree(self.other)[:30])
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of the source', timeout=15)

    def test_garbage(self):
        place = str(self.desk.runtime / self.PLACE)
        ok = self.message(2, {'success': True})
        for why, data in (
                ('what it says makes no sense', b'HTTP/1.1 400 Bad Request\r\n\r\n'),
                ('what it says makes no sense', self.message(2, {'success': False}) + self.tree(self.game)),
                ('what it says makes no sense', ok + self.message(4, b'{"type": "root"')),
                ('what it says makes no sense', ok + self.message(4, b'[' * 100000)),
                ('what it says makes no sense', ok + self.message(4, {'type': 'con', 'pid': self.game})),
                ('what it says makes no sense', ok + self.message(4, b'', size=0xffffffff)),
                ('no answer yet', ok + self.message(4, b'{}', size=8 << 20)),
                ('it does not say who is in front', ok + self.tree(1)),
                ('it does not say who is in front', ok + self.message(4, {'type': 'root', 'focus': [7]}))):
            with self.subTest(why, data=data[:80]):
                server = self.sway(data)
                self.assertEqual(self.why('sway', place), why)
                server.close()

    def test_somebody_elses(self):
        """A file, a link to a socket, and a socket of another user's are not even connected to."""
        other = self.server('elsewhere', lambda c: self.fail('it was connected to'))
        os.symlink(other.path, self.desk.runtime / self.PLACE)
        (self.desk.runtime / 'sway-ipc.0.2.sock').touch()
        theirs = self.server('sway-ipc.0.3.sock', lambda c: self.fail('it was connected to'))
        os.chown(theirs.path, 4242, 4242)
        self.assertEqual(list(self.desk.once('--source', 'sway', status=3)), [('sway', None)])

    def test_by_its_variable(self):
        server = self.server('elsewhere/sway', lambda c: c.sendall(self.whole()))
        env = {'SWAYSOCK': str(server.path)}
        self.assertEqual(self.desk.once(env=env)['sway', str(server.path)]['pid'], self.game)


class Wayland(SocketCase):
    def test_no_list_of_windows(self):
        """As with KWin, mutter and weston: it is somebody else's, and left in peace."""
        def talk(connection):
            self.assertEqual(len(connection.recv(1000)), 24)  # get_registry and sync
            connection.sendall(struct.pack('=IHH II', 2, 0, 28, 1, 7) + b'wl_shm\0\0' + struct.pack('=I', 1))
            connection.sendall(struct.pack('=IHH I', 3, 0, 12, 1))
        server = self.server('wayland-0', talk)
        self.assertEqual(self.why('foreign-toplevel', 'wayland-0'), 'it does not list its windows')
        agent = self.desk.agent()
        wait_for(lambda: len(server.connections) >= 2, 'the agent')
        self.assert_quiet(agent)

    def test_garbage(self):
        ended, waits = 'the compositor has ended', 'no answer yet'
        for i, (why, data) in enumerate((
                (waits, b'\xff' * 64), (waits, b'HTTP/1.1 400 Bad Request\r\n\r\n'), (waits, b'\0' * 64),
                (ended, struct.pack('=IHH', 1, 9, 8)), (ended, struct.pack('=IHHIII', 1, 0, 20, 1, 1, 0xffffff)),
                (ended, struct.pack('=IHHIII', 1, 0, 20, 1, 1, 0)), (ended, struct.pack('=IHHII', 2, 0, 16, 1, 0)))):
            def talk(connection, data=data):
                connection.recv(1000)
                connection.sendall(data)
            server = self.server(f'wayland-{i}', talk)
            self.assertEqual(self.why('foreign-toplevel', f'wayland-{i}'), why, data)
            server.close()

    def test_silence(self):
        """Who says nothing is waited for, at no cost; the other sources go on; and in the end it is over."""
        self.server('wayland-0')
        self.server(f'hypr/{SIGNATURE}/.socket.sock', lambda c: (
            c.recv(100), c.sendall(json.dumps({'pid': self.game}).encode()), c.close()))
        hyprland = self.server(f'hypr/{SIGNATURE}/.socket2.sock')
        agent = self.desk.agent()
        self.wait_report(self.mock, 'the game', source='hyprland', game=self.game)
        self.assert_quiet(agent)
        agent.kill()
        hyprland.close()
        self.desk.agent()  # ready, after a while


if __name__ == '__main__':
    desk.run_tests()
