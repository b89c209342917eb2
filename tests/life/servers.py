# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""The servers that the daemon asks: for lists and images by HTTP, and for the decisions of a CrowdSec local API. Each
answers in the manner that it is told."""

import contextlib
import gzip
import json
import socket
import struct
import threading
import time

import host
import traffic

GOOD, SLOW, HANGING, RESETTING, BROKEN, MISSING, SHORT, HTML, HUGE = ANSWERS = (
    "good", "slow", "hanging", "resetting", "500", "404", "short", "html", "huge")
PAGE = b"<!DOCTYPE html>\n<html><head><title>Log in</title></head><body>Please log in.</body></html>\n"
DECISION_LASTS = "4h"


class Server(threading.Thread):
    """Answers every request by what `body` says, or otherwise."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.manner = GOOD

        def listen():
            return socket.create_server(("127.0.0.1", port), backlog=64)

        self.listening = traffic.in_namespace(host.HERE, listen)
        self.start()

    def body(self, target):
        """What a good answer to a request for this target holds; None: there is no such thing."""
        raise NotImplementedError

    def run(self):
        while True:
            connection, _ = self.listening.accept()
            threading.Thread(target=self.answer, args=[connection], daemon=True).start()

    def answer(self, connection):
        manner = self.manner
        with connection, contextlib.suppress(OSError):
            connection.settimeout(10)
            words = connection.recv(65536).split()
            # Whoever answers badly has given the answer away all the same.
            content = self.body(words[1].decode(errors="replace")) if len(words) > 1 else None
            if content is None and manner in (GOOD, SLOW, SHORT):
                manner = MISSING
            if manner == RESETTING:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif manner == HANGING:
                connection.recv(1)  # returns when the other end has lost its patience
            elif manner in (BROKEN, MISSING):
                connection.sendall(b"HTTP/1.1 " + manner.encode() + b" No\r\nContent-Length: 0\r\n\r\n")
            elif manner == HUGE:
                body = gzip.compress(b"".join(b"45.%d.%d.%d\n" % (i >> 16, i >> 8 & 255, i & 255)
                                              for i in range(200000)))
                self.send(connection, body, len(body), b"Content-Encoding: gzip\r\n")
            elif manner == HTML:
                self.send(connection, PAGE, len(PAGE))
            elif manner == SHORT:
                self.send(connection, content[: len(content) // 2], len(content))
            else:
                self.send(connection, content, len(content), pause=0.02 if manner == SLOW else 0)

    @staticmethod
    def send(connection, body, length, headers=b"", pause=0.0):
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n" + headers +
                           b"Content-Length: %d\r\n\r\n" % length)
        step = max(1, len(body) // 16 if pause else len(body))
        for at in range(0, len(body), step):
            connection.sendall(body[at : at + step])
            time.sleep(pause)


class ListServer(Server):
    """Serves whatever has been put under a path."""

    def __init__(self, port):
        self.contents = {}
        super().__init__(port)

    def body(self, target):
        return self.contents.get(target)


class DecisionServer(Server):
    """As a CrowdSec local API, it tells all decisions at the start, and then what has come and gone since it was last
    asked. What it told in an answer that never arrived is not told again."""

    def __init__(self, port):
        self.lock = threading.Lock()
        self.empty()
        super().__init__(port)

    def empty(self):
        with self.lock:
            self.numbers = {}  # of the decisions that hold: (scope, value): id
            self.ends = {}  # of those that end soon: (scope, value): when, by the monotonic clock
            self.come, self.gone = [], []  # since the last question
            self.last = 0
            self.lie = None  # what is said in place of the truth

    def decide(self, decisions):
        """From now on, these hold: {(scope, value)}. Others go, unless they end by themselves."""
        with self.lock:
            for one in decisions & self.ends.keys():
                self.finish(one)  # and comes anew, for longer
            for one in decisions - self.numbers.keys():
                self.begin(one)
            for one in self.numbers.keys() - decisions - self.ends.keys():
                self.finish(one)

    def decide_for(self, decision, seconds):
        with self.lock:
            if decision not in self.numbers:
                self.ends[decision] = time.monotonic() + seconds
                self.begin(decision)

    def last_end(self):
        """When the last of the decisions that end soon does."""
        with self.lock:
            return max(self.ends.values(), default=0)

    def begin(self, one):
        self.last += 1
        self.numbers[one] = self.last
        self.come.append((one, self.last))

    def finish(self, one):
        told = one, self.numbers.pop(one)
        self.gone.append(told)
        self.come = [each for each in self.come if each != told]
        self.ends.pop(one, None)

    def body(self, target):
        if not target.startswith("/v1/decisions/stream?"):
            return None
        with self.lock:
            for one in [one for one, end in self.ends.items() if end <= time.monotonic()]:
                self.finish(one)
            whole = "startup=true" in target
            come, gone = (list(self.numbers.items()), []) if whole else (self.come, self.gone)
            self.come, self.gone = [], []
            if self.lie is not None:
                return self.lie
            told = {"new": [self.decision(*one) for one in come], "deleted": [self.decision(*one) for one in gone]}
        return json.dumps({name: some or None for name, some in told.items()}).encode()

    def decision(self, one, number):
        end = self.ends.get(one)
        lasts = f"{int(max(0.0, end - time.monotonic()) * 1000)}ms" if end else DECISION_LASTS
        return {"id": number, "origin": "life", "type": "ban", "scope": one[0], "value": one[1], "duration": lasts,
                "scenario": "life"}
