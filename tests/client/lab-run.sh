#!/bin/bash
# SPDX-License-Identifier: MIT
# vramctl run with a real systemd of the user and a real vramd: the command finds itself in its own scope
# and held from its first instruction; its end closes both.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

VRAMCTL=$BUILD/client/vramctl
# shellcheck disable=SC2119 # no configuration
setup_vramd
start_seat_session deck

# shellcheck disable=SC2016 # for the inner shell
look='cat /proc/self/cgroup; "$0" --json; exit 5'
status=0
as deck env SteamAppId=1091500 "$VRAMCTL" run -- sh -c "$look" "$VRAMCTL" > "$WORK/out" 2> "$WORK/err" || status=$?
cat "$WORK/err"
check "exit status of the command" 5 $status
check "nothing to complain about" '' "$(cat "$WORK/err")"
unit=$(sed -n '1s|.*/app.slice/||p' "$WORK/out")
[[ $unit =~ ^app-steam-app1091500-[0-9]+\.scope$ ]] || fail "the command was in '$unit'"
ok "the command was in $unit"
must "it was held" grep -q '"who": "vramctl run"' "$WORK/out"
must "as a game that vramd knows" grep -q '"appid": 1091500' "$WORK/out"
no_holds() { ! "$VRAMCTL" --json | grep -q '"who"'; }
must "the hold ended with it" wait_until 10 no_holds

status=0
as deck "$VRAMCTL" run -- sh -c 'cat /proc/self/cgroup; kill -TERM $$' > "$WORK/out" || status=$?
check "a signal of the command" 143 $status
must "in a scope of its own" grep -Eq '/app.slice/app-vramd-sh-[0-9]+\.scope$' "$WORK/out"
