#!/bin/bash
# SPDX-License-Identifier: MIT
# reaction: from ReportFocus() to the last value written, on a real kernel beside a real systemd
set -euo pipefail
# shellcheck source=tests/bench/lab.sh
. /lab/src/tests/bench/lab.sh

setup_bench
setup_games
systemd-run --quiet --unit=bench-properties.service sleep infinity
reaction --unit=bench-properties.service "$@"
