#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks cgroupemu against what Linux 7.3 does with the same inputs.

Usage: test_emu.py CGROUPEMU [unittest arguments]
"""

import ctypes
import errno
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

R0 = "drm/0000:03:00.0/vram0"
R1 = "drm/0000:0c:00.0/vram0"
CAPACITY = 8 << 30
DECK = 1000
IN_MODIFY, IN_ATTRIB, IN_CREATE, IN_DELETE = 0x2, 0x4, 0x100, 0x200
IN_DELETE_SELF, IN_IGNORED, IN_ISDIR = 0x400, 0x8000, 0x40000000
DMEM_FILES = {"dmem.current", "dmem.peak", "dmem.min", "dmem.low", "dmem.max"}
GROUP_FILES = {"cgroup.controllers", "cgroup.subtree_control", "cgroup.procs", "cgroup.stat",
               "cgroup.type", "cgroup.events"}

# What follows the region's name in one write to dmem.low, and what is then read back.
GOOD_VALUES = {
    " 4096": "4096", " 4096\n": "4096", " 4096 ": "4096", "\t4096": "4096", " 4096\0": "4096",
    " 1": "1", " 4095": "4095", " 0": "0", " max": "max", " max\n": "max",
    " 1G": str(1 << 30), " 1g": str(1 << 30), " 64K": "65536", " 3M": str(3 << 20),
    " 1T": str(1 << 40), " 0x1000": "4096", " 010000": "4096", " 99999999999": "99999999999",
    " 9223372036854775807": "max", " 9223372036854775808": "max",
    " 18446744073709551615": "max", " 18446744073709551616": "max",
    " 99999999999999999999999": "max",
}
BAD_WRITES = [
    "\n", " ", R0, R0 + " ", R0 + "\n", "max", "0", "garbage", "garbage 4096",
    "drm/0000:03:00.0/vram1 4096", "drm/0000:03:00.0 4096", R0.upper() + " 4096",
    R0 + "=4096", R0 + ":4096", R0 + "  4096", R0 + " \t4096", R0 + " 4096 8192",
    R0 + " 4096 garbage", R0 + " 1e9", R0 + " 1.5G", R0 + " -1", R0 + " Max", R0 + " 0x",
    R0 + " 08", f"{R0} 1\n{R1} 2\n", f"{R0} 1\n{R0} 2\n", f"garbage\n{R0} 1\n",
    f"{R0} 1\n\n{R1} 2\n", f"{R0} 1 {R1} 2",
]


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def write(path, text, flags=0):
    """One open and one write(2), unlike Python's own files."""
    fd = os.open(path, os.O_WRONLY | flags)
    try:
        return os.write(fd, text.encode())
    finally:
        os.close(fd)


class Watch:
    """inotify on some paths; events as (path, mask, name)."""

    MASK = IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_DELETE_SELF

    def __init__(self, *paths):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.paths = {}
        for path in paths:
            wd = self.libc.inotify_add_watch(self.fd, path.encode(), self.MASK)
            assert wd > 0, os.strerror(ctypes.get_errno())
            self.paths[wd] = path

    def events(self, at_least=1, timeout=2.0):
        """Waits for the expected number of events, then shortly for surplus ones."""
        found = []
        end = time.monotonic() + timeout
        while True:
            wait = max(0, end - time.monotonic()) if len(found) < at_least else 0.05
            if not select.select([self.fd], [], [], wait)[0]:
                return found
            data, at = os.read(self.fd, 65536), 0
            while at < len(data):
                wd, mask, _, size = struct.unpack_from("iIII", data, at)
                name = data[at + 16:at + 16 + size].rstrip(b"\0").decode()
                found.append((self.paths[wd], mask, name))
                at += 16 + size

    def close(self):
        os.close(self.fd)


