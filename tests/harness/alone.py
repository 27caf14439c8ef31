# SPDX-License-Identifier: MIT
"""What tests do to be alone, to wait, and to leave nothing."""

import ctypes
import signal
import subprocess
import time

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
PR_SET_PDEATHSIG = 1


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def enter_namespaces(flags):
    """Namespaces of our own, a mount namespace among them: nothing that we mount is seen from outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), 'unshare')
    subprocess.run(['mount', '--make-rprivate', '/'], check=True)


def wait_for(condition, what, timeout=5.0):
    """Waits until condition() is true; its last value. Only tests may wait like this."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f'{what}: not within {timeout} s')
        time.sleep(0.005)
