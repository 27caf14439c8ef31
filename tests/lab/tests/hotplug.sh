#!/bin/bash
# SPDX-License-Identifier: MIT
# A card with a protected region goes and comes back: its records go with it, and it is protected again
# on each ancestor, by the same vramd.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

# shellcheck disable=SC2317 # called by name
{
both_protected() { protected "$GAME_UNIT"; }
first_protected() { protected "$GAME_UNIT" $REGION0; }
no_region1() { value '' dmem.capacity $REGION1; [ -z "$VALUE" ]; }
# By what vramd says: its records of the region, and its object on the bus.
forgotten() { ! vramctl dump | grep -q $REGION1 && ! grep -q $REGION1 /run/vramd/*; }
object_gone() { ! busctl tree --list io.github.vramd1 | grep -q 0c_3a00; }
known() { vramctl status --json | grep -q $REGION1; }
remove() { [ ! -e /sys/bus/pci/devices/$GPU1 ] || echo 1 > /sys/bus/pci/devices/$GPU1/remove; }
rescan() { echo 1 > /sys/bus/pci/rescan; }
again() { remove; wait_until 10 no_region1; rescan; }
driver_away() { [ ! -e /sys/bus/pci/drivers/vramsim/$GPU1 ] || echo $GPU1 > /sys/bus/pci/drivers/vramsim/unbind; }
driver_back() { driver_away; wait_until 10 no_region1; echo $GPU1 > /sys/bus/pci/drivers/vramsim/bind; }
}

setup_vramd
start_seat_session deck
pid=$(vramd_pid)
start_game deck 100 --device $GPU0 --size 2M --count 90
front deck "$GAME_PID"
must "the game is protected in two regions" wait_until 10 both_protected
open_gpu 100
check "it holds 180 MiB of the first" 180 "$(field "$(line 100 1)" resident_mib)"
must "both regions are known" known

within "the second card is removed: its region is forgotten" remove forgotten
must "and its object" object_gone
must "the first is still protected" first_protected
rescan
must "it is back, protected on every ancestor" wait_until 10 both_protected
within "removed and found again" again both_protected
must "its object is back" known
within "its driver goes" driver_away forgotten
within "and comes back" driver_back both_protected
for _ in 1 2 3 4 5; do remove; rescan; done
must "five times in a row" wait_until 10 both_protected

check "the game has kept its buffers" 180 "$(current "$GAME_UNIT")"
check "it is the same vramd" "$pid" "$(vramd_pid)"
remove
systemctl stop vramd.service
must "nothing stays protected" no_low_at_all
rescan
must "nor comes back with the card" no_low_at_all
must "and nobody complained" grep -qvzE '(Cannot|Failed)' <<< "$(vramd_log)"
