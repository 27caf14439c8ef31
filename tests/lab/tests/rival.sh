#!/bin/bash
# SPDX-License-Identifier: MIT
# Another program of the same user writes the same leaf, as gamescope and KDE's booster do.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

rival_value=$((7 * MIB))

# One write(2) as deck, whose error counts; a shell's own message tells it.
# shellcheck disable=SC2016 # the inner shell expands it
as_rival() { # GROUP VALUE
	setpriv --reuid=1000 --regid=1000 --clear-groups bash -c 'echo "$2" > "$1"' - \
		"$CGROUP$1/dmem.low" "$REGION0 $2" 2>&1
}
# shellcheck disable=SC2016 # the inner shell expands it
toggle() {
	setpriv --reuid=1000 --regid=1000 --clear-groups bash -euc \
		'echo -dmem > "$1"; [ "$2" = off ] || echo +dmem > "$1"' - \
		$CGROUP$DECK/app.slice/cgroup.subtree_control "${1-on}"
}
owner() { stat -c '%U %a' "$CGROUP$1/dmem.low"; }
# shellcheck disable=SC2317 # called by name
{
is_right() { protected "$GAME_UNIT"; }
is_ours() { is_right && [ "$(owner "$GAME_UNIT")" = 'vramd 644' ]; }
toggle_off() { toggle off; }
is_off() { ! grep -qw dmem $CGROUP$DECK/app.slice/cgroup.subtree_control; }
write_rival() { as_rival "$GAME_UNIT" $rival_value > /dev/null || true; }
is_theirs() { value "$GAME_UNIT" dmem.low $REGION0; [ "$VALUE" = $rival_value ]; }
logged() { vramd_log | grep -q "$1"; }
}
# As another tool may have done; with this deck's own systemd makes files that belong to deck.
setup_vramd
systemctl stop vramd.service
start_seat_session deck
for group in '' /user.slice /user.slice/user-1000.slice $DECK; do
	echo +dmem > "$CGROUP$group/cgroup.subtree_control"
done
toggle
before=$(tree_state | grep -v /session.slice/)
systemctl start vramd.service

echo "--- ownership=exclusive"
start_game deck 100
check "the leaf was deck's by birth" 'deck 644' "$(as_unit deck stat -c '%U %a' \
	"$CGROUP$(dirname "$GAME_UNIT")/dbus.socket/dmem.low")"
front deck "$GAME_PID"
must "it is vramd's while it is protected" wait_until 10 is_ours
check "deck cannot write it" 'Permission denied' "$(as_rival "$GAME_UNIT" $rival_value | sed 's/.*: //')"
must "and it keeps its value" is_right
as deck vramctl focus --clear
start_game deck 200
front deck "$GAME_PID"
must "the other game is vramd's" wait_until 10 is_ours
end_game "$GAME_UNIT"

GAME_UNIT=$DECK/app.slice/app-steam-app100-1.scope
echo "--- given back"
systemctl stop vramd.service
check "the leaf is deck's again" 'deck 644' "$(owner "$GAME_UNIT")"
check "deck can write it" '' "$(as_rival "$GAME_UNIT" $rival_value)"
must "which counts" is_theirs

echo "--- ownership=share"
printf '[policy]\nOwnership=share\nReassertLimit=3\n' > /etc/vramd/vramd.conf
systemctl start vramd.service
front deck "$(head -n1 "$CGROUP$GAME_UNIT/cgroup.procs")"
must "protected" wait_until 10 is_right
check "the leaf stays deck's" 'deck 644' "$(owner "$GAME_UNIT")"
for i in 1 2 3; do
	within "deck writes its own value, and vramd writes again ($i)" write_rival is_right
done
write_rival
must "the fourth time vramd yields, and says so" wait_until 5 logged 'vramd leaves it alone now'
must "deck's value stays" is_theirs
check "vramd said so for each" 3 "$(vramd_log | grep -c 'vramd wrote its own value again')"
systemctl stop vramd.service
must "also after vramd has stopped" is_theirs
check "deck can write it" '' "$(as_rival "$GAME_UNIT" 0)"
end_game "$GAME_UNIT"
after=$(tree_state)
# Slices that came meanwhile do not count.
diff <(echo "$before") <(grep -v /session.slice/ <<< "$after") || fail "the tree is not what it was at first"
ok "the tree is what it was at first"

echo "--- deck switches dmem off and on"
rm /etc/vramd/vramd.conf
systemctl start vramd.service
start_game deck 300
front deck "$GAME_PID"
must "protected" wait_until 10 is_right
within "switched off and on" toggle is_ours
within "switched off: it is on again, and vramd's" toggle_off is_ours
systemctl stop vramd.service
must "and off, as deck left it, when vramd has stopped" is_off
