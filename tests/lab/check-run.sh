#!/bin/bash
# SPDX-License-Identifier: MIT
# Checks on the host that tests/lab/run tells the truth: about every way a test can end, and that it
# leaves nothing behind. Arguments go to run, for example --guest trixie.
set -euo pipefail
run=$(cd "$(dirname "$0")" && pwd)/run
dir=$(mktemp -d "${TMPDIR:-/tmp}/vramd-check-run.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export TMPDIR=$dir/tmp
mkdir "$TMPDIR" "$dir/build"
bad=0

# script NAME: makes the test NAME from standard input
script() {
	{ echo '#!/bin/bash'; cat; } > "$dir/build/$1"
	chmod +x "$dir/build/$1"
}

# expect STATUS TEXT RUN-ARGUMENT...
expect() {
	local status=0 want=$1 text=$2
	shift 2
	"$run" "${options[@]}" --build "$dir/build" "$@" > "$dir/output" 2>&1 || status=$?
	if [ "$status" -eq "$want" ] && grep -q -- "$text" "$dir/output"; then
		echo "ok: $* -> $status, '$text'"
	else
		echo "FAIL: $*: status $status (want $want), output (want '$text'):"
		sed 's/^/    /' "$dir/output"
		bad=1
	fi
}
options=("$@")

# shellcheck disable=SC2016 # for the guest's shell
script passes <<< 'echo "argument <$1> variable <$V>"'
script exits3 <<< 'echo before the end; exit 3'
script skips <<< 'exit 77'
script crashes <<< 'kill -SEGV $$'
script hangs <<< 'echo partial; sleep 1000'
script stubborn <<< 'trap "" TERM INT; (trap "" TERM; sleep 1000) & while :; do sleep 1; done'
script reboots <<< 'reboot -ff; sleep 100'
script kills-init <<< 'kill -SEGV 1; sleep 100'
cp /bin/true "$dir/build/binary"

expect 0 'argument <a  b.*> variable <x y>' --env 'V=x y' passes -- "a  b'\"\$c"
expect 0 'PASS binary (' binary
expect 3 'FAIL exits3 (.*, exit status 3, logs in ' exits3
expect 77 'SKIP skips (' skips
expect 139 'FAIL crashes (.*, killed by SIGSEGV' crashes
expect 124 'FAIL hangs (.*, stopped after 3 s' --timeout 3 hangs
expect 124 'partial' --timeout 3 hangs
expect 124 'FAIL stubborn (.*, stopped after 3 s' --timeout 3 stubborn
expect 125 'FAIL reboots (.*, the guest died' reboots
# A crashed systemd stands still for ever: only the host's limit is left.
expect 124 'FAIL kills-init (.*, the guest hung' --timeout 1 kills-init
expect 77 'SKIP skips' passes skips
expect 3 'PASS passes' exits3 skips passes
expect 125 'there is no test' no-such-test
expect 125 'neither in the source tree' /bin/true

[ -s "$dir/build/lab-logs/exits3/journal" ] || { echo "FAIL: no journal kept"; bad=1; }
"$run" "${options[@]}" --build "$dir/build" --keep "$dir/kept" passes > /dev/null
[ -s "$dir/kept/passes/dmesg" ] || { echo "FAIL: --keep kept no dmesg"; bad=1; }

# The processes that have a file of a running guest open (User-Mode Linux rewrites its command line).
guests() { find /proc/[0-9]*/fd -lname "$TMPDIR/*" 2> /dev/null || true; }

# Ends run in the middle and looks for what is left; INT cannot be sent to a background job of a script.
interrupted() {
	local job
	"$run" "${options[@]}" --build "$dir/build" hangs > /dev/null 2>&1 &
	job=$!
	for _ in {1..300}; do
		! grep -qs partial "$TMPDIR"/vramd-lab.*/log || break
		sleep 0.1
	done
	kill "-$1" $job
	wait $job 2> /dev/null || true
	for _ in {1..80}; do
		[ -n "$(guests)" ] || break
		sleep 0.1
	done
	if [ -n "$(guests)" ]; then
		echo "FAIL: SIG$1: guest processes left: $(guests)"
		bad=1
	elif [ "$1" != KILL ] && [ -n "$(ls -A "$TMPDIR")" ]; then
		echo "FAIL: SIG$1: left in TMPDIR: $(ls -A "$TMPDIR")"
		bad=1
	else
		echo "ok: SIG$1 ends the guest"
	fi
	rm -rf "${TMPDIR:?}"/*
}
interrupted TERM
interrupted KILL

[ -z "$(ls -A "$TMPDIR")" ] || { echo "FAIL: left in TMPDIR: $(ls -A "$TMPDIR")"; bad=1; }
exit $bad
