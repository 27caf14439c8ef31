#!/bin/bash
set -uo pipefail
. /lab/src/tests/lab/lib.sh
install_vramd
lab-load-vramsim vram_mb=256,128
start_seat_session deck
systemctl enable vramd.service
mkdir -p /etc/systemd/system/vramd.service.d
printf '[Service]\nEnvironment=VRAMD_LOG_LEVEL=debug\n' > /etc/systemd/system/vramd.service.d/l.conf; systemctl daemon-reload
time systemctl start vramd.service
systemctl status vramd.service --no-pager -l
start_scope deck app-steam-app1091500-4242 $BUILD/tests/vramsim/vsim hold --device 0000:03:00.0 --size 2M --count 50
as deck vramctl focus $SCOPE_PID --menu closed --persist
sleep 0.5
vramctl status; vramctl games; vramctl doctor
vramctl dump
tree_state | grep -v ':.* 0$' | grep -v 'max$' 
systemctl stop vramd.service
systemctl status vramd.service --no-pager -l
journalctl -u vramd --no-pager -o short-monotonic
