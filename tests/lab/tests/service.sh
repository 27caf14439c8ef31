#!/bin/bash
# SPDX-License-Identifier: MIT
# vramd as an installed service: its sandbox, activation by the bus, polkit, the verbs of vramctl, and
# what systemd does with it.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

# shellcheck disable=SC2317 # called by name
{
is_right() { protected "$GAME_UNIT"; }
active() { systemctl --quiet is-active vramd.service; }
restarted() { active && [ "$(vramd_pid)" != "$pid" ]; }
logged() { vramd_log | grep -q "$1"; }
held() { [ "$(busctl call io.github.vramd1 /io/github/vramd1 io.github.vramd1.Manager ListHolds | cut -d' ' -f2)" = 1 ]; }
no_journal() { [ ! -e /run/vramd/journal ]; }
}
status_of() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(vramd_pid)/status"; }
exit_of() {
	local status=0
	"$@" > "$WORK/out" 2>&1 || status=$?
	echo $status
}

setup_vramd
systemctl stop vramd.service
start_seat_session deck

echo "--- activation"
must "a call starts it" test "$(as deck busctl call io.github.vramd1 /io/github/vramd1 \
	io.github.vramd1.Manager ListHolds)" = 'a(ssuua{sv}) 0'
must "as a service" active
check "State" '"idle"' "$(property State)"

echo "--- sandbox"
check "user" vramd "$(ps -o user= -p "$(vramd_pid)")"
# DAC_OVERRIDE, CHOWN, FOWNER, SYS_PTRACE
check "capabilities" 000000000008000b "$(status_of CapEff)"
check "and no others to get" 000000000008000b "$(status_of CapBnd)"
check "no new privileges" 1 "$(status_of NoNewPrivs)"
check "system calls are filtered" 2 "$(status_of Seccomp)"
check "exposure of at most 2.0" 0 "$(exit_of systemd-analyze security --threshold=20 vramd.service)"
check "threads" 1 "$(status_of Threads)"
echo "    memory of its own: $(status_of RssAnon)"

echo "--- a game"
start_game deck 100
front deck "$GAME_PID"
must "protected" wait_until 10 is_right
# Its scope began with systemd-run, as one of Steam's begins with a launcher.
named() { vramctl games --json | grep -q "\"name\": \"$1\""; }
must "it has the name of what it became" wait_until 3 named sleep
for verb in status games doctor dump 'status --json' 'games --json' 'doctor --json'; do
	# shellcheck disable=SC2086 # words
	check "deck: vramctl $verb" 0 "$(exit_of as deck vramctl $verb)"
done
must "doctor finds no problem" grep -q '"problems": *0\|Problems: 0' <(vramctl doctor; true)
as deck vramctl doctor | sed 's/^/    /'

echo "--- vramctl run"
as deck vramctl run --scope-name=app-mine-1.scope -- bash -c 'cat /proc/self/cgroup; sleep 4; exit 7' > "$WORK/run" 2>&1 &
run=$!
mine=$DECK/app.slice/app-mine-1.scope
wait_until 10 held
check "vramctl games knows it" app-mine-1.scope "$(vramctl games --json | grep -o 'app-mine-1.scope' | head -n1)"
check "a hold" 1 "$(busctl call io.github.vramd1 /io/github/vramd1 io.github.vramd1.Manager ListHolds | cut -d' ' -f2)"
must "by what it became" wait_until 3 named bash
status=0
wait $run || status=$?
check "its exit status" 7 $status
check "it ran in its own unit" "0::$mine" "$(head -n1 "$WORK/run")"
must "the hold is gone" wait_until 5 test "$(busctl call io.github.vramd1 /io/github/vramd1 \
	io.github.vramd1.Manager ListHolds)" = 'a(ssuua{sv}) 0'

echo "--- polkit"
start_user eve
check "eve may not speak for deck" 1 "$(exit_of as_unit eve vramctl focus "$GAME_PID" --persist)"
must "and is told so" grep -q 'not permitted' "$WORK/out"
sed 's/^/    /' "$WORK/out"
must "polkit was asked" test -z "$(grep 'cannot be asked' "$WORK/out")"
check "nor reload" 1 "$(exit_of as_unit eve vramctl reload)"
cat > /etc/polkit-1/rules.d/10-test.rules <<-'END'
	polkit.addRule(function(action, subject) {
		if (action.id.indexOf("io.github.vramd1.") == 0 && subject.user == "eve")
			return polkit.Result.YES;
	});
END
eve_may() { [ "$(exit_of as_unit eve vramctl reload)" = 0 ]; }
must "with a rule she may reload" wait_until 10 eve_may
check "and speak for deck" 0 "$(exit_of as_unit eve vramctl focus "$GAME_PID" --persist)"
must "which changes nothing here" is_right
check "pkcheck agrees" 0 "$(exit_of pkcheck --action-id io.github.vramd1.hold \
	--process "$(systemctl show -P MainPID user@1001.service)")"

echo "--- systemd"
pid=$(vramd_pid)
printf '[policy]\nGameLow=100M\nNonsense=1\n' > /etc/vramd/vramd.conf
systemctl reload vramd.service
low() { value "$GAME_UNIT" dmem.low $REGION0; [ "$VALUE" = "$1" ]; }
must "reload: the new limit" wait_until 5 low $((100 * MIB))
must "a bad line is told" logged 'Nonsense'
rm /etc/vramd/vramd.conf
vramctl reload
must "vramctl reload: the old one" wait_until 5 is_right
check "by the same vramd" "$pid" "$(vramd_pid)"
kill -KILL "$pid"
must "killed: systemd starts it again" wait_until 10 restarted
must "and the game, known by its unit, is protected" wait_until 10 is_right
pid=$(vramd_pid)
systemctl restart vramd.service
must "restarted" restarted
must "protected" wait_until 10 is_right
systemctl stop vramd.service
check "it ended well" success "$(systemctl show -P Result vramd.service)"
must "nothing is left behind" no_low_at_all
must "and no journal" no_journal
! vramd_log | grep -E 'denied|EPERM|not permitted$|Cannot|Failed' || fail "vramd complained"
ok "vramd never complained"
