# SPDX-License-Identifier: MIT
"""Private buses, the mocks on them, and vramctl as a process."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import dbus
import dbus.bus

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'harness'))
import signals  # noqa: E402, F401
VRAMCTL = os.environ['VRAMCTL']
CONFIG = """<busconfig><type>{kind}</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow send_destination="*"/><allow eavesdrop="true"/>
<allow own="*"/></policy>
{more}</busconfig>
"""


def wait_for(condition, what, seconds=10):
    """The value of condition() as soon as it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f'waited {seconds} s for {what}')


class Mock:
    """One mock process on one bus."""

    def __init__(self, role, address, env, destination, path):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, 'mock.py'), role],
                                        env=env, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != 'ready\n':
            self.process.kill()
            raise AssertionError('the mock does not start')
        self.bus = dbus.bus.BusConnection(address)
        self.object = self.bus.get_object(destination, path)

    def call(self, method, *args):
        return self.object.get_dbus_method(method, 'io.github.vramd1.Mock')(*args)

    def log(self, method=None):
        calls = json.loads(self.call('Log'))
        return [values for name, values in calls if name == method] if method else calls

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.bus.close()


class BusTest(unittest.TestCase):
    """Two private buses; the mocks are started by vramd() and systemd()."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.env = {k: v for k, v in os.environ.items() if k not in (
            'NO_COLOR', 'SteamAppId', 'XDG_RUNTIME_DIR', 'COLUMNS')}
        self.env['TERM'] = 'xterm'
        self.env['LC_ALL'] = 'C.UTF-8'
        self.addresses = {}
        for kind, variable in (('system', 'DBUS_SYSTEM_BUS_ADDRESS'),
                               ('session', 'DBUS_SESSION_BUS_ADDRESS')):
            self.env[variable] = self.addresses[kind] = self.start_bus(kind)

    def start_bus(self, kind, more=''):
        path = os.path.join(self.dir.name, kind)
        with open(path + '.conf', 'w', encoding='ascii') as f:
            f.write(CONFIG.format(kind=kind, path=path, more=more))
        # Its warnings about limits are of no interest; what fails shows in the tests.
        daemon = subprocess.Popen(['dbus-daemon', '--nofork', '--config-file', path + '.conf'],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        wait_for(lambda: os.path.exists(path), kind + ' bus')
        return 'unix:path=' + path

    def vramd(self, **properties):
        env = dict(self.env, MOCK_VRAMD=json.dumps(properties))
        mock = Mock('vramd', self.addresses['system'], env, 'io.github.vramd1', '/io/github/vramd1')
        self.addCleanup(mock.stop)
        return mock

    def systemd(self, kind=''):
        env = dict(self.env, MOCK_SYSTEMD=kind)
        mock = Mock('systemd', self.addresses['session'], env, 'org.freedesktop.systemd1',
                    '/org/freedesktop/systemd1')
        self.addCleanup(mock.stop)
        return mock

    def run_ctl(self, *args, status=0, **kwargs):
        """(stdout, stderr) of vramctl, whose exit status must be as said."""
        p = subprocess.run([VRAMCTL, *args], env=kwargs.pop('env', self.env), capture_output=True,
                           text=True, timeout=60, check=False, stdin=subprocess.DEVNULL, **kwargs)
        self.assertEqual(p.returncode, status, f'{args}: {p.stdout}{p.stderr}')
        return p.stdout, p.stderr

    def start_ctl(self, *args, **kwargs):
        p = subprocess.Popen([VRAMCTL, *args], env=kwargs.pop('env', self.env),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             stdin=subprocess.DEVNULL, **kwargs)

        def end():
            if p.poll() is None:
                p.kill()
            p.wait()
            p.stdout.close()
            p.stderr.close()
        self.addCleanup(end)
        return p

    def end_ctl(self, p, sig=signal.SIGINT, status=0):
        p.send_signal(sig)
        out, err = p.communicate(timeout=10)
        self.assertEqual(p.returncode, status, out + err)
        return out, err

    def assert_clean(self, text, columns=80):
        """Nothing that a terminal would obey; no line wider than columns."""
        for line in text.split('\n'):
            self.assertLessEqual(len(line), columns, line)
            for c in line:
                self.assertTrue(c.isprintable(), repr(line))


def main():
    unittest.main()
