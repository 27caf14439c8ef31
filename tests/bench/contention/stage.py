# SPDX-License-Identifier: MIT
"""In the guest: one run of a case. The simulated card, the programs in their units, and what is written down."""

import ctypes
import os
import pathlib
import select
import socket
import struct
import subprocess
import sys
import time

sys.path[:0] = ['/lab/src/tests/lab/tests', '/lab/src/tests/bench/contention']
import guest  # noqa: E402
import model  # noqa: E402

GPU = '0000:03:00.0'
REGION = f'drm/{GPU}/vram0'
NODE = f'/dev/dri/by-path/pci-{GPU}-render'
CAPACITY = model.VRAM_MIB * model.MIB
DECK = guest.user_service(1000)
WORKLOAD = guest.BUILD / 'tests/bench/contention/workload'
SOCKETS = pathlib.Path('/run/vramd-bench')
HERE = pathlib.Path('/lab/src/tests/bench/contention')
CLASSES = range(len(model.CLASS_ACCESS))
TIMEOUT = 60.0  # of a program's answer

libc = ctypes.CDLL(None)
TIMER_ABSTIME = 1


class Timespec(ctypes.Structure):
    _fields_ = [('tv_sec', ctypes.c_long), ('tv_nsec', ctypes.c_long)]


def prepare():
    """vramd installed but not started, and deck at the seat."""
    guest.lib('install_vramd; start_user deck; start_seat_session deck')
    SOCKETS.mkdir()
    SOCKETS.chmod(0o777)


def limit(group, name):
    """Bytes in a group's dmem.NAME; None where there is none."""
    try:
        lines = (guest.path_of(group) / f'dmem.{name}').read_text().splitlines()
    except OSError:
        return None
    value = dict(line.split() for line in lines).get(REGION)
    return CAPACITY if value == 'max' else int(value) if value else None


def set_limit(group, name, value):
    guest.write(group, f'dmem.{name}', f'{REGION} {value}')


def ancestors(group):
    """From the top down, without the root and the group itself."""
    parts = group.strip('/').split('/')
    return ['/' + '/'.join(parts[:n]) for n in range(1, len(parts))]


def enable_dmem(group):
    for parent in ['/', *ancestors(group)]:
        guest.write(parent, 'cgroup.subtree_control', '+dmem')


