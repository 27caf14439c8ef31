# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2317 # used by those who source this file
# Sourced by the vramsim tests, which run as root in the lab's guest.

# shellcheck source=tests/lab/lib.sh
. /lab/src/tests/lab/lib.sh

VSIM=$BUILD/tests/vramsim/vsim
GPU0=0000:03:00.0 GPU1=0000:0c:00.0
REGION0=drm/$GPU0/vram0
WORK=$(mktemp -d)
failed=0
declare -A pid

# check TEXT WANT GOT: compares, reports, and goes on
check() {
	if [ "$2" = "$3" ]; then
		echo "ok: $1 = $3"
	else
		echo "FAIL: $1 = $3, want $2"
		failed=1
	fi
}

# line NAME N: waits for the Nth line of a holder and prints it
line() {
	wait_until 30 has_lines "$WORK/$1" "$2" || fail "$1 printed no line $2: $(cat "$WORK/$1.err")"
	sed -n "$2p" "$WORK/$1"
}

# holder NAME CGROUP OPTION...: starts "vsim hold" in the group; its process is ${pid[NAME]}
holder() {
	local name=$1 group=$2
	shift 2
	: > "$WORK/$name"
	(
		echo "$BASHPID" > "$CGROUP/$group/cgroup.procs"
		exec "$VSIM" hold "$@" > "$WORK/$name" 2> "$WORK/$name.err"
	) &
	pid[$name]=$!
}

end() {
	kill "$1" 2> /dev/null || true
	wait "$1" 2> /dev/null || true
}

vram_used() { field "$("$VSIM" stats --device "$1")" vram_used; }
# Buffers are freed after the last close, by a work item.
vram_empty() { [ "$(vram_used "$1")" = 0 ]; }

region_count() { grep -c "^$1 " $CGROUP/dmem.capacity || true; }

# current GROUP: MiB of the first GPU that are charged to the group
current() {
	awk -v region="$REGION0" '$1 == region { print $2 / 1048576 }' "$CGROUP/$1/dmem.current"
}

# Whatever the kernel says about itself counts against the test.
check_dmesg() {
	local found
	found=$(dmesg | grep -E 'WARNING|BUG|Oops|Call Trace|refcount|DEBUG_LOCKS|lockdep|leak' |
		grep -v 'RCU lockdep checking is enabled' || true)
	[ -z "$found" ] || echo "$found"
	check "kernel complaints" "" "${found:0:60}"
}

finish() {
	local job
	for job in $(jobs -p); do
		end "$job"
	done
	rm -rf "$WORK"
}
trap finish EXIT
