# SPDX-License-Identifier: MIT
"""The source gamescope beside the real one, without a GPU; Steam and the game are xterms. What it writes is compared
with the recording that the fake is checked against, what the agent reports with what it has to.

GAMESCOPE_ROOT is a root with gamescope in it, as tests/lab/build --only gamescope makes; RECORD=1 makes the recording
anew. gamescope alone runs in there. It has the same processes and X servers as we, but a /tmp of its own."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / 'agent'), str(TESTS / 'client')]
import desk  # noqa: E402
import recorded  # noqa: E402
from desk import Desk  # noqa: E402
from recorded import GAME, STEAM, Window  # noqa: E402
from support import BusTest  # noqa: E402
from test_gamescope import Case, wait_for  # noqa: E402

ROOT = '/mnt'
SHIM = os.environ['UDMABUF_SHIM']
REAPER = TESTS / 'compositors' / 'reaper'
UID = 1000
# An overlay that is narrower than 1200 pixels is a notification to gamescope, which never has the input.
SIZE = ['-W', '1280', '-H', '800']
XTERM = ['xterm', '-fn', 'fixed', '-geometry', '213x61']
SLEEP = ['-e', 'sleep', 'infinity']


def enter_root():
    """The namespace is ours alone."""
    for command in (['--bind', os.environ['GAMESCOPE_ROOT'], ROOT],
                    ['-t', 'tmpfs', '-o', 'mode=1777', 'tmpfs', ROOT + '/tmp'],
                    *(['--rbind', what, ROOT + what] for what in ('/proc', '/sys', '/dev'))):
        subprocess.run(['mount', *command], check=True)
    os.mkdir(ROOT + desk.SOCKETS)
    subprocess.run(['mount', '--bind', desk.SOCKETS, ROOT + desk.SOCKETS], check=True)
    shutil.copy(SHIM, ROOT + '/tmp/shim.so')
    tempfile.tempdir = ROOT + '/tmp'  # the user's runtime directory is seen from both sides


class Real(Case):
    def setUp(self):
        BusTest.setUp(self)
        os.chmod(self.dir.name, 0o755)  # for another user than root, as gamescope does not run as root
        self.desk = Desk(uid=UID)
        self.desk.env['DBUS_SYSTEM_BUS_ADDRESS'] = self.addresses['system']
        self.addCleanup(self.desk.close)
        self.windows = {}

    def gamescope(self):
        runtime = str(self.desk.runtime).removeprefix(ROOT)
        env = [f'HOME={runtime}', f'XDG_RUNTIME_DIR={runtime}', 'PATH=/usr/games:/usr/bin:/bin', 'LC_ALL=C.UTF-8',
               'LD_PRELOAD=/tmp/shim.so', 'VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json']
        started = self.desk.runtime / 'started'
        started.unlink(missing_ok=True)
        with open(self.desk.runtime / 'gamescope.log', 'ab') as log:
            child = subprocess.Popen(
                ['chroot', f'--userspec={UID}:{UID}', ROOT, '/usr/bin/env', '-i', *env, 'gamescope', '--backend',
                 'headless', *SIZE, '--steam', '--xwayland-count', '2', '--', 'sh', '-c',
                 f'touch {runtime}/started; exec sleep infinity'],
                preexec_fn=desk.die_with_parent, stdout=log, stderr=log)
        self.desk.children.append(child)
        try:
            # No client may come before: when it left, its X server would end, and gamescope with it.
            wait_for(started.exists, 'what it starts itself', timeout=200)
            wait_for(lambda: 'CARDINAL' in self.tool(':0', 'xprop', '-root', recorded.NAMES['display']),
                     'its first look', timeout=200)
        except TimeoutError as e:
            self.fail(f'{e}: {(self.desk.runtime / "gamescope.log").read_text(errors="replace")[-4000:]}')
        return child

    def tool(self, display, *argv):
        p = subprocess.run(argv, env=dict(self.desk.env, DISPLAY=display), user=UID, group=UID, check=False,
                           capture_output=True, text=True, timeout=30)
        return p.stdout

    def set(self, where, name, *values):
        """A property of the root window of the first server, or of one of its windows."""
        target = ['-root'] if where == 'root' else ['-id', str(self.windows[where].xid)]
        self.tool(':0', 'xprop', *target, '-f', name, '32c', '-set', name, ','.join(map(str, values)))

    def window(self, name, appid, display, *command):
        """An xterm, of which gamescope knows before it is told more."""
        self.desk.spawn(*command, *XTERM, '-class', name, *SLEEP, env={'DISPLAY': display}, stderr=subprocess.DEVNULL)
        xid = int(wait_for(lambda: self.tool(display, 'xdotool', 'search', '--onlyvisible', '--class', name), name,
                           timeout=30).split()[-1])
        pid = int(self.tool(display, 'xprop', '-id', str(xid), '_NET_WM_PID').split()[-1])
        self.windows[name] = Window(xid, appid, pid, display)

    # --- the scenario: each waits for what gamescope makes of it

    def see(self, *words):
        self.steps[self.step] += self.spy.wait(self.windows, *words)

    def start_steam(self):
        self.window('steam', STEAM, ':0')
        self.set('steam', 'STEAM_GAME', STEAM)
        self.see('apps=769', 'app=')

    def start_game(self):
        self.window('game', GAME, ':1', str(REAPER), 'SteamLaunch', f'AppId={GAME}', '--')
        self.see(f'apps=769,{GAME}', 'app=')

    def show(self, appid, *behind):
        self.set('root', 'GAMESCOPECTRL_BASELAYER_APPID', appid, *behind)
        self.see(f'app={appid}', f'gfx={appid}')

    def show_game(self):
        self.show(GAME, STEAM)

    def show_home(self):
        self.show(STEAM)

    def open_menu(self):
        self.set('steam', 'STEAM_OVERLAY', 1)
        self.see(f'apps={GAME}', f'app={GAME}')
        self.set('steam', 'STEAM_INPUT_FOCUS', 1)
        self.see(f'app={STEAM}', f'gfx={GAME}')

    def close_menu(self):
        self.set('steam', 'STEAM_INPUT_FOCUS', 0)
        self.see(f'apps={GAME}', f'app={GAME}')
        self.set('steam', 'STEAM_OVERLAY', 0)
        self.see(f'apps=769,{GAME}')

    def notify(self):
        """Drawn over the game, but without the input."""
        self.set('steam', 'STEAM_OVERLAY', 1)
        self.see(f'apps={GAME}', f'app={GAME}')
        self.set('steam', 'STEAM_OVERLAY', 0)
        self.see(f'apps=769,{GAME}')

    def end_game(self):
        os.kill(self.windows['game'].pid, signal.SIGKILL)
        self.see(f'app={STEAM}', 'apps=769')

    ACTIONS = {
        'Steam starts': start_steam, 'the game starts': start_game, 'it comes to the front': show_game,
        'the menu opens': open_menu, 'the menu closes': close_menu, 'a notification': notify, 'home': show_home,
        'the game again': show_game, 'the game ends': end_game,
    }

    def play(self, gamescope, steps):
        for self.step in steps:
            with self.subTest(self.step):
                self.steps[self.step] = []
                self.ACTIONS[self.step](self)
                pids = {name: w.pid for name, w in self.windows.items()}
                self.wait_report(self.mock, self.step, source='gamescope', compositor=gamescope.pid,
                                 **recorded.wanted(self.step, pids))

    def start(self):
        self.windows, self.steps = {}, {}
        gamescope = self.gamescope()
        self.spy = recorded.Spy(self.desk, ':0')
        return gamescope

    def test_scenario(self):
        self.mock = self.vramd()
        agent = self.desk.agent()
        gamescope = self.start()
        self.assertEqual(list(self.ACTIONS), list(recorded.REPORTS))
        self.play(gamescope, self.ACTIONS)
        if os.environ.get('RECORD'):
            version = re.search(r'gamescope version (\S+)', (self.desk.runtime / 'gamescope.log').read_text())[1]
            recorded.save(self.steps, version)
        self.assertEqual(self.steps, recorded.load())

        # x11 may have had a word before gamescope had marked its server.
        sender, = {r['sender'] for r in self.reports(self.mock) if r['source'] == 'gamescope'}
        withdrawn = self.mock.log('Withdraw')
        gamescope.kill()
        wait_for(lambda: not self.mock.bus.name_has_owner(sender), 'the end of the connection')
        gamescope.wait()
        self.assertEqual(self.mock.log('Withdraw'), withdrawn)

        gamescope = self.start()
        self.play(gamescope, ['Steam starts', 'the game starts', 'it comes to the front', 'the menu opens'])
        time.sleep(1)
        usage = agent.usage(2)
        self.assertEqual(usage[1], 0, 'wake-ups while nothing changes')
        line = self.desk.once('--source', 'gamescope', status=0)['gamescope', ':0']
        self.assertEqual((line['pid'], line['appid'], line['menu']), (self.windows['game'].pid, GAME, 'open'))
        self.desk.show_once()
        self.assertEqual(agent.kill(signal.SIGTERM), 0)


if __name__ == '__main__':
    if 'GAMESCOPE_ROOT' not in os.environ:
        desk.run_tests('needs GAMESCOPE_ROOT; tests/compositors/run --all makes it')
    desk.run_tests(before=enter_root)
