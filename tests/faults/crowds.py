# SPDX-License-Identifier: Apache-2.0
"""More connections that never greet than the run may have files: it starts, and ends as if they were not there."""
import contextlib
import resource
import socket
import threading
import time

from losses import SETTINGS
from strangers import at_port, free_port
from training import MISSED, Result

CROWD = 1100
FILES = 1024  # ulimit -n
AT_ONCE = 50  # connections that a thread of the crowd holds
LATE = 3  # seconds after rank 0 in which rank 1 comes


class Part(threading.Thread):
    """Holds its connections from when somebody listens, and replaces those that are closed."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.over = threading.Event()
        self.connections = 0
        self.kept = []

    def run(self):
        while not self.over.is_set():
            self.kept = [connection for connection in self.kept if self.is_open(connection)]
            try:
                if len(self.kept) < AT_ONCE:
                    self.kept.append(socket.create_connection(("127.0.0.1", self.port), timeout=1))
                    self.connections += 1
                    continue
            except OSError:
                pass
            self.over.wait(0.01)
        for connection in self.kept:
            connection.close()

    @staticmethod
    def is_open(connection):
        connection.setblocking(False)
        try:
            if connection.recv(1):
                return True
        except BlockingIOError:
            return True
        except OSError:
            pass
        connection.close()
        return False


@contextlib.contextmanager
def crowd_at(port, number):
    """So many connections as long as it lasts, each of them a file of this process."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    parts = [Part(port) for _ in range(-(-number // AT_ONCE))]
    try:
        for part in parts:
            part.start()
        yield parts
    finally:
        for part in parts:
            part.over.set()
        for part in parts:
            part.join()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class Crowds:
    name = "crowds"
    promises = "R22"
    quick = 2
    whole = 20
    endless = True

    def tries(self, _, chance):
        """"WHEN NUMBER": "first": the crowd comes with the ranks; "late": it is there before rank 1."""
        while True:
            for when in ("late", "first"):
                yield f"{when} {CROWD + chance.randrange(200)}"

    def run(self, shop, key):
        when, number = key.split(" ")
        expected = shop.digest(2, SETTINGS)
        shop.clear()
        port = free_port()
        late = ["--late", 1, LATE] if when == "late" else []
        with crowd_at(port, int(number)) as parts:
            live = shop.start(shop.train_command(2, SETTINGS, tcp=[*at_port(port), *late]), shim=True,
                              limits=[(resource.RLIMIT_NOFILE, FILES)])
            ended = live.finish(60 * shop.patience)
        problems = [*ended.problems(), *shop.untidy()]
        if ended.code != 0:
            problems.append(f"exit {ended.code}\n{ended.told()}")
        elif shop.digest_of_run() != expected:
            problems.append(f"lost: the weights differ: {shop.digest_of_run()}, not {expected}")
        came = sum(part.connections for part in parts)
        # Ranks that come together may have met before the whole crowd is there.
        if came < (CROWD if when == "late" else 1) and not problems:
            return Result(MISSED, f"{came} connections came")
        return Result.of(problems)
