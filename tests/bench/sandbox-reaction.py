#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""reaction on the emulated tree: quick, for development. No systemd to compare with, and each read or write of a
control group is answered by a program (FUSE), so only the lab's figures count."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
import sandbox  # noqa: E402

MIB = 1 << 20


def main():
    why = sandbox.missing()
    if why:
        print(f'skip: {why}', file=sys.stderr)
        return 77
    build = pathlib.Path(os.environ['VRAMD_BUILD'])
    with sandbox.Sandbox(build, log_level='info') as box:
        # Where /run is, a rename costs next to nothing; the temporary folder may be on a disk.
        box.start('--runtime-dir=/run/systemd/vramd', wrapper=os.environ.get('VRAMD_WRAPPER', '').split())
        games = []
        for appid, size in ((100, 48 * MIB), (200, 96 * MIB)):
            group = box.unit(f'app-steam-app{appid}-1.scope')
            games.append(f'{box.process(group).pid}:{group}')
            # There is no dmem to be charged before vramd has switched it on for its first game.
            sandbox.wait_for(lambda: 'dmem.low' in os.listdir(box.cgroup / group.strip('/')), 'dmem')
            box.charge(group, size)
        return subprocess.run([build / 'tests/bench/bench-reaction', f'--daemon={box.daemon.pid}', '--uid=1000',
                               f'--cgroup={box.cgroup}', *sys.argv[1:], *games], check=False).returncode


if __name__ == '__main__':
    sys.exit(main())
