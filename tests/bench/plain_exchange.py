# SPDX-License-Identifier: Apache-2.0
"""What plain sockets carry: as many bytes between the same hosts as an all-reduce of BYTES has to, nothing of it summed.

  python3 tests/bench/plain_exchange.py BYTES ROUNDS

Each rank, started with torchrun's variables, sends 2 BYTES / WORLD_SIZE to each other one and receives as many, all at once:
a reduce-scatter's contributions and an all-gather's results. Rank 0 prints a JSON line with the microseconds of each round.
"""
import json
import os
import socket
import sys
import threading
import time

SLICE = 1 << 20
PATIENCE_S = 60


def connect(address, port):
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((address, port), timeout=PATIENCE_S)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def peers(rank, size, hosts, port):
    """A connection to each other rank: who comes later calls."""
    found = {}
    with socket.create_server(("", port + rank)) as door:
        for other in range(rank):
            found[other] = connect(hosts[other], port + other)
            found[other].sendall(bytes([rank]))
        while len(found) < size - 1:
            caller, _ = door.accept()
            found[caller.recv(1)[0]] = caller
    for connection in found.values():
        connection.settimeout(PATIENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return list(found.values())


def send(connection, length):
    while length > 0:
        length -= connection.send(NOTHING[:min(length, SLICE)])


def receive(connection, length):
    buffer = memoryview(bytearray(SLICE))
    while length > 0:
        got = connection.recv_into(buffer[:min(length, SLICE)])
        if not got:
            raise ConnectionError("a rank has gone")
        length -= got


NOTHING = memoryview(bytes(SLICE))


def exchange(connections, length):
    work = [threading.Thread(target=step, args=(connection, length)) for connection in connections for step in (send, receive)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()


def main():
    length, rounds = int(sys.argv[1]), int(sys.argv[2])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    connections = peers(rank, size, os.environ["HOSTS"].split(","), int(os.environ["MASTER_PORT"]))
    times = []
    for _ in range(1 + rounds):  # one to warm up
        exchange(connections, 1)
        since = time.perf_counter()
        exchange(connections, 2 * length // size)
        times.append(1e6 * (time.perf_counter() - since))
    exchange(connections, 1)
    if rank == 0:
        print(json.dumps({"us": times[1:]}), flush=True)


if __name__ == "__main__":
    main()