class Emulated(unittest.TestCase):
    program = None
    options = ()

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="cgroupemu-")
        self.addCleanup(os.rmdir, self.dir)
        self.emu = subprocess.Popen(
            [self.program, *self.options, "--region", f"{R0}={CAPACITY}", "--region", f"{R1}=2G", self.dir],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        self.assertEqual(self.emu.stdout.readline(), f"mounted {self.dir}\n")

    def stop(self):
        self.emu.terminate()
        self.assertEqual(self.emu.wait(10), 0)
        self.emu.stdout.close()
        self.assertFalse(os.path.ismount(self.dir))

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def enable(self, *groups):
        for group in groups:
            write(self.path(group, "cgroup.subtree_control"), "+dmem")

    def leaf(self):
        """A group a/b with the dmem controller."""
        os.makedirs(self.path("a/b"))
        self.enable("", "a")
        return self.path("a/b")

    def control(self, text):
        write(self.path("emu.control"), text)

    def child(self):
        process = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def watch(self, *paths):
        watch = Watch(*paths)
        self.addCleanup(watch.close)
        return watch

    def assert_errno(self, number, call, *args):
        with self.assertRaises(OSError) as caught:
            call(*args)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number])

    def assert_values(self, path, first, second):
        self.assertEqual(read(path), f"{R0} {first}\n{R1} {second}\n")


