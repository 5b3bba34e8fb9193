# SPDX-License-Identifier: Apache-2.0
"""Files as cameras write them, for tests without a library of images."""
import struct


def _bytes_of(bits):
    """A string of 0 and 1, filled up with ones; behind 0xff comes a 0, as JPEG has it."""
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\x00")


def jpeg(columns, rows, color, orientation=None):
    """Blocks of 8 x 8 pixels of one color each: color(column, row) gives red, green and blue. `orientation`: EXIF's,
    from 1 to 8."""
    def segment(marker, content):
        return struct.pack(">BBH", 0xff, marker, len(content) + 2) + content

    def table(number, lengths, symbols):
        return segment(0xc4, bytes([number, *lengths, *symbols]))

    bits, before = "", [0, 0, 0]
    for row in range(rows):
        for column in range(columns):
            red, green, blue = color(column, row)
            light = 0.299 * red + 0.587 * green + 0.114 * blue
            for i, value in enumerate((light - 128, (blue - light) / 1.772, (red - light) / 1.402)):
                mean = max(-128, min(127, round(value)))
                change, before[i] = mean - before[i], mean
                size = abs(change).bit_length()
                # The code of the size is itself in 4 bits; that of "no more coefficients" is 0.
                bits += f"{size:04b}" + (f"{change if change > 0 else change + 2**size - 1:0{size}b}" if size else "") + "0"
    turned = b"" if orientation is None else segment(
        0xe1, b"Exif\0\0II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0))
    return (b"\xff\xd8" + turned + segment(0xdb, bytes([0] + [8] * 64)) +
            segment(0xc0, struct.pack(">BHHB", 8, 8 * rows, 8 * columns, 3) + b"\x01\x11\0\x02\x11\0\x03\x11\0") +
            table(0x00, [0, 0, 0, 12] + [0] * 12, range(12)) + table(0x10, [1] + [0] * 15, [0]) +
            segment(0xda, b"\x03\x01\0\x02\0\x03\0\0\x3f\0") + _bytes_of(bits) + b"\xff\xd9")


def webp(width, height, color):
    """A lossless image of one color."""
    red, green, blue = color
    # From the lowest bit on: extents, no alpha, version 0, no transform, cache or groups; a code of one symbol for green,
    # red, blue, alpha and distance.
    parts = [(width - 1, 14), (height - 1, 14), (0, 1), (0, 3), (0, 3)]
    for symbol in (green, red, blue, 255, 0):
        parts += [(1, 1), (0, 1), (1, 1), (symbol, 8)]
    bits, at = 0, 0
    for value, size in parts:
        bits |= value << at
        at += size
    content = b"\x2f" + bits.to_bytes(-(-at // 8), "little")
    chunk = b"VP8L" + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk
