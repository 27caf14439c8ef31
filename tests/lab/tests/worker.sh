#!/bin/bash
# SPDX-License-Identifier: MIT
# A session whose image lacks the user's unit of vramd-agent: vramd has systemd start the same program, as the user and
# with no more rights than his; and it ends when it should, however that comes about.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh
# shellcheck source=tests/lab/tests/gamescope.sh
. /lab/src/tests/lab/tests/gamescope.sh

WORKER=vramd-agent@1000.service

# shellcheck disable=SC2317 # these are called by name
{
	worker_pid() { systemctl show -P MainPID "$WORKER"; }
	runs() { systemctl --quiet is-active "$WORKER"; }
	ended() { ! systemctl --quiet is-active "$WORKER" && [ "$(worker_pid)" = 0 ]; }
	is_another() { runs && [ "$(worker_pid)" != "$1" ]; }
	no_process() { [ ! -e "/proc/$1" ]; }
	said() { [ "$(property FocusSource)" = '"gamescope"' ] && ! unprotected "$GAME_UNIT"; }
}
status_of() { sed -n "s/^$1:\t//p" "/proc/$(worker_pid)/status"; }

# start_unit UNIT, by vramd's user
start_unit() {
	setpriv --reuid=vramd --regid=vramd --clear-groups busctl --quiet call org.freedesktop.systemd1 \
		/org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StartUnit ss "$1" replace
}

printf '[policy]\nGrace=2s\n' > "$WORK/vramd.conf"
install -D -m644 "$WORK/vramd.conf" /etc/vramd/vramd.conf
install_worker
setup_vramd
start_seat_session deck
start_steam
start_game deck $APPID

echo "--- nobody says who is in front"
must "a worker runs" wait_until 30 runs
start_gamescope
show $APPID $APPID
must "it sees gamescope, and the game is protected" wait_until 15 said
check "it is the user's" $'1000\t1000\t1000\t1000' "$(status_of Uid)"
check "and his group's" $'1000\t1000\t1000\t1000' "$(status_of Gid)"
check "it has no capability" 0000000000000000 "$(status_of CapPrm)"
check "and gets none" 1 "$(status_of NoNewPrivs)"
must "its descriptors are few" test "$(find "/proc/$(worker_pid)/fd" -type l | wc -l)" -lt 20

echo "--- it dies"
pid=$(worker_pid)
kill -KILL "$pid"
start_scope deck app-steam-app77-7 sleep 60 # news within Grace=, while the dead one's word still counts
sleep 1
check "vramd does not stop it for that" activating "$(systemctl show -P ActiveState "$WORKER")"
must "systemd starts another one" wait_until 30 is_another "$pid"
must "which says the same" wait_until 15 said
kill -TERM "$(worker_pid)"
must "it ends without an error" wait_until 15 ended
must "there is another one" wait_until 30 runs
must "which says the same" wait_until 15 said

echo "--- the user's own agent comes and goes"
install_agent
as deck systemctl --user daemon-reload
as deck systemctl --user start vramd-agent.service
must "the worker ends" wait_until 15 ended
must "the agent has said who is in front" wait_until 15 said
as deck systemctl --user stop vramd-agent.service
must "without it, there is a worker again" wait_until 30 runs
must "which says the same" wait_until 15 said

echo "--- somebody else speaks for the user"
as deck vramctl focus "$GAME_PID" --persist
sleep 1
must "a person's word about one game ends no worker" runs
as deck vramctl focus --clear
as deck systemd-run --user --quiet --collect --unit=by-hand "$BUILD/client/agent/vramd-agent"
must "an agent that is not a service does" wait_until 15 ended
as deck systemctl --user stop by-hand.service
must "without it, there is a worker again" wait_until 30 runs

echo "--- vramd ends"
pid=$(worker_pid)
kill -KILL "$(vramd_pid)"
must "killed: so does the worker" wait_until 15 no_process "$pid"
must "with the next vramd, there is one" wait_until 30 is_another "$pid"
must "which says the same" wait_until 15 said
pid=$(worker_pid)
systemctl restart vramd.service
must "restarted: so does the worker" wait_until 15 no_process "$pid"
must "with the next vramd, there is one" wait_until 30 is_another "$pid"
systemctl stop vramd.service
must "stopped: so does the worker" wait_until 15 ended
systemctl start vramd.service
must "started: there is one" wait_until 30 runs

echo "--- the switch"
printf '[focus]\nWorker=no\n' >> /etc/vramd/vramd.conf
vramctl reload
must "Worker=no: it ends" wait_until 15 ended
sleep 7
must "and stays away" ended
install -m644 "$WORK/vramd.conf" /etc/vramd/vramd.conf
vramctl reload
must "Worker=yes: it comes" wait_until 30 runs

echo "--- what vramd may not do"
for unit in systemd-hostnamed.service vramd-agent@0.service vramd-agent@100.service 'vramd-agent@1000.service.service'; do
	if start_unit "$unit" 2> "$WORK/refused"; then
		fail "vramd may start '$unit'"
	fi
	must "'$unit' is refused" grep -qi 'access denied\|authentication required' "$WORK/refused"
done
must "a further start is none" start_unit "$WORKER"

echo "--- the session ends"
end_seat_session deck
must "and with it the worker" wait_until 30 ended
check "it was stopped, and has not failed" inactive "$(systemctl show -P ActiveState "$WORKER")"
