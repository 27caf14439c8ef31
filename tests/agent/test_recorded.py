# SPDX-License-Identifier: MIT
"""The fake gamescope plays what the real one did: it writes the same, and the agent says what it has to say."""

import desk
import recorded
from recorded import GAME, STEAM, Window
from test_gamescope import Case


class Recorded(Case):
    def play(self, gamescope, windows, look):
        v = dict(field.split('=') for field in look.split(' '))
        listed = [windows[name][:3] for name in v['windows'].split(',') if name]
        window = windows[v['window']].xid if v['window'] else '-'
        gamescope.steam(v['gfx'] or '-', v['app'] or '-', *listed, window=window, display=v['display'])

    def test_recording(self):
        mock = self.vramd()
        self.desk.xserver(0)
        gamescope = self.desk.gamescope(':0')
        self.desk.agent()
        # The numbers of the two repeat on the two servers.
        windows = {'steam': Window(desk.XID, STEAM, self.steam, ':0'), 'game': Window(desk.XID, GAME, self.game, ':1')}
        pids = {name: w.pid for name, w in windows.items()}
        steps = recorded.load()
        self.assertEqual(list(steps), list(recorded.REPORTS))
        spy = None
        for step, looks in steps.items():
            with self.subTest(step):
                for look in looks:
                    self.play(gamescope, windows, look)
                    spy = spy or recorded.Spy(self.desk, ':0')
                    self.assertEqual(spy.wait(windows, *look.split(' ')), [look])
                self.wait_report(mock, step, source='gamescope', compositor=gamescope.pid,
                                 **recorded.wanted(step, pids))


if __name__ == '__main__':
    desk.run_tests()
