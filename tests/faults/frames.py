# SPDX-License-Identifier: Apache-2.0
"""What ranks without MPI say to each other, on its way changed, cut off or held up: an error by name and in time."""
import select
import socket
import threading

from losses import SETTINGS, SLACK, TIMEOUT
from strangers import free_port
from training import DOCUMENTED, MISSED, Result

START_UP = 30  # what a start may take at least before it counts as hung


class Proxy(threading.Thread):
    """Stands between rank 1 and the hub. What passes in one direction is injured once, at one byte."""

    def __init__(self, port, hub, towards_hub, offset, how, bit):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", port))
        self.hub = hub
        self.towards_hub = towards_hub
        self.offset = offset
        self.how = how
        self.bit = bit
        self.over = threading.Event()
        self.injured = False

    def run(self):
        self.listener.settimeout(0.1)
        while not self.over.is_set():
            try:
                rank = self.listener.accept()[0]
            except TimeoutError:
                continue
            try:
                hub = socket.create_connection(("127.0.0.1", self.hub))
            except OSError:
                rank.close()
                continue
            with rank, hub:
                self.pass_on(rank, hub)
        self.listener.close()

    def pass_on(self, rank, hub):
        passed = {rank: 0, hub: 0}
        other = {rank: hub, hub: rank}
        try:
            while not self.over.is_set():
                for source in select.select([rank, hub], [], [], 0.1)[0]:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if (source is rank) == self.towards_hub:
                        data = self.injure(data, passed[source])
                        if data is None:
                            return
                    passed[source] += len(data)
                    other[source].sendall(data)
        except OSError:
            return

    def injure(self, data, passed):
        """What goes on; None: nothing ever again."""
        at = self.offset - passed
        if self.injured or not 0 <= at < len(data):
            return data
        self.injured = True
        if self.how == "flip":
            return data[:at] + bytes([data[at] ^ 1 << self.bit]) + data[at + 1:]
        if self.how == "drop":
            return data[:at] + data[at + 1:]
        if self.how == "repeat":
            return data[:at] + data[at:] * 2
        if self.how == "stall":
            self.over.wait()
        return None


class Frames:
    name = "frames"
    promises = "R25 R10"
    quick = 10
    whole = 100
    endless = True

    def tries(self, _, chance):
        """"HOW DIRECTION BYTE BIT" """
        while True:
            for how in ("flip", "drop", "repeat", "cut", "stall"):
                offset = chance.choice((chance.randrange(1200), chance.randrange(6000)))
                yield f"{how} {chance.choice(('to', 'from'))} {offset} {chance.randrange(8)}"

    def run(self, shop, key):
        how, direction, offset, bit = key.split(" ")
        shop.digest(2, SETTINGS)
        shop.clear()
        hub, port = free_port(), free_port()
        proxy = Proxy(port, hub, direction == "to", int(offset), how, int(bit))
        proxy.start()
        tcp = ("--set", 0, f"LOCKSTEP_MASTER_PORT={hub}", "--set", 1, f"LOCKSTEP_MASTER_PORT={port}")
        settings = (*SETTINGS, f"comm.timeout_s={TIMEOUT}")
        ended = shop.start(shop.train_command(2, settings, tcp=tcp), shim=True).finish((START_UP + SLACK) * shop.patience)
        proxy.over.set()
        proxy.join()
        problems = [*ended.problems()]
        if not proxy.injured and not problems:
            return Result(MISSED)
        if ended.code not in DOCUMENTED:
            problems.append(f"exit {ended.code}\n{ended.told()}")
        if how in ("cut", "stall"):  # nothing was changed, which TCP alone would find
            problems += shop.goes_on(2, max(ended.saved(), shop.newest_checkpoint()), SETTINGS)
        return Result.of(problems)
