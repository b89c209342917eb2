#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""A service manager's ear: receives what sd_notify(3) sends and appends it to a file, a line for each message.

    notify_socket.py SOCKET FILE

The lines of a message are joined by " | ". Runs until it is ended.
"""

import os
import socket
import sys

path, file = sys.argv[1:]
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
    ear.bind(path + ".new")
    os.rename(path + ".new", path)  # whoever sees the socket can send to it
    while True:
        message = ear.recv(65536).decode(errors="replace")
        with open(file, "a", encoding="utf-8") as out:
            out.write(" | ".join(message.strip("\n").split("\n")) + "\n")
