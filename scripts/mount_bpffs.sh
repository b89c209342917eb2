#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Mounts the file system of BPF pins where systemd would have mounted it, if it is not there. Otherwise the first tool
# that pins something mounts it in the middle of the tests, and its files look like pins that a test left behind.
set -euo pipefail

[ "$(stat -f -c %T /sys/fs/bpf)" = bpf_fs ] || mount -t bpf -o mode=700 bpf /sys/fs/bpf
