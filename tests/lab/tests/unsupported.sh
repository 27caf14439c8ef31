#!/bin/bash
# SPDX-License-Identifier: MIT
# On a kernel without the dmem controller vramd says so once, and leaves. Needs a boot of its own:
#   tests/lab/run --append cgroup_disable=dmem tests/lab/tests/unsupported.sh
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

! grep -qw dmem $CGROUP/cgroup.controllers || skip "this kernel has dmem; boot with --append cgroup_disable=dmem"
ended() { ! systemctl --quiet is-active vramd.service; }

install_vramd
start_seat_session deck
before=$(tree_state)
must "the start is no failure" systemctl start vramd.service
check "State" '"unsupported"' "$(property State)"
must "its reason names the parameter" grep -q cgroup_disable= <<< "$(property Reason)"
echo "    $(systemctl show -P StatusText vramd.service)"
start_scope deck app-steam-app100-1 sleep infinity
status=0
front deck "$SCOPE_PID" > "$WORK/out" 2>&1 || status=$?
check "a focus report is refused" 1 $status
sed 's/^/    /' "$WORK/out"
must "doctor can be run" test -n "$(vramctl doctor 2>&1 || true)"
vramctl doctor 2>&1 | sed 's/^/    /' || true
must "it leaves by itself" wait_until 20 ended
check "that is no failure" success "$(systemctl show -P Result vramd.service)"
check "exit status" 0 "$(systemctl show -P ExecMainStatus vramd.service)"
check "lines in the log" 1 "$(vramd_log | wc -l)"
vramd_log | sed 's/^/    /'
check "nothing has changed" "$(md5sum <<< "$before")" "$(tree_state | md5sum)"
check "vramd --restore" 0 "$("$(sed -n 's/^ExecStart=//p' $BUILD/systemd/vramd.service)" --restore > "$WORK/out" 2>&1; echo $?)"
