# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by those who run the kernel's own tests of TTM and drm_exec.

# ktap FILE: of a kernel's log without time stamps, how many tests passed, failed and were skipped, and how often the
# kernel warned
ktap() {
	local passed failed skipped warnings known
	passed=$(grep -cE '^ {4,}ok [0-9]+ ' "$1") || true
	failed=$(grep -cE '^ *not ok [0-9]+ ' "$1") || true
	skipped=$(grep -cE '^ {4,}ok [0-9]+ .*# SKIP' "$1") || true
	# Three tests do what the kernel warns about, the last one only where it watches its locks, which ends that. A test
	# that does not end is a panic, too.
	warnings=$(grep -E 'WARNING: |BUG: |INFO: |Kernel panic' "$1" |
		grep -cvE ' at (ttm_bo_reserve_no_wait_ticket|ttm_device_init)\+') || true
	known=$(grep -A 4 'WARNING: possible recursive locking detected' "$1" |
		grep -c ', at: ttm_bo_reserve_deadlock+') || true
	echo "$passed $failed $skipped $((warnings - known))"
}
