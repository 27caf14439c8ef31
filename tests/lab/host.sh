# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Host side helpers, sourced by build, build-in and run: messages, the cache, the mirror.

LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # for those who source this file
SOURCE=$(cd "$LAB/../.." && pwd)
CACHE=${VRAMD_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/vramd}/lab
# Package names and versions are parsed below.
export LC_ALL=C.UTF-8

die() { echo "${0##*/}: $*" >&2; exit 125; }
say() { echo "${0##*/}: $*" >&2; }

need_root() {
	[ "$(id -u)" -eq 0 ] || die "must run as root (debootstrap, hostfs ownership)"
}

# Paths travel through the guest's kernel command line and mount options.
need_plain_path() {
	[[ $1 != *[[:space:],\"]* ]] || die "'$1': the lab cannot use paths with spaces, commas or quotes"
}

# The package mirror of this machine's own apt configuration, for any suite of Debian.
mirror() {
	local uri
	# shellcheck disable=SC2016 # apt expands it
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' \
		"Codename: $(. /etc/os-release; echo "$VERSION_CODENAME")" | head -n1)
	[ -n "$uri" ] || die "apt knows no Debian mirror with component main; run apt-get update"
	echo "$uri"
}

# key WORD... -- FILE...: a short hash of the words and of the files' contents
key() {
	local -a words=()
	while [ "$1" != -- ]; do words+=("$1"); shift; done
	shift
	{ printf '%s\n' "${words[@]}"; [ $# -eq 0 ] || cat -- "$@"; } | sha256sum | cut -c1-12
}

# entry NAME COMMAND...: ensures that the directory NAME is in the cache. When it is not, COMMAND gets
# an empty directory as last argument to fill; only a complete one takes the name. Sets ENTRY.
entry() {
	local name=$1 start=$SECONDS
	shift
	ENTRY=$CACHE/$name
	[ ! -d "$ENTRY" ] || return 0
	mkdir -p "$CACHE"
	# The builder inherits the lock: while any process of it lives, nobody else touches its files.
	exec 9> "$CACHE/.lock-$name"
	flock -n 9 || { say "another build makes $name; waiting"; flock 9; }
	if [ ! -d "$ENTRY" ]; then
		"$SOURCE/tests/install-packages" "$LAB/packages" < /dev/null >&2
		say "building $name (log: $CACHE/$name.log)"
		entry_tmp=$CACHE/.tmp-$name
		rm -rf --one-file-system "$entry_tmp"
		mkdir "$entry_tmp"
		trap entry_abort EXIT
		# In a process group of its own, to be killed as a whole.
		set -m
		"$@" "$entry_tmp" < /dev/null > "$CACHE/$name.log" 2>&1 &
		entry_job=$!
		set +m
		wait $entry_job || {
			tail -n 25 "$CACHE/$name.log" >&2
			die "building $name failed; the whole log is $CACHE/$name.log"
		}
		mv -T "$entry_tmp" "$ENTRY"
		trap - EXIT
		rm -f "$CACHE/$name.log"
		say "built $name in $((SECONDS - start)) s ($(du -sh "$ENTRY" | cut -f1))"
	fi
	exec 9>&-
}

# shellcheck disable=SC2317 # reached by trap
entry_abort() {
	kill -TERM -- "-$entry_job" 2> /dev/null || true
	wait "$entry_job" 2> /dev/null || true
	rm -rf --one-file-system "$entry_tmp"
}
