#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""The load that the nodes of a fleet put on etcd: many simulated followers on one machine.

    fleet_load.py URL PID [--clients 1000] [--report 10] [--seconds 30]

Each client watches one prefix, holds a lease, keeps it alive and puts a report every REPORT seconds, through the JSON
gateway of the etcd at URL, whose process is PID. Prints how long an event takes to reach all of them, how long requests
take, and what etcd costs.
"""

import argparse
import asyncio
import base64
import json
import os
import random
import resource
import time
from urllib.parse import urlsplit

PREFIX = "/fleet-load/now/"
REPORT = "x" * 600  # as long as a node's report


def encode(text):
    return base64.b64encode(text.encode()).decode()


class Connection:
    """A kept HTTP connection."""

    def __init__(self, host, port):
        self.host, self.port, self.streams = host, port, None

    async def send(self, path, body):
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self.streams
        text = json.dumps(body)
        writer.write(f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        await writer.drain()
        status = await reader.readline()
        if b" 200 " not in status:
            raise RuntimeError(status)
        length = None
        while (line := await reader.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return reader, length

    async def chunk(self, reader):
        size = int(await reader.readline(), 16)
        data = await reader.readexactly(size)
        await reader.readexactly(2)
        return data

    async def ask(self, path, body):
        reader, length = await self.send(path, body)
        if length is not None:
            return json.loads(await reader.readexactly(length))
        text = b""
        while data := await self.chunk(reader):
            text += data
        return json.loads(text)


class Load:
    def __init__(self, arguments):
        url = urlsplit(arguments.url)
        self.address = url.hostname, url.port
        self.arguments = arguments
        self.heard, self.times = 0, []
        self.everybody = asyncio.Event()

    async def watch(self):
        connection = Connection(*self.address)
        end = PREFIX[:-1] + chr(ord(PREFIX[-1]) + 1)
        body = {"create_request": {"key": encode(PREFIX), "range_end": encode(end)}}
        reader, _ = await connection.send("/v3/watch", body)
        while data := await connection.chunk(reader):
            result = json.loads(data)["result"]
            if result.get("created") or result.get("events"):
                self.heard += 1
                if self.heard % self.arguments.clients == 0:
                    self.everybody.set()

    async def timed(self, connection, path, body):
        began = time.monotonic()
        answer = await connection.ask(path, body)
        self.times.append(time.monotonic() - began)
        return answer

    async def report(self, number):
        connection = Connection(*self.address)
        interval = self.arguments.report
        lease = (await connection.ask("/v3/lease/grant", {"TTL": str(3 * interval)}))["ID"]
        await asyncio.sleep(random.uniform(0, interval))
        while True:
            began = time.monotonic()
            await self.timed(connection, "/v3/lease/keepalive", {"ID": lease})
            put = {"key": encode(f"/fleet-load/nodes/{number}"), "value": encode(REPORT), "lease": lease}
            await self.timed(connection, "/v3/kv/put", put)
            await asyncio.sleep(max(0.0, interval - (time.monotonic() - began)))

    async def run(self):
        clients = self.arguments.clients
        idle = resident(self.arguments.pid)
        tasks = [asyncio.create_task(self.watch()) for _ in range(clients)]
        await self.everybody.wait()
        watched = resident(self.arguments.pid)
        self.everybody.clear()
        began, used = time.monotonic(), processor(self.arguments.pid)
        publisher = Connection(*self.address)
        await publisher.ask("/v3/kv/put", {"key": encode(PREFIX + "manifest"), "value": encode("x" * 2000)})
        await self.everybody.wait()
        print(f"{clients} watchers: an event reached all in {1000 * (time.monotonic() - began):.0f} ms, "
              f"which cost etcd {1000 * (processor(self.arguments.pid) - used):.0f} ms of processor time; "
              f"memory {idle} MB before, {watched} MB with the watchers")
        tasks += [asyncio.create_task(self.report(number)) for number in range(clients)]
        await asyncio.sleep(self.arguments.report)  # every lease is granted by then
        self.times.clear()
        began, used = time.monotonic(), processor(self.arguments.pid)
        await asyncio.sleep(self.arguments.seconds)
        passed, times = time.monotonic() - began, sorted(self.times)
        cost = processor(self.arguments.pid) - used
        print(f"a keep-alive and a put per client every {self.arguments.report} s: {len(times) / passed:.0f} "
              f"requests/s, median {1000 * times[len(times) // 2]:.1f} ms, 99th percentile "
              f"{1000 * times[len(times) * 99 // 100]:.1f} ms; {1e6 * cost / len(times):.0f} us of processor time per "
              f"request, {100 * cost / passed:.0f}% of one processor; memory {resident(self.arguments.pid)} MB")
        for task in tasks:
            task.cancel()


def processor(pid):
    """Seconds that the process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("pid", type=int)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--report", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=30)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * arguments.clients + 64, 4 * arguments.clients + 64))
    asyncio.run(Load(arguments).run())


if __name__ == "__main__":
    main()
