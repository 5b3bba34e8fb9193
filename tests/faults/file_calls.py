# SPDX-License-Identifier: Apache-2.0
"""The file calls of a run, as the shim's journal tells them."""
import re
from dataclasses import dataclass

CHECKPOINT = re.compile(r"\.tmp-[^/]*")
OTHER = re.compile(r"(^|/)\.[^/]*\.tmp(?=$|/)")
EVENTS = re.compile(r"events\.out\.tfevents\.[^/]*")


def stable_name(path):
    """The same as the shim's: without numbers of processes and times."""
    return EVENTS.sub("events.out.tfevents.*", OTHER.sub(r"\1.*.tmp", CHECKPOINT.sub(".tmp-*", path)))


@dataclass(frozen=True)
class Call:
    """A line of the journal: tests/faults/shim/journal.h."""
    role: str
    operation: str
    number: int
    path: str
    fault: str
    result: int
    flags: int
    offset: int
    other: str
    data: bytes

    @property
    def point(self):
        """What names this call in every run of the same training."""
        return f"{self.role} {self.operation} {stable_name(self.path)} {self.number}"


def read_journal(path):
    if not path.exists():
        return []
    calls = []
    for line in path.read_text(errors="replace").splitlines():
        fields = line.split("\t")
        if len(fields) != 10:
            continue  # a process that was killed while it wrote
        role, operation, number, name, fault, result, flags, offset, other, data = fields
        calls.append(Call(role, operation, int(number), name, fault, int(result), int(flags), int(offset), other,
                          bytes.fromhex(data)))
    return calls


def points(shop, ranks, prepare, roles):
    """Names of all file calls that a whole training makes from what prepare() leaves, in their order."""
    prepare()
    ended = shop.train(ranks, shim=True)
    if ended.code != 0:
        raise RuntimeError(f"the training fails under the shim (exit {ended.code}):\n{ended.output}")
    calls = read_journal(shop.journal)
    names = [call.point for call in calls if call.operation not in ("say", "memory") and call.role in roles]
    if not names:
        raise RuntimeError("the shim saw no file call: is it loaded?")
    return list(dict.fromkeys(names))


def injected(shop):
    """The first call that got its fault, or None."""
    return next((call for call in read_journal(shop.journal) if call.fault), None)
