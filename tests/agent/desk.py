# SPDX-License-Identifier: MIT
"""X servers, a fake gamescope and vramd-agent, where nobody else sees them: in a mount and a network namespace (for
sockets that have names of the abstract kind)."""

import functools
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
import alone  # noqa: E402
import signals  # noqa: E402, F401
from alone import CLONE_NEWNET, CLONE_NEWNS, die_with_parent  # noqa: E402

AGENT = os.environ['VRAMD_AGENT']
FAKE = os.environ['FAKE_GAMESCOPE']
SOCKETS = '/tmp/.X11-unix'
XID = 0x400000


def missing():
    """Why this cannot work here, or None."""
    if os.geteuid() != 0:
        return 'needs root'
    for program in ('Xvfb', 'openbox', 'xterm', 'xdotool', 'xprop'):
        if not shutil.which(program):
            return f'needs {program}'
    return None


def enter_namespaces():
    alone.enter_namespaces(CLONE_NEWNS | CLONE_NEWNET)
    os.makedirs(SOCKETS, exist_ok=True)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'mode=1777', 'tmpfs', SOCKETS], check=True)


def run_tests(*reasons, before=None):
    """The test program's, unless there is a reason why they cannot run here. before() is called in the namespaces."""
    for reason in (missing(), *reasons):
        if reason:
            print(f'skipped: {reason}')
            sys.exit(77)
    enter_namespaces()
    if before:
        before()
    unittest.main(verbosity=2)


wait_for = functools.partial(alone.wait_for, timeout=10.0)  # X servers take their time


def cpu_and_wakeups(pid):
    """Seconds of CPU time, and how often it began to wait."""
    with open(f'/proc/{pid}/schedstat', encoding='ascii') as f:
        seconds = int(f.read().split()[0]) / 1e9
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        switches = next(int(line.split()[1]) for line in f if line.startswith('voluntary_ctxt_switches'))
    return seconds, switches


def adopt(box, pid, group, uid=1000):
    """A process that is there already comes into a control group of the sandbox's emulated tree."""
    proc = box.root / 'proc' / str(pid)
    (proc / 'fdinfo').mkdir(parents=True)
    for file, text in (('cgroup', f'0::{group}\n'), ('comm', 'x\n'), ('cmdline', 'x\0'), ('environ', ''),
                       ('stat', f'{pid} (x) S 1 0 0 0\n'), ('status', f'Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n')):
        (proc / file).write_text(text)
    os.symlink('/bin/x', proc / 'exe')
    box.write(group, 'cgroup.procs', str(pid))


class Desk:
    """A user's runtime directory, and what runs in his session."""

    def __init__(self, uid=0):
        self.uid = uid
        self.children = []
        self.runtime = pathlib.Path(tempfile.mkdtemp(prefix='agent-test-'))
        os.chown(self.runtime, uid, uid)
        self.env = {k: v for k, v in os.environ.items()
                    if k not in ('DBUS_SESSION_BUS_ADDRESS', 'DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY',
                                 'XDG_CURRENT_DESKTOP', 'XDG_SESSION_TYPE', 'NOTIFY_SOCKET')}
        self.env.update(XDG_RUNTIME_DIR=str(self.runtime), HOME=str(self.runtime), LC_ALL='C.UTF-8')

    def close(self):
        for child in reversed(self.children):
            child.kill()
        for child in reversed(self.children):
            child.wait()
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        pass
        for path in pathlib.Path(SOCKETS).iterdir():
            path.unlink()
        shutil.rmtree(self.runtime)

    def spawn(self, *argv, env=None, **kwargs):
        child = subprocess.Popen(argv, env=dict(self.env, **(env or {})), preexec_fn=die_with_parent, user=self.uid,
                                 group=self.uid, **kwargs)
        self.children.append(child)
        return child

    def xserver(self, display, *options):
        """Xvfb; ready when this returns."""
        ours, theirs = os.pipe()
        server = self.spawn('Xvfb', f':{display}', '-screen', '0', '640x480x24', '-nolisten', 'tcp', '-noreset',
                            '-displayfd', str(theirs), *options, pass_fds=[theirs], stderr=subprocess.DEVNULL)
        os.close(theirs)
        with os.fdopen(ours) as f:
            if not f.readline():
                raise RuntimeError('Xvfb does not start')
        return server

    def process(self):
        return self.spawn('sleep', 'infinity')

    def gamescope(self, *args, env=None):
        return Gamescope(self, args, env or {})

    def once(self, *options, env=None, status=None):
        """What vramd-agent --once --json says, by source and place."""
        p = subprocess.run([AGENT, '--once', '--json', *options], env=dict(self.env, **(env or {})), user=self.uid,
                           group=self.uid, capture_output=True, text=True, timeout=30, check=False)
        if p.stderr or (status is not None and p.returncode != status):
            raise AssertionError(f'{p.returncode}: {p.stderr}')
        return {(line['source'], line['place']): line for line in json.loads(p.stdout)}

    def show_once(self):
        """What people see; tests/compositors/run shows it."""
        p = subprocess.run([AGENT, '--once'], env=self.env, user=self.uid, group=self.uid, capture_output=True,
                           text=True, timeout=30, check=False)
        print(p.stdout + p.stderr, flush=True)

    def agent(self, *options, env=None, stderr=None):
        """Running, and ready as systemd is told."""
        return Agent(self, options, env or {}, stderr)


class Agent:
    def __init__(self, desk, options, env, stderr):
        import socket
        path = str(desk.runtime / 'notify')
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(path)
            os.chown(path, desk.uid, desk.uid)
            s.settimeout(30)
            self.process = desk.spawn(AGENT, *options, env=dict(env, NOTIFY_SOCKET=path), stderr=stderr)
            while 'READY=1' not in s.recv(4096).decode():
                pass
        os.unlink(path)
        self.pid = self.process.pid

    def kill(self, sig=signal.SIGKILL):
        self.process.send_signal(sig)
        return self.process.wait(10)

    def usage(self, seconds):
        """CPU seconds and wake-ups in that time."""
        before = cpu_and_wakeups(self.pid)
        time.sleep(seconds)
        after = cpu_and_wakeups(self.pid)
        return after[0] - before[0], after[1] - before[1]


class Gamescope:
    """The fake, and the words to steer it."""

    def __init__(self, desk, args, env):
        self.process = desk.spawn(FAKE, *args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line.startswith('ok '):
            raise AssertionError(f'fake-gamescope said {line!r}')
        return int(line.split()[1])

    def say(self, *words, wait=True):
        self.process.stdin.write(' '.join(str(w) for w in words) + '\n')
        self.process.stdin.flush()
        return self.answer() if wait else None

    @staticmethod
    def windows(windows):
        return [f'{xid}:{appid}:{pid}' for xid, appid, pid in windows]

    def steam(self, gfx, app, *windows, window=XID, display=':1'):
        return self.say('steam', gfx, app, window, display, *self.windows(windows))

    def plain(self, window, *windows, display=':0'):
        return self.say('plain', window, display, *self.windows(windows))

    def kill(self):
        self.process.kill()
        self.process.wait()


def readable(fd, timeout):
    return bool(select.select([fd], [], [], timeout)[0])
