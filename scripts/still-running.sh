#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Says what of xdp-sieve still runs on this machine, and how to stop it without the programs: `make uninstall` removes
# files and ends nothing. Says nothing where nothing runs, or to whom may not know.
#
#     still-running.sh XDP-SIEVE     the command line, which is still there
set -u
status=$("$1" --json status 2>/dev/null) || exit 0
# shellcheck disable=SC2016 # the backquotes are Python's text
python3 -c '
import json, sys
status = json.load(sys.stdin)
manager = status.get("manager")
if manager:
    print("xdp-sieved still runs, process %d: `systemctl disable --now xdp-sieved`, or `kill %d`, stops it"
          % (manager["pid"], manager["pid"]))
for hook in status["interfaces"]:
    name, point = hook["interface"], hook["hook"]
    command = ("ip link set dev %s xdp off" % name if point == "xdp"
               else "tc filter del dev %s %s pref %d" % (name, point, hook["priority"]))
    print("%s (%s) is still filtered, and stays so: `%s` takes the program off" % (name, point, command))
' <<<"$status" || exit 0
