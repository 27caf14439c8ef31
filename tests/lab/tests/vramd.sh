# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2317 # used by those who source this file
# Sourced by the tests of the daemon: what tests/lab/lib.sh has, and vramd as a service beside vramsim.

# shellcheck source=tests/lab/lib.sh
. /lab/src/tests/lab/lib.sh

VSIM=$BUILD/tests/vramsim/vsim
GAME=$SRC/tests/lab/tests/game
GPU0=0000:03:00.0 GPU1=0000:0c:00.0
REGION0=drm/$GPU0/vram0 REGION1=drm/$GPU1/vram0
DECK=/user.slice/user-1000.slice/user@1000.service
EVE=/user.slice/user-1001.slice/user@1001.service
MIB=1048576
GAME_PID='' GAME_UNIT=''
WORK=$(mktemp -d /tmp/test.XXXXXX)
chmod 1777 "$WORK"

# check TEXT WANT GOT
check() {
	[ "$2" = "$3" ] || fail "$1: $3, want $2"
	ok "$1: $3"
}

# must TEXT COMMAND...
must() {
	local text=$1
	shift
	"$@" || fail "$text"
	ok "$text"
}

# --- the daemon

# setup_vramd: two GPUs, vramd installed and started
setup_vramd() {
	lab-load-vramsim vram_mb=256,128
	wait_until 10 test -e /dev/dri/renderD129
	install_vramd
	mkdir -p /etc/vramd /etc/systemd/system/vramd.service.d
	# A test ends it more often than systemd puts up with; and LeakSanitizer traces, which the sandbox forbids
	# (busy.py looks for leaks).
	printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nEnvironment=VRAMD_LOG_LEVEL=debug ASAN_OPTIONS=detect_leaks=0\n' \
		> /etc/systemd/system/vramd.service.d/lab.conf
	systemctl daemon-reload
	systemctl start vramd.service
}

vramd_pid() { systemctl show -P MainPID vramd.service; }
vramd_log() { journalctl --no-pager -o cat _COMM=vramd; }

# property NAME: of the Manager, as busctl prints it without the type
property() {
	busctl get-property io.github.vramd1 /io/github/vramd1 io.github.vramd1.Manager "$1" | cut -d' ' -f2-
}

# --- games

# start_game USER APPID [OPTION...]: a game of that user in a unit as Steam makes it. With options it
# holds buffers ("vsim hold OPTION..."), but opens the GPU only when told by open_gpu, as games take
# seconds to get there. Sets GAME_PID and GAME_UNIT (its control group); its output is $WORK/APPID.
start_game() {
	local user=$1 appid=$2
	shift 2
	: > "$WORK/$appid"
	chmod 666 "$WORK/$appid"
	if [ $# -gt 0 ]; then
		mkfifo -m 666 "$WORK/$appid.gate"
		start_scope "$user" "app-steam-app$appid-1" "$GAME" "$WORK/$appid" "$VSIM" hold "$@"
	else
		start_scope "$user" "app-steam-app$appid-1" sleep infinity
	fi
	GAME_PID=$SCOPE_PID GAME_UNIT=$SCOPE_CGROUP
}

open_gpu() { echo go > "$WORK/$1.gate"; }

# end_game CGROUP: all at once, as one of its programs may just be starting another
end_game() {
	echo 1 > "$CGROUP$1/cgroup.kill"
	wait_until 10 gone "$1"
}
gone() { [ ! -e "$CGROUP$1" ]; }

# front USER PID [OPTION...]: what a compositor of that user would say
front() {
	local user=$1 pid=$2
	shift 2
	as "$user" vramctl focus "$pid" --menu closed --persist "$@"
}

# line APPID N: waits for the Nth line of a game and prints it
line() {
	wait_until 30 has_lines "$WORK/$1" "$2" || fail "game $1 printed no line $2"
	sed -n "$2p" "$WORK/$1"
}

# --- values

# A program costs 20 ms here, and some of what follows is asked for until it holds: so it is done by bash.

# value GROUP FILE REGION: sets VALUE, empty where there is none
value() {
	local region rest
	VALUE=''
	[ -r "$CGROUP$1/$2" ] || return 0
	while read -r region rest; do
		[ "$region" != "$3" ] || { VALUE=$rest; return 0; }
	done < "$CGROUP$1/$2"
} 2> /dev/null

# current GROUP: MiB of the first GPU that are charged to the group
current() { value "$1" dmem.current $REGION0; echo $((VALUE / MIB)); }

# protected GROUP [REGION...]: the group and each one above it have what the only game in front gets,
# when nothing is known of a compositor: all but a 16th
protected() {
	local top=$1 group region want
	shift
	[ $# -gt 0 ] || set -- $REGION0 $REGION1
	for region; do
		value '' dmem.capacity "$region"
		want=$((VALUE - VALUE / 16))
		group=$top
		while [ -n "$group" ]; do
			value "$group" dmem.low "$region"
			[ "$VALUE" = $want ] || return
			group=${group%/*}
		done
	done
}

# unprotected GROUP: nothing is promised to it
unprotected() {
	local region
	for region in $REGION0 $REGION1; do
		value "$1" dmem.low "$region"
		case $VALUE in '' | 0) ;; *) return 1;; esac
	done
}

no_low_at_all() { ! grep -rqs ' [1-9]' "$CGROUP"/user.slice --include=dmem.low; }

# within TEXT PREPARE CONDITION: runs PREPARE (a function), then counts the time until CONDITION holds.
# It must hold within 10 s each time, and within 1 s in one of three tries, since the host may be busy.
within() {
	local text=$1 prepare=$2 condition=$3 try start ms best=''
	for try in 1 2 3; do
		$prepare # with its arguments
		start=${EPOCHREALTIME/./}
		if ! wait_until 10 "$condition"; then
			show_state
			fail "$text: not right within 10 s"
		fi
		ms=$(( (${EPOCHREALTIME/./} - start) / 1000 ))
		[ -n "$best" ] && [ $best -le $ms ] || best=$ms
		[ $best -ge 1000 ] || break
	done
	[ $best -lt 1000 ] || fail "$text: right after $best ms at best, want less than 1000"
	ok "$text: right after $ms ms (try $try)"
}

show_state() {
	{
		grep -rs ' [1-9]' "$CGROUP"/user.slice --include=dmem.low
		timeout 5 vramctl dump | sed '/^Configuration:/,$d'
		vramd_log | tail -n 40
	} >&2 || true
}

finish() {
	local status=$?
	[ $status -eq 0 ] || show_state
	exit $status
}
trap finish EXIT
