#!/bin/bash
# SPDX-License-Identifier: MIT
# GNOME: mutter marks the unit whose window has the focus, and nobody in the session has to tell. Here setfattr is mutter.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

# mark CGROUP: it has the focus; unmark CGROUP: no longer
mark() { as deck setfattr -n user.xdg.inactive-since -v -1 "$CGROUP$1"; }
unmark() { as deck setfattr -n user.xdg.inactive-since -v 123456789 "$CGROUP$1"; }
# shellcheck disable=SC2317 # called by name
{
source_is() { [ "$(property FocusSource)" = "\"$1\"" ]; }
nobody() { [ "$(property ForegroundGame)" = '"/"' ]; }
first_in_front() { protected "$first"; }
second_in_front() { protected "$second"; }
first_protected_less() { value "$first" dmem.low $REGION0; [ "${VALUE:-0}" -lt $((240 * MIB)) ]; }
}

setup_vramd
start_seat_session deck
start_game deck 100
first=$GAME_UNIT
start_game deck 200
second=$GAME_UNIT
start_scope deck app-gnome-browser-1 sleep infinity
browser=$SCOPE_CGROUP
must "of two games, units do not say which is in front" wait_until 5 nobody

mark "$first"
must "the marked one is in front" wait_until 5 first_in_front
must "says gnome" source_is gnome
unmark "$first"
mark "$second"
must "the focus changes" wait_until 5 second_in_front
must "the first one is behind" wait_until 5 first_protected_less
mark "$first"
must "two marks say nobody" wait_until 5 nobody
unmark "$second"
must "until one is gone" wait_until 5 first_in_front
unmark "$first"
mark "$browser"
must "a browser is no game" wait_until 5 nobody
must "and gnome still says it" source_is gnome
unmark "$browser"
mark "$second"
must "the second one again" wait_until 5 second_in_front
systemctl restart vramd.service
must "a mark of before is found at the start" wait_until 10 second_in_front
front deck "$(head -n1 "$CGROUP$first/cgroup.procs")"
must "who knows better is believed" wait_until 5 first_in_front
as deck vramctl focus --clear
must "for as long as he says so" wait_until 15 second_in_front
end_game "$second"
must "a unit that ends has no focus" wait_until 10 nobody
