#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Serves the lists of a folder over HTTP, some of them never.

    list_server.py ADDRESS PORT FOLDER

A list NAME beside which there is a file NAME.hangs is asked for in vain: the server takes the request and says nothing
until that file is gone; then it ends the connection. What was asked for is on standard output, a line a request.
"""

import http.server
import pathlib
import sys
import time


class Lists(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.server.folder / pathlib.PurePosixPath(self.path).name
        print(path.name, flush=True)
        hangs = path.with_name(path.name + ".hangs")
        if hangs.exists():
            while hangs.exists():
                time.sleep(0.05)
            self.close_connection = True
            return
        data = path.read_bytes() if path.exists() else None
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

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