class DmemFiles(Emulated):
    def test_defaults(self):
        leaf = self.leaf()
        for name, value in (("min", 0), ("low", 0), ("max", "max"), ("current", 0), ("peak", 0)):
            self.assert_values(f"{leaf}/dmem.{name}", value, value)
        self.assert_values(self.path("dmem.capacity"), CAPACITY, 2 << 30)

    def test_good_values(self):
        low = self.leaf() + "/dmem.low"
        for text, expected in GOOD_VALUES.items():
            with self.subTest(text=text):
                write(low, R0 + " 777")
                self.assertEqual(write(low, R0 + text), len(R0 + text))
                self.assert_values(low, expected, 0)
        write(low, f" {R0} 5")
        self.assert_values(low, 5, 0)

    def test_bad_writes_change_nothing(self):
        low = self.leaf() + "/dmem.low"
        write(low, R0 + " 777")
        write(low, R1 + " 888")
        for text in BAD_WRITES:
            with self.subTest(text=text):
                self.assert_errno(errno.EINVAL, write, low, text)
                self.assert_values(low, 777, 888)

    def test_length(self):
        low = self.leaf() + "/dmem.low"
        self.assertEqual(write(low, ""), 0)
        self.assertEqual(write(low, f"{R0} 4096".ljust(4096)), 4096)
        self.assert_errno(errno.E2BIG, write, low, f"{R0} 8192".ljust(4097))
        self.assert_values(low, 4096, 0)

    def test_files_are_independent(self):
        leaf = self.leaf()
        for value, name in enumerate(("min", "low", "max"), 1):
            write(f"{leaf}/dmem.{name}", f"{R1} {value}")
        for value, name in enumerate(("min", "low"), 1):
            self.assert_values(f"{leaf}/dmem.{name}", 0, value)
        self.assert_values(f"{leaf}/dmem.max", "max", 3)
        self.assert_values(self.path("a/dmem.low"), 0, 0)

    def test_open_flags_and_offsets(self):
        low = self.leaf() + "/dmem.low"
        write(low, R0 + " 777")
        for flag in (os.O_TRUNC, os.O_APPEND, os.O_CREAT):
            os.close(os.open(low, os.O_WRONLY | flag))
            self.assert_values(low, 777, 0)
        fd = os.open(low, os.O_RDWR)
        os.write(fd, f"{R0} 1".encode())
        os.write(fd, f"{R1} 2".encode())
        self.assert_values(low, 1, 2)
        os.pwrite(fd, f"{R0} 3".encode(), 100)
        self.assertEqual(os.pread(fd, 4096, 0), f"{R0} 3\n{R1} 2\n".encode())
        self.assertEqual(os.pread(fd, 5, 4), f"{R0} 3"[4:9].encode())
        os.close(fd)

    @unittest.skipIf(os.geteuid() != 0, "the mode already stops other users")
    def test_read_only_files(self):
        leaf = self.leaf()
        for path in (leaf + "/dmem.current", leaf + "/dmem.peak", self.path("dmem.capacity")):
            self.assert_errno(errno.EINVAL, write, path, f"{R0} 4096")

    def test_hotplug(self):
        leaf = self.leaf()
        write(leaf + "/dmem.low", f"{R0} 1")
        write(leaf + "/dmem.low", f"{R1} 2")
        write(leaf + "/dmem.max", f"{R0} 3")
        fd = os.open(leaf + "/dmem.low", os.O_RDWR)
        self.addCleanup(os.close, fd)
        self.control(f"region - {R0}")
        self.assertEqual(read(leaf + "/dmem.low"), f"{R1} 2\n")
        self.assertEqual(read(self.path("dmem.capacity")), f"{R1} {2 << 30}\n")
        self.assert_errno(errno.EINVAL, write, leaf + "/dmem.low", f"{R0} 0")
        self.control(f"region - {R1}")
        self.assertEqual(read(leaf + "/dmem.low"), "")
        self.control(f"region + {R0} 1M")
        self.assertEqual(os.pread(fd, 4096, 0), f"{R0} 0\n".encode())
        self.assertEqual(read(leaf + "/dmem.max"), f"{R0} max\n")
        os.write(fd, f"{R0} 9".encode())
        self.assertEqual(read(leaf + "/dmem.low"), f"{R0} 9\n")
        self.assert_errno(errno.EEXIST, self.control, f"region + {R0} 1M")
        self.assert_errno(errno.EINVAL, self.control, "region - nothing")

    def test_slow(self):
        write(self.path("cgroup.subtree_control"), "+dmem")
        os.mkdir(self.path("s"))
        self.control("slow on")
        write(self.path("s/dmem.low"), f"{R0} 1")
        fd = os.open(self.path("s/dmem.max"), os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, f"{R0} 4096".encode())
        os.close(fd)
        with subprocess.Popen(["sh", "-c", f"echo {R0} 2048 > {self.path('s/dmem.max')}"]) as writer:
            with self.assertRaises(subprocess.TimeoutExpired):
                writer.wait(0.3)
            self.assertEqual(read(self.path("s/dmem.max")).split("\n")[0], f"{R0} 2048")
            self.control("slow off")
            self.assertEqual(writer.wait(10), 0)
        self.assert_errno(errno.EINVAL, self.control, "slow maybe")

    def test_charges(self):
        leaf = self.leaf()
        os.mkdir(self.path("a/c"))
        self.control(f"charge a/b {R0} 3000")
        self.control(f"charge /a/c {R0} 200")
        self.control(f"charge /a {R0} 10")
        self.assert_values(leaf + "/dmem.current", 3000, 0)
        self.assert_values(self.path("a/dmem.current"), 3210, 0)
        self.assert_values(self.path("dmem.current"), 3210, 0)
        self.control(f"charge a/b {R0} 1000")
        self.assert_values(self.path("a/dmem.current"), 1210, 0)
        self.assert_values(self.path("a/dmem.peak"), 3210, 0)
        os.rmdir(self.path("a/c"))
        self.assert_values(self.path("dmem.current"), 1010, 0)
        self.assert_errno(errno.ENOENT, self.control, f"charge /none {R0} 1")
        self.assert_errno(errno.EINVAL, self.control, "charge /a none 1")
        self.assert_errno(errno.EINVAL, self.control, f"charge /a {R0} x")


