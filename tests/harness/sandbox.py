# SPDX-License-Identifier: MIT
"""A machine of its own for the built daemon: emulated cgroup2 tree with dmem, private system bus, users
whom logind knows, processes whose control group is the emulated one.

Everything lies in one temporary folder and in a private mount namespace, so whatever happens, nothing
stays: the kernel unmounts with the last process. Needs root and /dev/fuse. Debian's own python3 (with
python3-dbus and python3-dbusmock).
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import dbus
import dbusmock

import signals  # noqa: F401
from alone import CLONE_NEWNS, die_with_parent, enter_namespaces, wait_for

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BUS_NAME = 'io.github.vramd1'
BUS_PATH = '/io/github/vramd1'
MANAGER = BUS_NAME + '.Manager'
USER_SERVICE = '/user.slice/user-{uid}.slice/user@{uid}.service'
REGIONS = {'drm/0000:03:00.0/vram0': 8 << 30, 'drm/0000:0c:00.0/vram0': 4 << 30}


def missing():
    """Why the sandbox cannot work here, or None."""
    if os.geteuid() != 0:
        return 'needs root'
    if not os.access('/dev/fuse', os.R_OK | os.W_OK):
        return 'needs /dev/fuse'
    return None


class Process:
    """A real process that, for vramd, lives in an emulated control group."""

    def __init__(self, sandbox, group, uid=1000, comm='game', argv=('/bin/game',), environ=None, ppid=1):
        self.sandbox = sandbox
        self.child = subprocess.Popen(['sleep', 'infinity'], preexec_fn=die_with_parent)
        self.pid = self.child.pid
        self.proc = sandbox.root / 'proc' / str(self.pid)
        self.proc.mkdir()
        (self.proc / 'fdinfo').mkdir()
        (self.proc / 'comm').write_text(comm + '\n')
        (self.proc / 'cmdline').write_bytes(b'\0'.join(a.encode() for a in argv) + b'\0')
        pairs = [f'{k}={v}' for k, v in (environ or {}).items()]
        (self.proc / 'environ').write_bytes(''.join(p + '\0' for p in pairs).encode())
        (self.proc / 'stat').write_text(f'{self.pid} ({comm}) S {ppid} 0 0 0\n')
        (self.proc / 'status').write_text(
            f'Name:\t{comm}\nPid:\t{self.pid}\nPPid:\t{ppid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n')
        os.symlink(argv[0], self.proc / 'exe')
        for path in (self.proc, *self.proc.iterdir()):
            os.chown(path, uid, uid, follow_symlinks=False)
        self.move(group)

    def move(self, group):
        self.group = group
        (self.proc / 'cgroup').write_text(f'0::{group}\n')
        self.sandbox.write(group, 'cgroup.procs', str(self.pid))

    def pidfd(self):
        return os.pidfd_open(self.pid)

    def kill(self):
        self.child.kill()
        self.child.wait()
        shutil.rmtree(self.proc, ignore_errors=True)


class Sandbox:
    def __init__(self, build, regions=None, log_level='debug', series=False):
        self.build = pathlib.Path(build)
        self.regions = REGIONS if regions is None else regions
        self.log_level = log_level
        self.series = series  # a kernel with the companion series
        self.children = []
        self.processes = []
        self.mounts = []
        self.daemon = None

    # --- life ---------------------------------------------------------------------------------

    def __enter__(self):
        enter_namespaces(CLONE_NEWNS)
        self.root = pathlib.Path(tempfile.mkdtemp(prefix='vramd-test-'))
        self.cgroup = self.root / 'sys/fs/cgroup'
        self.log = self.root / 'vramd.log'
        for d in ('sys/fs/cgroup', 'proc', 'run', 'etc/vramd', 'bus'):
            (self.root / d).mkdir(parents=True)
        try:
            # As on a real system: on a disk, replacing the journal would wait for it.
            self._mount(str(self.root / 'run'), '-t', 'tmpfs', '-o', 'mode=0755', 'tmpfs')
            self._start_users()
            self._start_logind_files()
            self._start_cgroup()
            self._start_bus()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None and self.log.exists():
            sys.stderr.write('--- log of vramd\n' + self.log.read_text() + '---\n')
        with contextlib.suppress(Exception):
            self.stop()
        for p in self.processes:
            p.kill()
        for child in reversed(self.children):
            child.terminate()
        for child in reversed(self.children):
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)
            child.kill()
            if child.stdout:
                child.stdout.close()
        for where in reversed(self.mounts):
            subprocess.run(['umount', '--lazy', where], check=False)
        shutil.rmtree(self.root, ignore_errors=True)

    def _spawn(self, argv, **kwargs):
        child = subprocess.Popen(argv, preexec_fn=die_with_parent, **kwargs)
        self.children.append(child)
        return child

    def _mount(self, where, *how):
        subprocess.run(['mount', *how, where], check=True)
        self.mounts.append(where)

    def _start_users(self):
        """The bus daemon only talks to users that have a name."""
        text = pathlib.Path('/etc/passwd').read_text()
        known = {line.split(':')[2] for line in text.splitlines() if line.count(':') == 6}
        for uid in (1000, 1001):
            if str(uid) not in known:
                text += f'vramd-test-{uid}:x:{uid}:{uid}::/nonexistent:/usr/sbin/nologin\n'
        (self.root / 'passwd').write_text(text)
        self._mount('/etc/passwd', '--bind', self.root / 'passwd')

    def _start_logind_files(self):
        """sd-login(3) reads these; nobody on this machine is logged in as our users."""
        self._mount('/run/systemd', '-t', 'tmpfs', '-o', 'mode=0755', 'tmpfs')
        for d in ('users', 'sessions', 'seats', 'machines'):
            os.mkdir(f'/run/systemd/{d}')
        self.set_user(1000, 'active')

    def _start_cgroup(self):
        argv = [self.build / 'tests/emu/cgroupemu', *(['--series'] if self.series else [])]
        for name, size in self.regions.items():
            argv += ['--region', f'{name}={size}']
        emu = self._spawn(argv + [self.cgroup], stdout=subprocess.PIPE)
        if not emu.stdout.readline().startswith(b'mounted'):
            raise RuntimeError('cgroupemu did not mount')
        for d in ('/init.scope', '/system.slice', '/user.slice'):
            self.mkdir(d)
        self.add_user_tree(1000)

    def _start_bus(self):
        socket = self.root / 'bus/socket'
        text = (pathlib.Path(__file__).parent / 'bus.conf.in').read_text()
        text = text.replace('@SOCKET@', str(socket)).replace(
            '@POLICY@', str(SOURCE / 'dbus/io.github.vramd1.conf')).replace(
            'policy user="vramd"', 'policy user="root"')
        policy = (SOURCE / 'dbus/io.github.vramd1.conf').read_text().replace('user="vramd"', 'user="root"')
        (self.root / 'bus/policy.conf').write_text(policy)
        text = text.replace(str(SOURCE / 'dbus/io.github.vramd1.conf'), str(self.root / 'bus/policy.conf'))
        (self.root / 'bus/bus.conf').write_text(text)
        self.root.chmod(0o755)
        (self.root / 'bus').chmod(0o755)
        self.address = f'unix:path={socket}'
        os.environ['DBUS_SYSTEM_BUS_ADDRESS'] = self.address
        self.start_bus()

    def start_bus(self):
        bus = self._spawn(['dbus-daemon', f'--config-file={self.root}/bus/bus.conf', '--nofork', '--nopidfile',
                           '--print-address=1'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        bus.stdout.readline()
        self.bus_daemon = bus

    def stop_bus(self):
        self.bus_daemon.kill()
        self.bus_daemon.wait()
        (self.root / 'bus/socket').unlink()

    def connect(self, uid=0):
        """A bus connection; dbus-daemon tells everybody that it is this user's."""
        os.seteuid(uid)
        try:
            return dbus.bus.BusConnection(self.address)
        finally:
            os.seteuid(0)

    def mock_polkit(self, allowed=()):
        """polkit that allows just these actions. Returns the mock's control interface."""
        server, proxy = dbusmock.DBusTestCase.spawn_server_template('polkitd', {}, subprocess.DEVNULL)
        self.children.append(server)
        proxy.SetAllowed(dbus.Array(allowed, signature='s'), dbus_interface='org.freedesktop.DBus.Mock')
        return dbus.Interface(proxy, 'org.freedesktop.DBus.Mock')

    # --- the emulated machine ------------------------------------------------------------------

    def set_user(self, uid, state):
        """What logind says: active, online, lingering; None = gone."""
        path = pathlib.Path(f'/run/systemd/users/{uid}')
        if state is None:
            path.unlink()
            return
        new = path.with_name(f'.{uid}')
        seats = 'seat0' if state == 'active' else ''
        new.write_text(f'NAME=user{uid}\nSTATE={state}\nSTOPPING=no\nSEATS={seats}\nACTIVE_SEATS={seats}\n')
        new.rename(path)

    def add_user_tree(self, uid):
        service = USER_SERVICE.format(uid=uid)
        for d in (f'/user.slice/user-{uid}.slice', service, service + '/init.scope', service + '/app.slice',
                  service + '/session.slice'):
            self.mkdir(d)

    def mkdir(self, group):
        (self.cgroup / group.strip('/')).mkdir()

    def rmdir(self, group):
        (self.cgroup / group.strip('/')).rmdir()

    def write(self, group, name, text):
        fd = os.open(self.cgroup / group.strip('/') / name, os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

    def read(self, group, name):
        # One read(2): a second one could be of a longer text.
        fd = os.open(self.cgroup / group.strip('/') / name, os.O_RDONLY)
        try:
            return os.read(fd, 1 << 16).decode()
        finally:
            os.close(fd)

    def value(self, group, name, region=None):
        """One region's value as an int; 'max' is None."""
        region = region or next(iter(self.regions))
        for line in self.read(group, name).splitlines():
            key, value = line.rsplit(' ', 1)
            if key == region:
                return None if value == 'max' else int(value)
        raise KeyError(region)

    def low(self, group, region=None):
        return self.value(group, 'dmem.low', region)

    def control(self, command):
        self.write('/', 'emu.control', command)

    def charge(self, group, size, region=None):
        self.control(f'charge {group} {region or next(iter(self.regions))} {size}')

    def unit(self, name, uid=1000, slice_='app.slice'):
        """Makes a unit's group below the user's manager; its path."""
        group = f'{USER_SERVICE.format(uid=uid)}/{slice_}/{name}'
        self.mkdir(group)
        return group

    def process(self, group, **kwargs):
        p = Process(self, group, **kwargs)
        self.processes.append(p)
        return p

    def load(self, module, **parameters):
        """A kernel module with these parameters; loaded anew, each is another file than before."""
        modules = self.root / 'sys/module'
        if str(modules) not in self.mounts:
            modules.mkdir(parents=True)
            self._mount(str(modules), '-t', 'tmpfs', 'tmpfs')
        self.unload(module)
        folder = modules / module / 'parameters'
        folder.mkdir(parents=True)
        for name, value in parameters.items():
            (folder / name).write_text(f'{value}\n')

    def unload(self, module):
        shutil.rmtree(self.root / 'sys/module' / module, ignore_errors=True)

    def parameter(self, module, name):
        # As with the kernel, one write is one value: the rest is of an earlier one.
        return (self.root / 'sys/module' / module / 'parameters' / name).read_text().splitlines()[0]

    def tree(self):
        """Canonical text of everything that vramd may change: values, owners, modes, subtree_control."""
        lines = []
        for folder, dirs, _ in os.walk(self.cgroup):
            dirs.sort()
            group = '/' + os.path.relpath(folder, self.cgroup).removeprefix('.')
            lines.append(f'{group} subtree {(pathlib.Path(folder) / "cgroup.subtree_control").read_text().strip()}')
            for name in ('dmem.min', 'dmem.low', 'dmem.max'):
                path = pathlib.Path(folder) / name
                if path.exists():
                    st = path.stat()
                    lines.append(f'{group} {name} {st.st_uid}:{st.st_gid} {st.st_mode & 0o777:o} ' +
                                 ' '.join(path.read_text().split()))
        return '\n'.join(lines) + '\n'

    # --- the daemon ------------------------------------------------------------------------------

    def start(self, *args, config=None, wait=True, wrapper=(), timeout=10):
        if config is not None:
            (self.root / 'etc/vramd/vramd.conf').write_text(config)
        env = dict(os.environ, VRAMD_LOG_LEVEL=self.log_level)
        with self.log.open('ab') as log:
            self.daemon = subprocess.Popen([*wrapper, self.build / 'daemon/vramd', f'--root={self.root}', *args],
                                           stderr=log, stdout=log, env=env, preexec_fn=die_with_parent)
        if wait:
            bus = self.connect()
            wait_for(lambda: bus.name_has_owner(BUS_NAME) or self.daemon.poll() is not None, 'bus name', timeout)
            bus.close()
            if self.daemon.poll() is not None:
                raise RuntimeError(f'vramd ended with {self.daemon.returncode}')

    def stop(self, sig=signal.SIGTERM, timeout=10):
        """Ends the daemon; its exit status."""
        if not self.daemon:
            return None
        self.daemon.send_signal(sig)
        status = self.daemon.wait(timeout)
        self.daemon = None
        return status

    def restore(self):
        with self.log.open('ab') as log:
            subprocess.run([self.build / 'daemon/vramd', f'--root={self.root}', '--restore'], check=True, stderr=log)

    def manager(self, bus=None):
        return dbus.Interface((bus or self.connect()).get_object(BUS_NAME, BUS_PATH), MANAGER)

    def get(self, name, bus=None):
        obj = (bus or self.connect()).get_object(BUS_NAME, BUS_PATH)
        return obj.Get(MANAGER, name, dbus_interface='org.freedesktop.DBus.Properties')


class Source:
    """A focus source: one bus connection that reports."""

    def __init__(self, sandbox, name='gamescope', uid=0):
        self.bus = sandbox.connect(uid)
        self.manager = sandbox.manager(self.bus)
        self.name = name

    def report(self, game=None, menu='closed', compositor=None, **extra):
        report = {'source': self.name, 'menu': menu}
        fds = []
        for key, process in (('game', game), ('compositor', compositor)):
            if process is not None:
                fds.append(process.pidfd())
                report[key] = dbus.types.UnixFd(fds[-1])
        report.update(extra)
        try:
            self.manager.ReportFocus(dbus.Dictionary(report, signature='sv'))
        finally:
            for fd in fds:
                os.close(fd)

    def close(self):
        self.bus.close()
