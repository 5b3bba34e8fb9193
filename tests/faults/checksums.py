# SPDX-License-Identifier: Apache-2.0
"""XXH3-128, so that a changed checkpoint can be sealed again and its parsers get to see the change."""
import ctypes
import json


class _Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh3_128(content):
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_128bits.restype = _Hash
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    digest = library.XXH3_128bits(content, len(content))
    return f"{digest.high:016x}{digest.low:016x}"


FIELD = b',\n  "checksum": "'


def sealed(manifest):
    """A manifest with the checksum that its text has to have."""
    body = manifest[:manifest.rfind(FIELD)] if FIELD in manifest else manifest
    return body + FIELD + xxh3_128(body).encode() + b'"\n}\n'


def seal(checkpoint):
    """Makes the manifest agree with the files beside it, whatever they hold."""
    path = checkpoint / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for name, entry in manifest["files"].items():
        content = checkpoint.joinpath(name).read_bytes()
        entry.update(bytes=len(content), xxh3_128=xxh3_128(content))
    del manifest["checksum"]
    path.write_bytes(sealed(json.dumps(manifest, indent=2).encode()[:-2]))
