# SPDX-License-Identifier: MIT
"""labwc: all that test_toplevel.py asks of a compositor based on wlroots, and its Xwayland."""

import os

os.environ['COMPOSITOR'] = 'labwc'

import wayland  # noqa: E402
from test_toplevel import Toplevel  # noqa: E402, F401: its tests
from wayland import desk, wait_for  # noqa: E402


class Labwc(wayland.WaylandCase):
    def test_xwayland(self):
        """X windows are known by the server; with another in front X says nothing, and then nobody is named."""
        self.compositor('labwc')
        self.desk.agent()
        xterm = self.xterm('One')
        self.wait_report(self.mock, 'the X window', source='x11', game=xterm.pid, window=True)
        self.desk.env.update(self.clients)  # as in a session; what is asked now knows that this is Wayland
        self.desk.show_once()
        foot = self.foot('no-unit')
        wait_for(lambda: all(line['front'] == 'unknown' for line in self.desk.once().values()), 'nobody is named')
        foot.kill()
        wait_for(lambda: any(line['pid'] == xterm.pid for line in self.desk.once().values()), 'the X window again')


if __name__ == '__main__':
    desk.run_tests(wayland.missing('labwc', 'foot', 'xterm', 'Xwayland'))
