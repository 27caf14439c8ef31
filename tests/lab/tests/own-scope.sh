#!/bin/bash
# SPDX-License-Identifier: MIT
# A game that a Steam on a desktop starts in its own unit gets a scope of its own before it opens the GPU; what it
# allocated before stays where it was, and OwnScope=never leaves all of it there.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

STEAM=$DECK/app.slice/app-steam-1.scope
REAPER=/home/deck/.local/share/Steam/ubuntu12_32/reaper

# shellcheck disable=SC2317 # called by name
{
in_scope() { SCOPE=$(scope_of "$1") && [ -n "$SCOPE" ]; }
agent_says() { journalctl --no-pager -o cat _COMM=vramd-agent | grep -q "$1"; }
ready() { as deck systemctl --user --quiet is-active vramd-agent.service; }
}
# scope_of APPID: the game's control group, if it has one
scope_of() { cd "$CGROUP" && find ".$DECK/app.slice" -maxdepth 1 -name "app-steam-app$1-*.scope" -printf '/%P\n' | sed "s|^|$DECK/app.slice|"; }
# mib GROUP: what is charged there, 0 if it is not there
mib() { value "$1" dmem.current $REGION0; echo $((${VALUE:-0} / MIB)); }

# launch APPID DELAY: Steam starts a game that opens the GPU after so many seconds
launch() {
	: > "$WORK/$1"
	chmod 666 "$WORK/$1"
	echo "$1 $2" > "$WORK/steam.orders"
}
agent_pid() { as deck systemctl --user show -P MainPID vramd-agent.service; }
agent_switches() { awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$(agent_pid)/status"; }

setup_vramd
install_agent
install -d -o deck -g deck /home/deck/.local/share/Steam/ubuntu12_32
cat > $REAPER <<'EOF'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
"$@" &
wait
EOF
chmod 755 $REAPER
mkfifo -m 666 "$WORK/steam.orders"
start_seat_session deck
start_scope deck app-steam-1 bash -c "exec 3<> $WORK/steam.orders; while read -r id delay <&3; do
	$REAPER SteamLaunch AppId=\$id -- sh -c \"sleep \$delay; exec $VSIM hold --device $GPU0 --size 2M --count 16\" > $WORK/\$id 2>&1 3>&- &
done"
as deck systemctl --user set-environment VRAMD_LOG_LEVEL=debug
as deck systemctl --user start vramd-agent.service
wait_until 10 ready || fail "no agent"
wait_until 10 test -e "$CGROUP$STEAM/dmem.current" || fail "no dmem"

echo "--- a game that takes as long as a quick one does"
launch 100 0.5
wait_until 10 in_scope 100 || fail "no scope of its own"
ok "it has ${SCOPE##*/}"
line 100 1
check "MiB charged to it" 32 "$(mib "$SCOPE")"
check "MiB charged to Steam's unit" 0 "$(mib $STEAM)"
must "vramd has it as a game" grep -q app-steam-app100 <(vramctl games)
must "and the agent says so" agent_says 'before it opened the GPU'
check "processes of the game left in Steam's unit" '' "$(grep -Fxf "$CGROUP$SCOPE/cgroup.procs" $CGROUP$STEAM/cgroup.procs || true)"
end_game "$SCOPE"

echo "--- nothing happens: nobody wakes up"
sleep 3 # the looks that followed the start
before=$(agent_switches)
sleep 5
check "context switches of the agent in 5 s" "$before" "$(agent_switches)"

echo "--- a game that opens the GPU at once"
launch 200 0
line 200 1 > /dev/null
wait_until 10 in_scope 200 || fail "no scope of its own"
echo "figures: of 32 MiB that it allocated at once, $(mib $STEAM) MiB stay charged to Steam's unit, $(mib "$SCOPE") to its own"
check "all of it is charged to one of them" 32 $(($(mib $STEAM) + $(mib "$SCOPE")))
end_game "$SCOPE"

echo "--- one that is moved late"
kill -STOP "$(agent_pid)"
launch 250 0
line 250 1 > /dev/null
kill -CONT "$(agent_pid)"
wait_until 10 in_scope 250 || fail "no scope of its own"
check "MiB charged to Steam's unit" 32 "$(mib $STEAM)"
must "as the agent says" wait_until 5 agent_says '1 of them had opened the GPU, and the 32 MiB that they had of it stay charged'
end_game "$SCOPE"

echo "--- OwnScope=never"
printf '[policy]\nOwnScope=never\n' > /etc/vramd/vramd.conf
vramctl reload
launch 300 0.5
line 300 1 > /dev/null
sleep 2
check "a scope of its own" '' "$(scope_of 300)"
check "all is charged to Steam's unit" 32 "$(mib $STEAM)"

echo "--- vramd was stopped"
rm /etc/vramd/vramd.conf
systemctl stop vramd.service
launch 400 0.5
line 400 1 > /dev/null
sleep 2
check "nobody starts it again" inactive "$(systemctl is-active vramd.service || true)"
check "a scope of its own" '' "$(scope_of 400)"