class Hierarchy(Emulated):
    def test_files_present(self):
        self.assertEqual(set(os.listdir(self.dir)),
                         {"cgroup.controllers", "cgroup.subtree_control", "cgroup.procs",
                          "cgroup.stat", "dmem.capacity", "dmem.current"})
        os.mkdir(self.path("a"))
        self.assertEqual(set(os.listdir(self.path("a"))), GROUP_FILES)
        self.enable("")
        self.assertEqual(set(os.listdir(self.path("a"))), GROUP_FILES | DMEM_FILES)
        os.mkdir(self.path("a/b"))
        self.assertEqual(set(os.listdir(self.path("a/b"))), GROUP_FILES)
        self.assertEqual(read(self.path("a/cgroup.events")), "populated 0\nfrozen 0\n")
        self.assertEqual(read(self.path("a/cgroup.type")), "domain\n")
        self.assertIn("nr_descendants 1\n", read(self.path("a/cgroup.stat")))

    def test_subtree_control(self):
        os.makedirs(self.path("a/b"))
        control = "cgroup.subtree_control"
        self.assert_errno(errno.ENOENT, self.enable, "a")
        self.assert_errno(errno.EINVAL, write, self.path(control), "+foo")
        self.assert_errno(errno.EINVAL, write, self.path(control), "dmem")
        write(self.path(control), "+dmem +memory\n")
        self.assertEqual(read(self.path(control)), "memory dmem\n")
        self.assertEqual(read(self.path("a/cgroup.controllers")), "memory dmem\n")
        self.enable("a")
        self.assert_errno(errno.EBUSY, write, self.path(control), "-dmem")
        write(self.path("a", control), "-dmem")
        write(self.path(control), "-dmem")
        self.assertEqual(read(self.path(control)), "memory\n")

    def test_toggle_makes_fresh_files(self):
        low = self.leaf() + "/dmem.low"
        write(low, R0 + " 777")
        inode = os.stat(low).st_ino
        fd = os.open(low, os.O_RDWR)
        self.addCleanup(os.close, fd)
        write(self.path("a/cgroup.subtree_control"), "-dmem")
        self.assert_errno(errno.ENOENT, os.stat, low)
        for _ in range(2):
            self.assert_errno(errno.ENODEV, os.pread, fd, 100, 0)
            self.assert_errno(errno.ENODEV, os.write, fd, f"{R0} 1".encode())
            self.enable("a")
        self.assert_values(low, 0, 0)
        self.assertNotEqual(os.stat(low).st_ino, inode)

    def test_removed_group(self):
        leaf = self.leaf()
        inode = os.stat(leaf).st_ino
        fds = [os.open(f"{leaf}/{n}", os.O_RDWR) for n in ("dmem.low", "cgroup.procs")]
        directory = os.open(leaf, os.O_RDONLY)
        os.rmdir(leaf)
        for fd in fds:
            self.assert_errno(errno.ENODEV, os.pread, fd, 100, 0)
            self.assert_errno(errno.ENODEV, os.write, fd, b"0")
            os.close(fd)
        self.assert_errno(errno.ENOENT, read, leaf + "/dmem.low")
        os.mkdir(leaf)
        with self.assertRaises(FileNotFoundError):
            os.open("dmem.low", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        self.assertNotEqual(os.stat(leaf).st_ino, inode)
        self.assert_values(leaf + "/dmem.low", 0, 0)

    def test_refused(self):
        leaf = self.leaf()
        self.assert_errno(errno.EBUSY, os.rmdir, self.path("a"))
        self.assert_errno(errno.EPERM, os.unlink, leaf + "/dmem.low")
        self.assert_errno(errno.EPERM, os.rename, leaf, self.path("a/c"))
        self.assert_errno(errno.EACCES, write, leaf + "/new", "x", os.O_CREAT)
        self.assert_errno(errno.EEXIST, os.mkdir, leaf)

    @unittest.skipIf(os.geteuid() != 0, "needs other users")
    def test_ownership(self):
        leaf = self.leaf()
        os.chown(self.path("a/cgroup.subtree_control"), DECK, DECK)
        os.chown(self.path("a"), DECK, DECK)
        os.chmod(self.dir, 0o755)
        os.chown(leaf + "/dmem.min", DECK, DECK)
        os.chmod(leaf + "/dmem.max", 0o600)

        def as_deck():
            write(leaf + "/dmem.min", R0 + " 1")
            self.assert_errno(errno.EACCES, write, leaf + "/dmem.low", R0 + " 1")
            self.assert_errno(errno.EACCES, read, leaf + "/dmem.max")
            self.assert_errno(errno.EPERM, os.chmod, leaf + "/dmem.low", 0o666)
            self.assert_errno(errno.EACCES, self.enable, "")
            os.mkdir(self.path("a/own"))
            write(self.path("a/cgroup.subtree_control"), "-dmem")
            self.enable("a")
            write(leaf + "/dmem.low", R0 + " 5")
        self.run_as(DECK, as_deck)
        self.assertEqual(os.stat(self.path("a/own")).st_uid, DECK)
        self.assertEqual(os.stat(self.path("a/own/cgroup.procs")).st_gid, DECK)
        self.assertEqual(os.stat(leaf + "/dmem.low").st_uid, DECK)
        self.assertEqual(os.stat(leaf + "/cgroup.procs").st_uid, 0)
        self.assert_values(leaf + "/dmem.low", 5, 0)

    def run_as(self, uid, call):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                call()
                status = 0
            except BaseException as e:  # the parent only sees the status
                print(f"as uid {uid}: {e!r}", file=sys.stderr)
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)


