# SPDX-License-Identifier: Apache-2.0
"""A switch in user space: it carries Ethernet frames between the TAP devices of hosts, as late and as little as it is told.

Frame by frame the kernel would cost as much as the wire: a TAP device hands over what TCP has in one piece of up to 64
KiB, with the header that says how the wire would cut it (struct virtio_net_hdr). Where frames are to be lost, they come
one by one.
"""
import fcntl
import heapq
import itertools
import os
import random
import struct
import time

HEADER = struct.Struct("<BBHHHH")  # virtio_net_hdr: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6, TUN_F_TSO_ECN = 1, 2, 4, 8
IN_ONE_PIECE = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN
LARGEST = HEADER.size + 65536 + 64
BETWEEN_FRAMES = 24  # bytes of preamble, checksum and gap, which a frame takes on the wire
AHEAD = 0.02  # seconds of work that a host hands to the switch early, so that a link is not idle while the switch wakes up
BUFFER = 1 << 20  # bytes that wait in the switch for one host; what comes on top is dropped
BATCH = 32  # frames of one host before the others' turn


def open_tap(name):
    """A TAP device in the network namespace of the caller; it goes when the descriptor is closed."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    fcntl.ioctl(tap, TUNSETOFFLOAD, IN_ONE_PIECE)
    return tap


class Lane:
    """One direction of a host's link."""

    def __init__(self):
        self.rate = 0.0  # bits a second; 0: as fast as the machine
        self.delay = 0.0  # seconds
        self.loss = 0.0  # the share of frames
        self.cut = False
        self.bytes = self.frames = self.dropped = 0
        self.busy_until = 0.0

    def take(self, at, size):
        """When the last bit of a frame that comes at that time has passed, but for the delay."""
        if self.rate:
            at = max(at, self.busy_until) + size * 8 / self.rate
            self.busy_until = at
        return at

    def is_full(self, at):
        return self.rate and (self.busy_until - at) * self.rate > BUFFER * 8

    def set(self, settings):
        for name in ("rate", "delay", "loss", "cut"):
            if name in settings:
                setattr(self, name, settings[name])

    def facts(self):
        return {name: getattr(self, name) for name in ("rate", "delay", "loss", "cut", "bytes", "frames", "dropped")}


def on_the_wire(frame):
    """How many frames TCP's piece makes, and their bytes."""
    _, kind, header, piece, _, _ = HEADER.unpack_from(frame)
    size = len(frame) - HEADER.size
    if not kind:
        return 1, size
    frames = -(-(size - header) // piece)
    return frames, size + (frames - 1) * header


class Switch:
    def __init__(self, seed=1):
        self.lanes = {}  # host -> {"out": Lane, "in": Lane}, as the host sees it
        self.taps = {}  # host -> descriptor
        self.places = {}  # MAC address -> host
        self.waiting = []  # (time, number, host, frame)
        self.numbers = itertools.count()
        self.chance = random.Random(seed)

    def connect(self, host, mac, tap):
        self.lanes.setdefault(host, {"out": Lane(), "in": Lane()})
        self.taps[host] = tap
        self.places[mac] = host
        self.choose_pieces()

    def disconnect(self, host):
        os.close(self.taps.pop(host))

    def set(self, host, directions, settings):
        for direction in directions:
            self.lanes[host][direction].set(settings)
        self.choose_pieces()

    def choose_pieces(self):
        loses = any(lane.loss for lanes in self.lanes.values() for lane in lanes.values())
        for tap in self.taps.values():
            fcntl.ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM if loses else IN_ONE_PIECE)

    def sources(self):
        """Descriptor -> host of those that may send now: one whose link is busy keeps its frames."""
        now = time.monotonic()
        return {tap: host for host, tap in self.taps.items() if self.lanes[host]["out"].busy_until <= now + AHEAD}

    def patience(self):
        """Seconds until something is to be done without a new frame; None: there is nothing."""
        now = time.monotonic()
        times = [self.waiting[0][0]] if self.waiting else []
        times += [until - AHEAD for host in self.taps if (until := self.lanes[host]["out"].busy_until) > now + AHEAD]
        return max(min(times) - now, 0.0) if times else None

    def take_from(self, host):
        tap = self.taps[host]
        out = self.lanes[host]["out"]
        for _ in range(BATCH):
            try:
                frame = os.read(tap, LARGEST)
            except BlockingIOError:
                return
            self.forward(host, frame)
            if out.rate and out.busy_until > time.monotonic() + AHEAD:
                return

    def forward(self, source, frame):
        out = self.lanes[source]["out"]
        frames, size = on_the_wire(frame)
        out.frames += frames
        out.bytes += size
        now = time.monotonic()
        passed = out.take(now, size + frames * BETWEEN_FRAMES)
        if self.loses(out):
            out.dropped += frames
            return
        place = self.places.get(frame[HEADER.size:HEADER.size + 6])
        for host in [place] if place else [host for host in self.taps if host != source]:
            if host in self.taps and host != source:
                self.send(host, frame, frames, size, now, passed, out.delay)

    def send(self, host, frame, frames, size, now, passed, delay):
        lane = self.lanes[host]["in"]
        if self.loses(lane) or lane.is_full(passed):
            lane.dropped += frames
            return
        # A bit leaves the switch as soon as it has come: two links in a row cost the time of the slower one.
        wire = size + frames * BETWEEN_FRAMES
        begin = passed - wire * 8 / lane.rate if lane.rate else passed
        due = max(lane.take(begin, wire), passed) + delay + lane.delay
        lane.frames += frames
        lane.bytes += size
        if due <= now:
            self.deliver(host, frame)
        else:
            heapq.heappush(self.waiting, (due, next(self.numbers), host, frame))

    def loses(self, lane):
        return lane.cut or lane.loss and self.chance.random() < lane.loss

    def deliver(self, host, frame):
        try:
            os.write(self.taps[host], frame)
        except OSError:
            self.lanes[host]["in"].dropped += 1  # the device is down

    def deliver_due(self):
        now = time.monotonic()
        while self.waiting and self.waiting[0][0] <= now:
            _, _, host, frame = heapq.heappop(self.waiting)
            if host in self.taps:
                self.deliver(host, frame)
