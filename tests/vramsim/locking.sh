#!/bin/bash
# SPDX-License-Identifier: MIT
# Everything at once, for DURATION seconds (30), on a kernel that watches its own locks (--smp 2 --kernel patched):
# submissions that need twice the VRAM, scanouts, priorities, buffers of all kinds; processes that change groups, limits
# that change, parameters of TTM that change, events that are waited for, a GPU that comes and goes. Nothing may be wrong,
# the kernel must not complain, and must still be watching at the end. Then its own tests, one of which stops it.
# shellcheck disable=SC2317 # functions are called by start
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

KNOBS=/sys/module/ttm/parameters
DURATION=${DURATION:-30}
groups=(a/x a/y b)
loops=()

one_of() { shift $((RANDOM % $#)); echo "$1"; }
# sum KEY FILE... and most KEY FILE...: over all lines that have it
sum() { local key=$1; shift; cat "$@" | sed -n "s/.*\<$key=\([0-9]*\).*/\1/p" | awk '{ n += $1 } END { print n + 0 }'; }
most() { local key=$1; shift; cat "$@" | sed -n "s/.*\<$key=\([0-9]*\).*/\1/p" | sort -n | tail -n1; }
some() { if [ "${2:-0}" -gt 0 ]; then ok "$1 = $2"; else check "$1" "more than none" 0; fi; }
watching() { awk '$1 == "debug_locks:" { print $2 }' /proc/lockdep_stats; }

# start NAME COMMAND...: the command again and again until the time is over, with its output in a file of that name
start() {
	local name=$1
	shift
	: > "$WORK/$name"
	while [ $SECONDS -lt $end ]; do
		"$@" >> "$WORK/$name" 2>&1
	done &
	loops+=($!)
}

# storm GPU WORD...: one process in one of the groups; a GPU that is away is waited for. All back off from locks: what
# doesn't goes on after -EDEADLK when it claims memory for more than one buffer, and that the kernel complains about. None
# looks at contents, since User-Mode Linux takes no mappings away from a process that runs on another CPU.
storm() {
	local node=/dev/dri/by-path/pci-$1-render status=0
	shift
	[ -e "$node" ] || { sleep 0.1; return; }
	(
		echo "$BASHPID" > "$CGROUP/$(one_of "${groups[@]}")/cgroup.procs"
		exec "$BUILD/tests/vramsim/vsim-storm" "$node" "$RANDOM" 16 200 backoff blind "$@"
	) || status=$?
	[ "$status" -le 1 ] || echo "died=$status"
}

knob() {
	case $(one_of backoff throttle throttle levels window priority displace) in
	backoff) one_of 0 20 > "$KNOBS/reclaim_backoff_ms";;
	throttle) one_of 0 50 > "$KNOBS/throttle_hard_ms"; one_of 0 500 > "$KNOBS/throttle_soft_ms";;
	levels) one_of 0 3 > "$KNOBS/throttle_levels";;
	window) one_of 0 1 > "$KNOBS/contig_window";;
	priority) one_of 0 1 > "$KNOBS/evict_priority";;
	displace) one_of 0 1 > "$KNOBS/displace_lower";;
	esac
	echo knobs=1
	sleep 0.05
}

# A process that ends meanwhile cannot be moved; a limit that cannot be met is kept all the same.
group() {
	local pid from
	from=$(one_of "${groups[@]}")
	pid=$(sort -R "$CGROUP/$from/cgroup.procs" | head -n1)
	[ -z "$pid" ] || ! echo "$pid" > "$CGROUP/$(one_of "${groups[@]}")/cgroup.procs" || echo moves=1
	echo "$REGION0 $(one_of 0 2097152 8388608 max)" > "$CGROUP/$(one_of a "${groups[@]}")/dmem.$(one_of low low low min)"
	[ $((RANDOM % 20)) != 0 ] || echo "$REGION0 4194304" > "$CGROUP/$(one_of "${groups[@]}")/dmem.max" || true
	cat "$CGROUP"/{a,b}/dmem.events{,.local} > /dev/null
	echo limits=1
	sleep 0.05
}

# Without a limit, now and then, so that nobody stays outside for ever
release() {
	local name
	for name in a "${groups[@]}"; do
		echo "$REGION0 max" > "$CGROUP/$name/dmem.max"
	done
	sleep 1
}

plug() {
	sleep 1
	echo 1 > "/sys/bus/pci/devices/$GPU1/remove"
	echo unplugs=1
	echo 1 > /sys/bus/pci/rescan
	wait_until 30 test -e "/dev/dri/by-path/pci-$GPU1-render"
}

# Whoever waits for events reads them when they come.
watch_events() {
	exec timeout "$DURATION" python3 - "$CGROUP"/{a,b,a/x}/dmem.events <<-'END'
		import select, sys
		poll = select.poll()
		files = {file.fileno(): file for file in map(open, sys.argv[1:])}
		for fd, file in files.items():
		    file.read()
		    poll.register(fd, select.POLLPRI)
		while True:
		    for fd, _ in poll.poll():
		        files[fd].seek(0)
		        files[fd].read()
		        print("wakes=1", flush=True)
	END
}

[ -e /proc/lockdep_stats ] || skip "needs --smp 2"
lab-load-vramsim devices=2 vram_mb=16,16 bw_mib_per_ms=256
[ -e $KNOBS/contig_window ] || skip "needs --kernel patched"
wait_until 30 test -e "/dev/dri/by-path/pci-$GPU1-render"
echo +dmem > $CGROUP/cgroup.subtree_control
mkdir $CGROUP/a $CGROUP/b
echo +dmem > $CGROUP/a/cgroup.subtree_control
mkdir $CGROUP/a/x $CGROUP/a/y
check "watching its locks" 1 "$(watching)"

end=$((SECONDS + DURATION))
for i in 1 2; do
	start "storm-any-$i" storm $GPU0
	start "storm-bound-$i" storm $GPU0 bound
done
start storm-plugged storm $GPU1
start knobs knob
start limits group
start releases release
start plugs plug
watch_events > "$WORK/events" 2>&1 &
watcher=$!
wait "${loops[@]}" $watcher || true

check "wrong" 0 "$(sum failed "$WORK"/storm-*)"
check "killed" 0 "$(sum died "$WORK"/storm-*)"
wait_until 30 test -e "/dev/dri/by-path/pci-$GPU1-render" || check "a GPU that came back" yes no
[ $failed = 0 ] || grep -h -e FAIL -e died "$WORK"/storm-* | head -n 20
stats=$("$VSIM" stats --device $GPU0)
counts=$(grep -h "^$REGION0 " $CGROUP/{a,b}/dmem.events)
echo "    $stats"
printf '    %s\n' "${counts//$'\n'/$'\n    '}"
echo "    submits=$(sum submits "$WORK"/storm-*) refused=$(sum refused "$WORK"/storm-*)" \
	"retries, at most=$(most retries "$WORK"/storm-*) wait_ms, at most=$(most wait_ms "$WORK"/storm-*)"
for key in knobs moves limits unplugs wakes; do
	some $key "$(sum $key "$WORK"/{knobs,limits,plugs,events})"
done
for key in evictions backoffs; do
	some $key "$(field "$stats" $key)"
done
for key in foreign_evictions throttled_hard throttled_soft; do
	some $key "$(echo "$counts" | sum $key -)"
done
check "still watching" 1 "$(watching)"
wait_until 30 vram_empty $GPU0 || check "VRAM in use" 0 "$(vram_used $GPU0)"
rmmod vramsim
check_dmesg
"$SRC/kernel/kunit.sh" || failed=1
exit $failed
