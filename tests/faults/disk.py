# SPDX-License-Identifier: Apache-2.0
"""A disk that has what was synced, and of all else any part: what a power cut may leave.

Content of a file is safe once the file was synced, a name in a directory once the directory was. Nothing else is: not
the order of two changes, not a name because the file was synced. A move from one folder to another happens in both or
in neither, as file systems with a journal have it, and is safe once either was synced.
"""
import os
import shutil
from pathlib import Path


class File:
    def __init__(self):
        self.content = b""
        self.synced = b""
        self.writes = []  # since the last sync: (offset, data); data None: cut to the offset

    def write(self, offset, data):
        self.writes.append((offset, data))
        self.content = self.changed(self.content, offset, data)

    @staticmethod
    def changed(content, offset, data):
        if data is None:
            return content[:offset].ljust(offset, b"\0")
        content = content.ljust(offset, b"\0")
        return content[:offset] + data + content[offset + len(data):]

    def sync(self):
        self.synced = self.content
        self.writes = []

    def after(self, loss):
        """The content of which so much has reached the disk; `loss` is one of CONTENTS."""
        if not self.writes or loss == "kept":
            return self.content
        if loss == "lost":
            return self.synced
        if loss == "half":
            safe = min(len(self.synced), *(offset for offset, _ in self.writes))
            return self.content[:(safe + len(self.content)) // 2]
        if loss == "zeros":
            return self.synced.ljust(len(self.content), b"\0")[:len(self.content)]
        content = self.synced  # "last": only the last write came there
        return self.changed(content, *self.writes[-1])


CONTENTS = ("kept", "lost", "half", "zeros", "last")


class Folder:
    def __init__(self):
        self.entries = {}
        self.synced = {}
        self.changes = []  # since the last sync

    def change(self, function, first=None):
        change = Change(self, function, first)
        self.changes.append(change)
        function(self.entries)
        return change

    def sync(self):
        for change in self.changes:
            for half in change.halves:
                if half.folder is not self:
                    half.folder.settle(half)
        self.synced = dict(self.entries)
        self.changes = []

    def settle(self, change):
        if change in self.changes:
            change.function(self.synced)
            self.changes.remove(change)


class Change:
    """A function of a dict of entries, and, where it moves something to another folder, the other half of that."""

    def __init__(self, folder, function, first=None):
        self.folder = folder
        self.function = function
        self.halves = [self]
        if first:
            first.halves.append(self)
            self.halves = first.halves


def link(name, node):
    def apply(entries):
        entries[name] = node
    return apply


def unlink(name):
    def apply(entries):
        entries.pop(name, None)
    return apply


def move(old, new):
    def apply(entries):
        if old in entries:
            entries[new] = entries.pop(old)
    return apply


class Disk:
    def __init__(self):
        self.root = Folder()

    def folder_of(self, path):
        """The folder that holds the path's last name, and that name."""
        *folders, name = path.split("/")
        node = self.root
        for part in folders:
            node = node.entries[part]
        return node, name

    def find(self, path):
        if path == ".":
            return self.root
        folder, name = self.folder_of(path)
        return folder.entries.get(name)

    def apply(self, call):
        """A line of the journal."""
        if call.result < 0 or call.operation in ("say", "memory", "read", "stat", "list", "lock", "close"):
            return
        getattr(self, "_" + call.operation)(call)

    def _open(self, call):
        if call.flags & os.O_CREAT and self.find(call.path) is None:
            folder, name = self.folder_of(call.path)
            folder.change(link(name, File()))
        elif call.flags & os.O_TRUNC:
            self.find(call.path).write(0, None)

    def _write(self, call):
        self.find(call.path).write(call.offset, call.data)

    def _truncate(self, call):
        self.find(call.path).write(call.offset, None)

    def _sync(self, call):
        self.find(call.path).sync()

    def _mkdir(self, call):
        folder, name = self.folder_of(call.path)
        folder.change(link(name, Folder()))

    def _unlink(self, call):
        folder, name = self.folder_of(call.path)
        folder.change(unlink(name))

    _rmdir = _unlink

    def _rename(self, call):
        folder, old = self.folder_of(call.path)
        target, new = self.folder_of(call.other)
        if folder is target:
            folder.change(move(old, new))
        else:
            arrival = target.change(link(new, folder.entries[old]))
            folder.change(unlink(old), arrival)

    def changes(self):
        """Changes of names that are not safe, as (folder, index), the oldest first of each folder that is reachable."""
        found, folders = [], [self.root]
        while folders:
            folder = folders.pop(0)
            found += [(folder, i) for i in range(len(folder.changes))]
            nodes = {id(node): node for node in (*folder.entries.values(), *folder.synced.values())}
            folders += [node for node in nodes.values() if isinstance(node, Folder)]
        return found

    def has_unsynced_content(self):
        return any(isinstance(node, File) and node.writes for node in self._nodes(self.root))

    def _nodes(self, folder):
        for node in folder.entries.values():
            yield node
            if isinstance(node, Folder):
                yield from self._nodes(node)

    def state(self, contents, names):
        """{path: content, or None for a folder} after a power cut. `names` says of each of changes() whether it has
        reached the disk."""
        kept = {folder.changes[i] for (folder, i), there in zip(self.changes(), names, strict=True) if there}
        tree = {}

        def visit(folder, prefix):
            entries = dict(folder.synced)
            for change in folder.changes:
                if change.halves[0] in kept:
                    change.function(entries)
            for name, node in sorted(entries.items()):
                tree[prefix + name] = node.after(contents) if isinstance(node, File) else None
                if isinstance(node, Folder):
                    visit(node, prefix + name + "/")

        visit(self.root, "")
        return tree


def put(tree, folder):
    """Makes the folder hold exactly this tree."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path, content in tree.items():
        place = Path(folder, path)
        place.mkdir() if content is None else place.write_bytes(content)
