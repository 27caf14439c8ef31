# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For tests inside the guest:  . /lab/src/tests/lab/lib.sh

SRC=/lab/src
BUILD=/lab/build
CGROUP=/sys/fs/cgroup

ok() { echo "ok: $*"; }
fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "skip: $*" >&2; exit 77; }

# wait_until SECONDS COMMAND...: polls; returns 1 (and says so) when the time is over
wait_until() {
	local end=$(( ${EPOCHREALTIME/./} + $1 * 1000000 )) limit=$1
	shift
	until "$@"; do
		if [ "${EPOCHREALTIME/./}" -ge "$end" ]; then
			echo "no success within $limit s: $*" >&2
			return 1
		fi
		sleep 0.02
	done
}

# --- users

# start_user USER: his user manager, as at a login, but without a session
start_user() {
	loginctl enable-linger "$1"
	wait_until 15 user_ready "$1"
}

stop_user() {
	loginctl disable-linger "$1"
	loginctl terminate-user "$1" 2> /dev/null || true
	wait_until 15 user_gone "$1"
}

user_ready() {
	[ -S "/run/user/$(id -u "$1")/bus" ] &&
		as "$1" systemctl --user --quiet is-active basic.target
}

user_gone() { ! systemctl --quiet is-active "user@$(id -u "$1").service"; }

# as USER COMMAND...: as that user with his bus; the process stays in the test's own cgroup, and polkit
# finds no session for it
as() {
	local user=$1 uid
	shift
	uid=$(id -u "$user")
	# Not runuser: its PAM session would be one more thing that ends at a bad moment.
	setpriv --reuid="$uid" --regid="$(id -g "$user")" --init-groups -- env "HOME=/home/$user" \
		"USER=$user" "XDG_RUNTIME_DIR=/run/user/$uid" \
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$uid/bus" "$@"
}

# as_unit USER COMMAND...: like as, but as a transient service of his user manager; polkit then takes
# the user's seat session for it, when he has one
as_unit() {
	local user=$1
	shift
	as "$user" systemd-run --user --quiet --collect --wait --pipe -- "$@"
}

# start_scope USER UNIT COMMAND...: in the background in app.slice/UNIT.scope, as Steam starts a game;
# sets SCOPE_PID and SCOPE_CGROUP (a path below $CGROUP)
start_scope() {
	local user=$1 unit=$2 uid
	shift 2
	uid=$(id -u "$user")
	as "$user" systemd-run --user --quiet --scope --collect --slice=app.slice --unit="$unit" \
		-- "$@" &
	disown # or bash reports its end
	SCOPE_CGROUP=/user.slice/user-$uid.slice/user@$uid.service/app.slice/$unit.scope
	wait_until 10 grep -qs . "$CGROUP$SCOPE_CGROUP/cgroup.procs"
	# shellcheck disable=SC2034 # for the test
	read -r SCOPE_PID < "$CGROUP$SCOPE_CGROUP/cgroup.procs"
}

# start_seat_session USER: an active local session on seat0 without a terminal
start_seat_session() {
	systemd-run --quiet --collect --unit="seat-session-$1" -p User="$1" -p PAMName=login \
		--setenv=XDG_SEAT=seat0 --setenv=XDG_SESSION_TYPE=wayland \
		--setenv=XDG_SESSION_CLASS=user sleep infinity
	wait_until 15 seat_session "$1" > /dev/null
	wait_until 15 user_ready "$1"
}

# end_seat_session USER; an older session on the seat stays inactive until loginctl activate
end_seat_session() {
	systemctl stop "seat-session-$1.service"
	wait_until 15 no_seat_session "$1"
}

# seat_session USER: prints the id of the user's session on seat0; 1 without one
seat_session() {
	loginctl --no-legend list-sessions | awk -v user="$1" \
		'$3 == user && $4 == "seat0" { print $1; found = 1 } END { exit !found }'
}

no_seat_session() { ! seat_session "$1" > /dev/null; }

# --- cgroups

# tree_state: the state that vramd may change, as sorted text to compare. A group's dmem.{min,
# low,max} give "PATH OWNER:GROUP MODE" and "PATH:LINE" for each line, cgroup.subtree_control the latter.
tree_state() {
	(
		cd "$CGROUP" || exit
		# A group may go while we walk: it then has no state.
		{
			find . \( -name 'dmem.m[ai][nx]' -o -name dmem.low \) -printf '%P %U:%G %m\n'
			find . \( -name 'dmem.m[ai][nx]' -o -name dmem.low -o -name cgroup.subtree_control \) \
				-printf '%P\0' | xargs -0r grep -sH ''
		} 2> /dev/null | LC_ALL=C sort
	)
}

# --- the lines that programs of the tests print: KEY=VALUE ...

has_lines() { [ "$(wc -l < "$1")" -ge "$2" ]; } # FILE N

# field LINE KEY
field() {
	local word
	for word in $1; do
		[ "${word%%=*}" != "$2" ] || { echo "${word#*=}"; return; }
	done
	fail "no $2 in '$1'"
}

# --- the daemon

# install_vramd: puts the built daemon and its files where a package would (without starting it)
install_vramd() {
	local daemon unit=$BUILD/systemd/vramd.service
	[ -x $BUILD/daemon/vramd ] || skip "no vramd in the build directory"
	# The prefix of the build decides where the unit looks for it.
	daemon=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' $unit)
	install -D -m755 $BUILD/daemon/vramd "$daemon"
	install -D -m755 $BUILD/client/vramctl /usr/bin/vramctl
	install -D -m644 -t /etc/systemd/system $unit
	install -D -m644 -t /etc/dbus-1/system.d $SRC/dbus/io.github.vramd1.conf
	install -D -m644 -t /usr/share/polkit-1/actions $SRC/dbus/io.github.vramd1.policy
	install -D -m644 -t /usr/share/polkit-1/rules.d $SRC/dbus/io.github.vramd1.rules
	install -D -m644 -t /usr/share/dbus-1/system-services $SRC/dbus/io.github.vramd1.service
	install -D -m644 $SRC/systemd/vramd.sysusers /usr/lib/sysusers.d/vramd.conf
	systemd-sysusers vramd.conf
	systemctl daemon-reload
	busctl --quiet call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig
}

# install_agent: the same for vramd-agent and the library that it uses, for the service managers of users to come
install_agent() {
	install_agent_program
	install -D -m644 -t /etc/systemd/user $BUILD/systemd/vramd-agent.service
}

# install_worker: the same where users have no such unit, and vramd starts it itself
install_worker() {
	install_agent_program
	install -D -m644 -t /etc/systemd/system $BUILD/systemd/vramd-agent@.service
	systemctl daemon-reload
}

install_agent_program() {
	local agent
	[ -x $BUILD/client/agent/vramd-agent ] || skip "no vramd-agent in the build directory"
	agent=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' $BUILD/systemd/vramd-agent.service)
	install -D -m755 $BUILD/client/agent/vramd-agent "$agent"
	install -D -m644 $BUILD/client/lib/libvramd.so.0 /usr/lib/libvramd.so.0
	ldconfig
}
