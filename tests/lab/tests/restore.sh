#!/bin/bash
# SPDX-License-Identifier: MIT
# Putting back, by every way that there is: the end of the game, a stop, a crash, --restore; what others
# wrote meanwhile stays, and a journal of another boot counts for nothing. kills.py has the random ones.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

# shellcheck disable=SC2317 # called by name
{
is_right() { protected "$GAME_UNIT"; }
as_at_first() { [ "$(state)" = "$first" ]; }
dead() { ! systemctl --quiet is-active vramd.service && [ ! -e /run/vramd/journal ]; }
unit_failed() { systemctl --quiet is-failed vramd.service; }
}
# Not the game's own group, which comes and goes.
state() { tree_state | grep -v app-steam-app || true; }
VRAMD=$(sed -n 's/^ExecStart=//p' $BUILD/systemd/vramd.service)
restore() { systemd-run --quiet --wait --pipe -p User=vramd -p AmbientCapabilities='CAP_DAC_OVERRIDE CAP_CHOWN CAP_FOWNER' \
	"$VRAMD" --restore; }
now_front() {
	systemctl start vramd.service
	if [ -z "$GAME_UNIT" ] || gone "$GAME_UNIT"; then
		start_game deck 100
	fi
	front deck "$GAME_PID"
	wait_until 10 is_right || fail "not protected"
}
check_first() {
	if ! wait_until "$2" as_at_first; then
		diff <(echo "$first") <(state) || true
		fail "$1: the tree is not what it was at first"
	fi
	ok "$1: the tree is what it was at first"
}

setup_vramd
printf '[Service]\nRestart=no\nExecStopPost=\n' > /etc/systemd/system/vramd.service.d/crash.conf
systemctl daemon-reload
systemctl stop vramd.service
start_seat_session deck
start_user eve
first=$(state)

now_front
systemctl stop vramd.service
check_first "systemctl stop" 0
now_front
end_game "$GAME_UNIT"
wait_until 5 no_low_at_all || fail "the end of a game leaves values"
systemctl stop vramd.service
check_first "the game ends, then a stop" 0

now_front
kill -KILL "$(vramd_pid)"
wait_until 5 unit_failed || fail "it is still there"
must "killed: the values are still there" is_right
must "and a journal" test -s /run/vramd/journal
restore
check_first "vramd --restore after kill -9" 0
must "the journal has done its work" test ! -e /run/vramd/journal

now_front
kill -KILL "$(vramd_pid)"
wait_until 5 unit_failed
end_game "$GAME_UNIT"
systemctl start vramd.service
must "killed, the game ends, a new start: no value is left" no_low_at_all
systemctl stop vramd.service
check_first "and that stops: the tree" 0

now_front
kill -KILL "$(vramd_pid)"
wait_until 5 unit_failed
echo "$REGION0 $((33 * MIB))" > "$CGROUP$GAME_UNIT/dmem.low"
echo "$REGION1 $((5 * MIB))" > $CGROUP$DECK/dmem.low
restore
value "$GAME_UNIT" dmem.low $REGION0
check "a stranger's later value stays" $((33 * MIB)) "$VALUE"
value $DECK dmem.low $REGION1
check "and one above" $((5 * MIB)) "$VALUE"
value $DECK dmem.low $REGION0
check "beside it ours goes" 0 "$VALUE"
value /user.slice dmem.low $REGION0
check "and at the top" 0 "$VALUE"
echo "$REGION0 0" > "$CGROUP$GAME_UNIT/dmem.low"
echo "$REGION1 0" > $CGROUP$DECK/dmem.low
for group in $DECK/app.slice $DECK/session.slice $DECK /user.slice/user-1000.slice /user.slice ''; do
	echo -dmem > "$CGROUP$group/cgroup.subtree_control" || true
done
check_first "the stranger gone, by hand" 0

now_front
kill -KILL "$(vramd_pid)"
wait_until 5 unit_failed
sed -i '1s/.\{8\}$/deadbeef/' /run/vramd/journal
was=$(state)
restore
check "a journal of another boot changes nothing" "$(md5sum <<< "$was")" "$(state | md5sum)"
must "and is dropped" test ! -e /run/vramd/journal
for group in "$GAME_UNIT" $DECK/app.slice $DECK /user.slice/user-1000.slice /user.slice; do
	echo "$REGION0 0" > "$CGROUP$group/dmem.low"
	echo "$REGION1 0" > "$CGROUP$group/dmem.low"
done
for group in $DECK/app.slice $DECK/session.slice $DECK /user.slice/user-1000.slice /user.slice ''; do
	echo -dmem > "$CGROUP$group/cgroup.subtree_control" || true
done
check_first "by hand" 0

rm /etc/systemd/system/vramd.service.d/crash.conf
systemctl daemon-reload
now_front
systemctl mask --runtime --quiet vramd.service
kill -SEGV "$(vramd_pid)"
wait_until 10 dead || fail "it does not end"
check_first "a crash under systemd alone, by ExecStopPost=" 5