class Program:
    """A workload in a unit of its own: of deck, or with `system` a service of the machine."""

    def __init__(self, name, unit, kind, slice_='app.slice', system=False, **options):
        self.name, self.unit, self.kind, self.system = name, unit, kind, system
        self.group = f'/{slice_}/{unit}' if system else f'{DECK}/{slice_}/{unit}'
        path = SOCKETS / name
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            path.chmod(0o777)
            listener.listen()
            listener.settimeout(TIMEOUT)
            words = [f'--{key.replace("_", "-")}={value}' for key, value in options.items()]
            argv = ['systemd-run', *([] if system else ['--user']), '--quiet', '--collect', f'--unit={unit}',
                    f'--slice={slice_}', *(['--scope'] if unit.endswith('.scope') else []), '--',
                    str(WORKLOAD), kind, str(path), f'--device={NODE}', *words]
            self.child = subprocess.Popen(argv) if system else guest.spawn_as('deck', argv)
            self.socket = listener.accept()[0]
        self.socket.settimeout(TIMEOUT)
        self.pid = struct.unpack('iII', self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        self.fds = []
        self.report = dict.fromkeys(('moved', 'resident', 'spilled', 'failed', 'ioctl_ns', 'submits', 'retries',
                                     'stall_ns'), 0)

    def send(self, command):
        self.socket.send(command.encode())

    def receive(self):
        text, self.fds, _, _ = socket.recv_fds(self.socket, 1024, 3)
        if not text:
            sys.exit(f'FAIL: {self.name} has ended')
        text = text.decode()
        self.report = {key: int(value) for key, value in (word.split('=') for word in text.split())}
        return self.report

    def tell(self, command):
        self.send(command)
        return self.receive()

    def show(self, game):
        """Draws from now on from the images that the game draws into."""
        game.tell('export')
        socket.send_fds(self.socket, [b'import'], game.fds)
        self.receive()
        for fd in game.fds:
            os.close(fd)

    def current(self):
        return limit(self.group, 'current') or 0

    def end(self):
        self.socket.close()
        self.child.wait()
        guest.wait_for(lambda: not guest.path_of(self.group).exists(), f'the end of {self.unit}')


class Watch:
    """Hears of a group's dmem.events, in a process of its own."""

    def __init__(self, group):
        self.path = guest.path_of(group) / 'dmem.events'
        self.heard = SOCKETS / 'heard'
        with open(self.heard, 'w', encoding='ascii') as out:
            self.child = subprocess.Popen([HERE / 'watch-events', self.path, REGION], stdout=out)
        guest.wait_for(self.heard.read_text, 'watch-events')

    def end(self):
        """What was heard: a list of (ns, evictions, bytes); the first one is when it began."""
        self.child.terminate()
        self.child.wait()
        return [tuple(int(word) for word in line.split()) for line in self.heard.read_text().splitlines()]


def events(group):
    """Evictions and bytes of a group and all below it, so far."""
    for line in (guest.path_of(group) / 'dmem.events').read_text().splitlines():
        region, *words = line.split()
        if region == REGION:
            counters = dict(word.split('=') for word in words)
            return int(counters['evictions']), int(counters['evicted_bytes'])
    return 0, 0


class Stage:
    """One arm: `booster` decides about the limits. In real time nothing waits for modelled time to pass."""

    def __init__(self, booster, parameters='', real_time=False):
        self.booster, self.real_time = booster, real_time
        self.programs, self.rows = [], []
        self.game = self.compositor = None
        self.phase, self.now_ms, self.moved = '', 0.0, 0
        self.took = {}
        guest.lib(f'lab-load-vramsim vram_mb={model.VRAM_MIB} {parameters}')
        guest.wait_for(pathlib.Path(NODE).exists, NODE)
        booster.start()

    def end(self):
        for program in reversed(self.programs):
            program.end()
        self.booster.stop()
        subprocess.run(['rmmod', 'vramsim'], check=True)

    # --- programs

    def add(self, name, unit, kind, **options):
        self.align()
        program = Program(name, unit, kind, **options)
        self.programs.append(program)
        setattr(self, name, program)
        self.booster.added(program)
        return program

    def add_compositor(self, **options):
        return self.add('compositor', 'gamescope-session.service', 'compositor', slice_='session.slice', **options)

    def add_game(self, mib, name='game', appid=100, **options):
        return self.add(name, f'app-steam-app{appid}-1.scope', 'game', size=round(mib * model.MIB), **options)

    def begin(self, program):
        """It opens the GPU and makes its buffers; what this moves is not part of a frame."""
        program.tell('setup')
        self.newly_moved()

    @staticmethod
    def align():
        """Until a full second, or what happened before would be felt: each reading of a clock takes a bit of time."""
        full = Timespec(int(time.monotonic()) + 1, 0)
        libc.clock_nanosleep(time.CLOCK_MONOTONIC, TIMER_ABSTIME, ctypes.byref(full), None)

    def front(self, **state):
        self.booster.front(self.game, self.compositor, **state)

    def begin_front(self, game, **state):
        """Its limits are there before it opens the GPU, as a game takes seconds to get there."""
        self.align()
        self.front(**state)
        self.begin(game)
        if self.compositor:
            self.compositor.show(game)

    def end_game(self):
        """The compositor lets go of its images, too."""
        self.compositor.tell('import')
        self.programs.remove(self.game)
        self.game.end()

    def sleep(self):
        """logind announces it, all tasks are frozen, the driver evicts everything, and back. Nobody draws meanwhile."""
        count = pathlib.Path('/sys/power/suspend_stats/success')
        before = int(count.read_text())
        pathlib.Path('/sys/power/pm_test').write_text('devices')
        pathlib.Path('/sys/module/suspend/parameters/pm_test_delay').write_text('0')
        subprocess.run(['systemctl', 'suspend'], check=True)
        guest.wait_for(lambda: int(count.read_text()) > before, 'sleep', TIMEOUT)
        guest.wait_for(lambda: subprocess.run(['systemctl', '--quiet', 'is-active', 'suspend.target'],
                                              check=False).returncode, 'the end of sleep', TIMEOUT)
        if limit('/user.slice', 'current') > model.MIB:
            sys.exit('FAIL: more than the image on the screen was not evicted')

    # --- frames

    def row(self, pace, moved, ms):
        """All that is written down of a frame. Where a program is not there yet, or no more, is nothing."""
        keys = ['resident', 'spilled', 'failed', *(f'{where}{i}' for where in ('in', 'out') for i in CLASSES),
                *(['ioctl_ns'] if self.real_time else []), *(['submits', 'retries'] if pace == 'own' else [])]
        report = {f'{p.name}.{key}': p.report[key] for p in self.programs for key in keys if key in p.report}
        limits = {f'{p.name}.{key}': limit(p.group, key) or 0 for p in self.programs for key in ('current', 'low')}
        self.rows.append({'t_ms': f'{self.now_ms:.3f}', 'pace': pace, 'phase': self.phase, 'moved': moved,
                          'ms': f'{ms:.4f}', **report, **limits, **(self.times() if pace == 'own' else {})})
        self.now_ms += ms

    def times(self):
        """Of programs at their own pace: the longest submission so far, and what the frames since the last row took."""
        longest = {f'{p.name}.stall_ms': f'{p.report["stall_ns"] / 1e6:.1f}' for p in self.programs}
        frames = {f'{p.name}.took_ms': ' '.join(took) for p, took in self.took.items()}
        self.took = {}
        return {**longest, **frames}

    def note(self, **values):
        """Something to be written down with the last frame."""
        self.rows[-1].update(values)

    def newly_moved(self):
        """Bytes since the last time; whoever reported last knows it."""
        before, self.moved = self.moved, max(p.report['moved'] for p in self.programs)
        return self.moved - before

    def frame(self):
        """In lockstep: everybody draws in turn, the compositor last, which shows what the others have drawn. Then the
        time passes that the model says it took; real time would not be the same twice, to the microsecond."""
        for program in sorted(self.programs, key=lambda p: ('game', 'program', 'compositor').index(p.kind)):
            program.tell('frame')
        self.pass_time()

    def pass_time(self):
        moved = self.newly_moved()
        report = self.game.report if self.game in self.programs else {'spilled': 0}
        ms = model.frame_ms(moved, report['spilled'], [report.get(f'out{i}', 0) for i in CLASSES])
        self.row('lockstep', moved, ms)
        if not self.real_time:
            time.sleep(ms / 1000)

    def step(self, program, command, phase):
        """One program does something, and nobody draws."""
        self.phase = phase
        program.tell(command)
        if 'out0' in self.game.report:
            self.game.tell('look')
        self.pass_time()

    def frames(self, n, phase):
        self.phase = phase
        for _ in range(n):
            self.frame()

    def seconds(self, n, phase):
        """In lockstep, for so long."""
        self.phase, end = phase, self.now_ms + 1000 * n
        while self.now_ms < end:
            self.frame()

    def run(self, n, phase):
        """Everybody at its own pace, for so many seconds. A row is a frame of the game, as long as it really took."""
        self.align()
        self.phase = phase
        for program in self.programs:
            program.send('run')
        programs = {p.socket: p for p in self.programs}
        end = self.now_ms + 1000 * n
        while self.now_ms < end:
            for ready in select.select(programs, (), (), TIMEOUT)[0]:
                report = programs[ready].receive()
                if not report['answer']:
                    self.took.setdefault(programs[ready], []).append(f'{report["ioctl_ns"] / 1e6:.1f}')
                if programs[ready] is self.game and not report['answer']:
                    # As exact as the grid that the programs begin on.
                    self.row('own', self.newly_moved(), round((report['end_ns'] - report['begin_ns']) / 1e6, 1))
        for program in self.programs:
            program.send('stop')
            while not program.receive()['answer']:
                pass

    def dump(self, path):
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        with open(path, 'w', encoding='ascii') as f:
            print(*columns, sep='\t', file=f)
            for row in self.rows:
                print(*(row.get(key, '') for key in columns), sep='\t', file=f)
