#!/bin/bash
# SPDX-License-Identifier: MIT
# focus: from gamescope's properties to dmem.low, through vramd-agent and vramd, on a real kernel. A system call of
# User-Mode Linux costs a multiple of another kernel's, so the mark is a multiple of the floor.
set -euo pipefail
# shellcheck source=tests/bench/lab.sh
. /lab/src/tests/bench/lab.sh

setup_bench
install_agent
setup_games
[ -d /tmp/.X11-unix ] || mkdir -m 1777 /tmp/.X11-unix
read -r _ < <(as deck Xvfb :0 -screen 0 320x200x24 -nolisten tcp -noreset -displayfd 1 2> /dev/null)
as deck systemctl --user start vramd-agent.service
# In a unit of deck's, as a compositor of his is.
as_unit deck $BUILD/tests/bench/bench-focus --by-floor --display=:0 "$@" "$GAME_A" "$GAME_B"
