#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Serves the lists of a folder over HTTP, some of them never.

    list_server.py ADDRESS PORT FOLDER

A list NAME beside which there is a file NAME.hangs is asked for in vain: the server takes the request and says nothing
until that file is gone; then it ends the connection. Beside NAME, a file NAME.user holds USER:PASSWORD that are wanted,
and a file NAME.header a line NAME: VALUE that the request must have. The server is a proxy as well, which knows every
host; NAME.proxy-user holds the USER:PASSWORD that it wants. What was asked for is on standard output, a line a request.
"""

import base64
import http.server
import os
import pathlib
import sys
import time


def basic(file):
    return "Basic " + base64.b64encode(file.read_bytes().strip()).decode()


class Lists(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def refusal(self, path):
        user, header = path.with_name(path.name + ".user"), path.with_name(path.name + ".header")
        proxy_user = path.with_name(path.name + ".proxy-user")
        if user.exists() and self.headers.get("Authorization") != basic(user):
            return 401
        if proxy_user.exists() and self.headers.get("Proxy-Authorization") != basic(proxy_user):
            return 407
        if header.exists():
            name, value = header.read_text().strip().split(": ")
            if self.headers.get(name) != value:
                return 403
        return None if path.exists() else 404

    def do_GET(self):
        path = self.server.folder / pathlib.PurePosixPath(self.path).name
        os.write(1, f"{path.name}\n".encode())  # at once: print() lets another thread write between name and line end
        hangs = path.with_name(path.name + ".hangs")
        if hangs.exists():
            while hangs.exists():
                time.sleep(0.05)
            self.close_connection = True
            return
        refusal = self.refusal(path)
        data = b"" if refusal else path.read_bytes()
        self.send_response(refusal or 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def main():
    address, port, folder = sys.argv[1:]
    server = Server((address, int(port)), Lists)
    server.folder = pathlib.Path(folder)
    print("listens", flush=True)
    server.serve_forever()


main()
