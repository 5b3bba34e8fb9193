# SPDX-License-Identifier: Apache-2.0
"""Strangers at the port where ranks without MPI meet: the run passes by them, and ends as if they were not there."""
import random
import socket
import struct
import threading
import time

from losses import SETTINGS
from training import MISSED, Result

HELLO = 0x4F4C4C4548534C00  # comm/group/tcp/greeting.h
VERSION = 4


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def at_port(port):
    """Options of torchrun_ranks: where its ranks meet."""
    return [word for rank in (0, 1) for word in ("--set", rank, f"LOCKSTEP_MASTER_PORT={port}")]


class Stranger(threading.Thread):
    """Somebody at the port, from before the run listens there until it has ended."""

    def __init__(self, port, kind, seed):
        super().__init__(daemon=True)
        self.port = port
        self.kind = kind
        self.chance = random.Random(seed)
        self.over = threading.Event()
        self.connections = 0
        self.kept = []

    def run(self):
        while not self.over.is_set():
            try:
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=1)
            except OSError:
                time.sleep(0.001)
                continue
            self.connections += 1
            try:
                getattr(self, "_" + self.kind)(connection)
            except OSError:
                connection.close()
            time.sleep(0.002 if self.connections < 20 else 0.05)
        for connection in self.kept:
            connection.close()

    def _leaving(self, connection):
        connection.close()

    def _resetting(self, connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    def _silent(self, connection):
        self.kept.append(connection)

    def _garbage(self, connection):
        connection.sendall(self.chance.randbytes(self.chance.randrange(1, 5000)))
        self.kept.append(connection)

    def _slow(self, connection):
        for byte in self.hello()[:40]:
            if self.over.wait(0.02):
                break
            connection.sendall(bytes([byte]))
        self.kept.append(connection)

    def _from_another_run(self, connection):
        connection.sendall(self.hello())
        self.kept.append(connection)

    def _nearly(self, connection):
        """A greeting with a few wrong bytes, and frames behind it."""
        hello = bytearray(self.hello())
        for _ in range(self.chance.randrange(4)):
            hello[self.chance.randrange(len(hello))] ^= 1 << self.chance.randrange(8)
        connection.sendall(bytes(hello) + self.chance.randbytes(500))
        self.kept.append(connection)

    def hello(self):
        """That of rank 1, but for the proof that it has the run's key."""
        texts = b"".join(text.encode().ljust(256, b"\0") for text in ("faults", "", "host"))
        said = struct.pack("<QQiiii", HELLO, VERSION, 1, 2, 4242, 0)
        return said + self.chance.randbytes(16) + texts + self.chance.randbytes(32)


KINDS = ("leaving", "resetting", "silent", "garbage", "slow", "from_another_run", "nearly")


class Strangers:
    name = "strangers"
    promises = "R22 R24"
    quick = 7
    whole = 70
    endless = True

    def tries(self, _, chance):
        """"KIND NUMBER SEED": so many of that kind at once."""
        while True:
            for kind in KINDS:
                yield f"{kind} {chance.choice((1, 3, 40))} {chance.randrange(1 << 32)}"

    def run(self, shop, key):
        kind, number, seed = key.split(" ")
        expected = shop.digest(2, SETTINGS)
        shop.clear()
        port = free_port()
        strangers = [Stranger(port, kind, f"{seed} {i}") for i in range(int(number))]
        for stranger in strangers:
            stranger.start()
        ended = shop.train(2, settings=SETTINGS, tcp=at_port(port), shim=True)
        for stranger in strangers:
            stranger.over.set()
        for stranger in strangers:
            stranger.join()
        problems = [*ended.problems(), *shop.untidy()]
        if not any(stranger.connections for stranger in strangers) and not problems:
            return Result(MISSED)
        if ended.code != 0:
            problems.append(f"exit {ended.code}\n{ended.told()}")
        elif shop.digest_of_run() != expected:
            problems.append(f"lost: the weights differ: {shop.digest_of_run()}, not {expected}")
        return Result.of(problems)
