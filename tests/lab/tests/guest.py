# SPDX-License-Identifier: MIT
"""For Python tests inside the guest: control groups, users, and vramd without systemd around it."""

import contextlib
import difflib
import os
import pathlib
import pwd
import subprocess
import sys
import time

CGROUP = pathlib.Path('/sys/fs/cgroup')
SRC, BUILD = pathlib.Path('/lab/src'), pathlib.Path('/lab/build')
CAPABILITIES = '+dac_override,+chown,+fowner,+sys_ptrace'


def user_service(uid):
    return f'/user.slice/user-{uid}.slice/user@{uid}.service'


def lib(command):
    """Runs shell code with the functions of lib.sh."""
    subprocess.run(['bash', '-euc', f'. {SRC}/tests/lab/lib.sh; {command}'], check=True)


def setup(user):
    """Two GPUs, vramd installed but not started, and the user in front of the seat."""
    lib(f'lab-load-vramsim vram_mb=256,128; install_vramd; start_user {user}; start_seat_session {user}')


def spawn_as(user, argv):
    """Starts a program with the bus of that user's service manager."""
    return subprocess.Popen(['bash', '-euc', f'. {SRC}/tests/lab/lib.sh; as "$@"', 'as', user, *argv])


def wait_for(condition, what, timeout=10.0):
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            sys.exit(f'FAIL: {what}: not within {timeout} s')
        time.sleep(0.005)


def path_of(group):
    return CGROUP / group.strip('/')


def write(group, name, text):
    fd = os.open(path_of(group) / name, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def tree():
    """Canonical text of everything that vramd may change: values, owners, modes, subtree_control, and parameters of
    the kernel."""
    lines = []
    for path in sorted(pathlib.Path('/sys/module').glob('ttm/parameters/*')):
        lines.append(f'{path} {path.read_text().strip()}')
    for folder, dirs, files in os.walk(CGROUP):
        dirs.sort()
        group = '/' + folder[len(str(CGROUP)) + 1:]
        # A group may go while we walk.
        with contextlib.suppress(FileNotFoundError, OSError):
            text = pathlib.Path(folder, 'cgroup.subtree_control').read_text()
            if text.strip():
                lines.append(f'{group} subtree {text.strip()}')
            for name in ('dmem.min', 'dmem.low', 'dmem.max'):
                if name not in files:
                    continue
                path = pathlib.Path(folder, name)
                st = path.stat()
                lines.append(f'{group} {name} {st.st_uid}:{st.st_gid} {st.st_mode & 0o777:o} ' +
                             ' '.join(path.read_text().split()))
    return '\n'.join(lines) + '\n'


def show_diff(first, now):
    sys.stdout.writelines(line + '\n' for line in difflib.unified_diff(
        first.splitlines(), now.splitlines(), 'first', 'now', lineterm='', n=0))


def count_changed(first, now):
    return len(set(first.splitlines()) ^ set(now.splitlines()))


@contextlib.contextmanager
def as_user(uid):
    """What is made in here belongs to that user."""
    os.setegid(pwd.getpwuid(uid).pw_gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class Group:
    """A control group as the user's service manager makes it, with processes of that user."""

    def __init__(self, path, uid):
        self.path, self.uid = path, uid
        self.processes = []
        with as_user(uid):
            path_of(path).mkdir()

    def spawn(self, *argv, **options):
        p = subprocess.Popen(argv, user=self.uid, group=pwd.getpwuid(self.uid).pw_gid, **options)
        self.processes.append(p)
        write(self.path, 'cgroup.procs', str(p.pid))
        return p

    def end(self):
        for p in self.processes:
            p.kill()
            p.wait()
        path_of(self.path).rmdir()


def spawn_vramd(log, *args, wrapper=(), level='debug'):
    """As the unit would start it: user vramd, and only these capabilities."""
    program = next(line.split('=', 1)[1].split()[0]
                   for line in (BUILD / 'systemd/vramd.service').read_text().splitlines()
                   if line.startswith('ExecStart='))
    os.makedirs('/run/vramd', 0o700, exist_ok=True)
    me = pwd.getpwnam('vramd')
    os.chown('/run/vramd', me.pw_uid, me.pw_gid)
    return subprocess.Popen(
        ['setpriv', '--reuid=vramd', '--regid=vramd', '--clear-groups', f'--inh-caps=-all,{CAPABILITIES}',
         f'--ambient-caps=-all,{CAPABILITIES}', f'--bounding-set=-all,{CAPABILITIES}', *wrapper,
         program, *args],
        stdout=log, stderr=log, env={'VRAMD_LOG_LEVEL': level, 'PATH': os.environ['PATH']})