class Processes(Emulated):
    def populated(self, group):
        return read(self.path(group, "cgroup.events")).splitlines()[0]

    def move(self, process, group):
        write(self.path(group, "cgroup.procs"), str(process.pid))

    def test_move_and_exit(self):
        os.makedirs(self.path("a/b"))
        os.makedirs(self.path("a/c"))
        process = self.child()
        self.move(process, "a/b")
        self.assertEqual(read(self.path("a/b/cgroup.procs")), f"{process.pid}\n")
        self.move(process, "a/c")
        self.assertEqual(read(self.path("a/b/cgroup.procs")), "")
        self.assertEqual([self.populated(g) for g in ("a", "a/b", "a/c")],
                         ["populated 1", "populated 0", "populated 1"])
        self.assert_errno(errno.EBUSY, os.rmdir, self.path("a/c"))
        process.kill()
        # The zombie is not waited for: it does not count any more.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.assertEqual([self.populated("a"), self.populated("a/c")], ["populated 0"] * 2)
        os.rmdir(self.path("a/c"))

    def test_exit_command(self):
        os.mkdir(self.path("a"))
        process = self.child()
        self.move(process, "a")
        self.control(f"exit {process.pid}")
        self.assertEqual(self.populated("a"), "populated 0")
        self.assert_errno(errno.ESRCH, self.control, f"exit {process.pid}")

    def test_bad_pids(self):
        os.mkdir(self.path("a"))
        process = subprocess.Popen(["true"])
        process.wait()
        self.assert_errno(errno.ESRCH, self.move, process, "a")
        for text in ("x", "-1", "1 2"):
            self.assert_errno(errno.EINVAL, write, self.path("a/cgroup.procs"), text)
        write(self.path("a/cgroup.procs"), "0")
        self.assertEqual(read(self.path("a/cgroup.procs")), f"{os.getpid()}\n")
        write(self.path("cgroup.procs"), "0")

    def test_no_internal_processes(self):
        os.makedirs(self.path("a/b"))
        self.enable("")
        process = self.child()
        self.move(process, "a")
        self.assert_errno(errno.EBUSY, self.enable, "a")
        self.move(process, "a/b")
        self.enable("a")
        self.assert_errno(errno.EBUSY, self.move, process, "a")
        self.move(process, "")
        self.assertEqual(self.populated("a"), "populated 0")


