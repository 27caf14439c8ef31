#!/bin/bash
# SPDX-License-Identifier: MIT
# Two users take turns at one seat: who sits there has the protection, the other has none.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

# shellcheck disable=SC2317 # called by name
{
deck_has_it() { protected "$deck" && unprotected "$eve" && unprotected $EVE; }
eve_has_it() { protected "$eve" && unprotected "$deck" && unprotected $DECK; }
switch_to_deck() { loginctl activate "$deck_session"; }
switch_to_eve() { loginctl activate "$eve_session"; }
eve_leaves() { end_seat_session eve; }
deck_returns() { loginctl activate "$deck_session"; }
}

setup_vramd
# A unit that is being started must find its group free of controllers, or nobody can log in.
for _ in 1 2 3 4 5 6; do
	start_seat_session deck || fail "deck cannot log in while vramd runs"
	end_seat_session deck
	stop_user deck
done
ok "deck logged in and out six times"
start_seat_session deck
start_game deck 100
deck=$GAME_UNIT
eve=/none
front deck "$GAME_PID"
within "deck plays" true deck_has_it
deck_session=$(seat_session deck)

start_seat_session eve
start_game eve 200
eve=$GAME_UNIT
front eve "$GAME_PID"
eve_session=$(seat_session eve)
within "eve logs in and plays" true eve_has_it
check "what deck has is said to be idle" idle \
	"$(vramctl games --json | python3 -c 'import json, sys
print(next(g["role"] for g in json.load(sys.stdin) if g["appid"] == 100))')"

denied=$(as_unit eve vramctl focus "$(head -n1 "$CGROUP$deck/cgroup.procs")" --persist 2>&1 || true)
echo "    $denied"
must "eve cannot bring deck's game to the front" grep -qE 'permitted|authentication' <<< "$denied"
must "and it changes nothing" eve_has_it

within "loginctl activate, to deck" switch_to_deck deck_has_it
within "and to eve" switch_to_eve eve_has_it
within "and to deck" switch_to_deck deck_has_it
switch_to_eve
wait_until 10 eve_has_it || fail "not eve's"
eve_leaves
within "eve's session ends and deck's is activated" deck_returns deck_has_it
end_game "$eve"
stop_user eve
must "deck still plays when eve is gone" deck_has_it
systemctl stop vramd.service
must "nothing is left behind" no_low_at_all
