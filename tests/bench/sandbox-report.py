#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""report: how long libvramd's calls keep a compositor. The machine's own kernel, bus and vramd; only the control groups,
which the caller does not wait for, are emulated."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
import sandbox  # noqa: E402


def main():
    why = sandbox.missing()
    if why:
        print(f'skip: {why}', file=sys.stderr)
        return 77
    build = pathlib.Path(os.environ['VRAMD_BUILD'])
    with sandbox.Sandbox(build, log_level='info') as box:
        box.start()
        pids = [str(box.process(box.unit(f'app-steam-app{appid}-1.scope')).pid) for appid in (100, 200)]
        return subprocess.run([build / 'tests/bench/bench-report', '1000', *pids], check=False).returncode


if __name__ == '__main__':
    sys.exit(main())