class Notification(Emulated):
    def test_writes(self):
        leaf = self.leaf()
        watch = self.watch(leaf, leaf + "/dmem.low")
        write(leaf + "/dmem.low", R0 + " 4096")
        seen = [(leaf, IN_MODIFY, "dmem.low"), (leaf + "/dmem.low", IN_MODIFY, "")]
        self.assertCountEqual(watch.events(2), seen)
        self.assert_errno(errno.EINVAL, write, leaf + "/dmem.low", "garbage")
        self.assertEqual(watch.events(0), [])

    def test_truncation_is_a_second_event(self):
        leaf = self.leaf()
        watch = self.watch(leaf)
        fd = os.open(leaf + "/dmem.low", os.O_WRONLY | os.O_TRUNC)
        self.assertEqual(watch.events(1), [(leaf, IN_MODIFY, "dmem.low")])
        os.write(fd, (R0 + " 1").encode())
        os.close(fd)
        self.assertEqual(watch.events(1), [(leaf, IN_MODIFY, "dmem.low")])

    def test_directories(self):
        leaf = self.leaf()
        watch = self.watch(leaf)
        os.mkdir(leaf + "/new")
        self.assertEqual(watch.events(1), [(leaf, IN_CREATE | IN_ISDIR, "new")])
        inner = self.watch(leaf + "/new")
        os.rmdir(leaf + "/new")
        self.assertEqual(watch.events(1), [(leaf, IN_DELETE | IN_ISDIR, "new")])
        self.assertEqual([e[1] for e in inner.events(2)], [IN_DELETE_SELF, IN_IGNORED])
        os.chmod(leaf + "/dmem.low", 0o600)
        self.assertEqual(watch.events(1), [(leaf, IN_ATTRIB, "dmem.low")])

    def test_directory_watch_survives_toggle(self):
        leaf = self.leaf()
        watch = self.watch(leaf)
        write(self.path("a/cgroup.subtree_control"), "-dmem")
        self.enable("a")
        write(leaf + "/dmem.low", R0 + " 1")
        self.assertIn((leaf, IN_MODIFY, "dmem.low"), watch.events(1))

    def test_populated(self):
        leaf = self.leaf()
        process = self.child()
        watch = self.watch(self.path("a"), leaf)
        changed = [(self.path("a"), IN_MODIFY, "cgroup.events"),
                   (leaf, IN_MODIFY, "cgroup.events")]
        write(self.path("a/b/cgroup.procs"), str(process.pid))
        self.assertCountEqual(watch.events(3), changed + [(leaf, IN_MODIFY, "cgroup.procs")])
        process.kill()
        self.assertCountEqual(watch.events(2), changed)


class Series(Emulated):
    """dmem.events of the companion kernel series, with the poll() of kernfs."""

    options = ("--series",)

    def counts(self, path, region=R0):
        line = next(line for line in read(path).splitlines() if line.startswith(region + " "))
        return [int(pair.split("=")[1]) for pair in line.split()[1:]]

    def poll(self, fd, timeout=0):
        poll = select.poll()
        poll.register(fd, select.POLLPRI)
        return [events for _, events in poll.poll(timeout)]

    def test_counts(self):
        leaf = self.leaf()
        os.mkdir(self.path("a/c"))
        self.assertEqual(read(leaf + "/dmem.events"),
                         "".join(f"{r} evictions=0 evicted_bytes=0 foreign_evictions=0\n" for r in (R0, R1)))
        self.control(f"charge a/b {R0} 100")
        self.control(f"evict a/b {R0} 30 a/c")
        self.assert_values(leaf + "/dmem.current", 70, 0)
        self.assertEqual(self.counts(leaf + "/dmem.events"), [1, 30, 1])
        self.assertEqual(self.counts(leaf + "/dmem.events.local"), [1, 30, 1])
        self.assertEqual(self.counts(self.path("a/dmem.events")), [1, 30, 0])
        self.assertEqual(self.counts(self.path("a/dmem.events.local")), [0, 0, 0])
        self.assertEqual(self.counts(self.path("a/c/dmem.events")), [0, 0, 0])
        self.control(f"evict a/b {R0} 100 a/b")
        self.control(f"evict a/b {R1} 5 /")
        self.assert_values(leaf + "/dmem.current", 0, 0)
        self.assertEqual(self.counts(leaf + "/dmem.events"), [2, 130, 1])
        self.assertEqual(self.counts(self.path("a/dmem.events"), R1), [1, 5, 1])
        self.assertFalse(os.path.exists(self.path("dmem.events")))
        self.assert_errno(errno.ENOENT, self.control, f"evict a/b {R0} 1 none")
        self.assert_errno(errno.ENOENT, self.control, f"evict none {R0} 1 a")
        self.assert_errno(errno.EINVAL, self.control, "evict a/b none 1 a")

    def test_poll(self):
        leaf = self.leaf()
        fds = [os.open(path, os.O_RDONLY)
               for path in (leaf + "/dmem.events", leaf + "/dmem.events", self.path("a/dmem.events"))]
        for fd in fds:
            self.addCleanup(os.close, fd)
            os.pread(fd, 4096, 0)
            self.assertEqual(self.poll(fd), [])
        waiting = select.epoll()
        self.addCleanup(waiting.close)
        waiting.register(fds[0], select.EPOLLPRI)
        self.assertEqual(waiting.poll(0.05), [])
        self.control(f"evict a/b {R0} 1 /")
        self.assertEqual(waiting.poll(10), [(fds[0], select.EPOLLPRI | select.EPOLLERR)])
        self.assertEqual(waiting.poll(0), [(fds[0], select.EPOLLPRI | select.EPOLLERR)])
        os.pread(fds[0], 4096, 0)
        self.assertEqual(waiting.poll(0.05), [])
        # Each open file by itself.
        for fd in fds[1:]:
            self.assertEqual(self.poll(fd), [select.POLLPRI | select.POLLERR])
        for _ in range(3):
            self.control(f"evict a/b {R0} 1 /")
            self.assertEqual(len(waiting.poll(10)), 1)
            os.pread(fds[0], 4096, 0)

    def test_dead_files_are_ready(self):
        leaf = self.leaf()
        fd = os.open(leaf + "/dmem.events", os.O_RDONLY)
        self.addCleanup(os.close, fd)
        os.pread(fd, 4096, 0)
        write(self.path("a/cgroup.subtree_control"), "-dmem")
        self.assertEqual(self.poll(fd, 10000), [select.POLLPRI | select.POLLERR])
        self.assert_errno(errno.ENODEV, os.pread, fd, 100, 0)
        self.assertEqual(self.poll(fd), [select.POLLPRI | select.POLLERR])


