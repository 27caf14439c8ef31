#!/bin/bash
# SPDX-License-Identifier: MIT
# scale [GROUPS...]: start-up and one focus change of vramd beside that many control groups: a third each in the
# user's app.slice and session.slice, and in system.slice. The first size is measured a second time at
# the end: the host's load may have changed meanwhile.
set -euo pipefail
# shellcheck source=tests/bench/lab.sh
. /lab/src/tests/bench/lab.sh

sizes=("$@")
[ $# -gt 0 ] || sizes=(100 1000 10000)
slices=("$DECK/app.slice" "$DECK/session.slice" /system.slice)
present=0

# Neither mkdir nor rmdir takes a second for thousands.
resize() {
	local i names=()
	for ((i = present < $1 ? present : $1; i < present || i < $1; i++)); do
		names+=("$CGROUP${slices[i % 3]}/app-bench-$i.scope")
	done
	if [ "$1" -gt "$present" ]; then
		printf '%s\0' "${names[@]}" | xargs -0r mkdir -p
	else
		printf '%s\0' "${names[@]}" | xargs -0r rmdir
	fi
	present=$1
}

since() { systemctl show -P "$1" vramd.service; }

# measure SIZE: sets STARTED (us) and CHANGED (us)
measure() {
	systemctl stop vramd.service
	resize "$1"
	systemctl start vramd.service
	STARTED=$(($(since ActiveEnterTimestampMonotonic) - $(since ExecMainStartTimestampMonotonic)))
	CHANGED=$(reaction --terse --rounds=100)
	figure "scale start-up with $1 groups" "$STARTED" us
	figure "scale focus change with $1 groups" "$CHANGED" us
}

setup_bench
setup_games
mkdir -p "$CGROUP$DECK/session.slice"
for size in "${sizes[@]}"; do
	measure "$size"
	first=${first:-$CHANGED}
done
last=$CHANGED
measure "${sizes[0]}"
base=$(awk -v a="$first" -v b="$CHANGED" 'BEGIN { print (a + b) / 2 }')
mark "scale focus change, $size / ${sizes[0]} groups" "$(awk -v a="$last" -v b="$base" 'BEGIN { printf "%.2f", a / b }')" x 1.2
exit $SHORT