class LifeCycle(Emulated):
    def test_unmount_ends_it(self):
        if os.geteuid() == 0:
            subprocess.run(["umount", self.dir], check=True)
        else:
            subprocess.run(["fusermount3", "-u", self.dir], check=True)
        self.assertEqual(self.emu.wait(10), 0)

    def test_sigterm_while_in_use(self):
        fd = os.open(self.path("cgroup.procs"), os.O_RDONLY)
        self.emu.terminate()
        self.assertEqual(self.emu.wait(10), 0)
        self.assertFalse(os.path.ismount(self.dir))
        self.assert_errno(errno.ENOTCONN, os.close, fd)

    def test_sigkill_leaves_no_mount(self):
        self.emu.kill()
        self.assertEqual(self.emu.wait(10), -signal.SIGKILL)
        end = time.monotonic() + 10
        while self.mounted() and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(self.mounted())

    def mounted(self):
        return f" {self.dir} " in read("/proc/self/mountinfo")

    def stop(self):
        if self.emu.poll() is None:
            super().stop()
        else:
            self.emu.stdout.close()

    def test_bad_options(self):
        for args in ([], ["/nonexistent"], ["--region", "x", self.dir],
                     ["--region", "x=y", self.dir], ["--region", "=1", self.dir]):
            result = subprocess.run([self.program, *args], stderr=subprocess.PIPE, check=False)
            self.assertEqual(result.returncode, 1)
            self.assertNotEqual(result.stderr, b"")


class Scale(Emulated):
    GROUPS = 10000

    def test_many_groups(self):
        self.enable("")
        os.mkdir(self.path("many"))
        self.enable("many")
        for i in range(self.GROUPS):
            os.mkdir(self.path(f"many/g{i}"))
        for i in range(self.GROUPS):
            write(self.path(f"many/g{i}/dmem.low"), f"{R0} {i}")
        self.assert_values(self.path(f"many/g{self.GROUPS - 1}/dmem.low"), self.GROUPS - 1, 0)
        self.assertEqual(sum(n.startswith("g") for n in os.listdir(self.path("many"))), self.GROUPS)
        for i in range(self.GROUPS):
            os.rmdir(self.path(f"many/g{i}"))


def can_mount():
    return os.access("/dev/fuse", os.R_OK | os.W_OK)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not can_mount():
        print("SKIP: /dev/fuse cannot be used")
        sys.exit(77)
    Emulated.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
