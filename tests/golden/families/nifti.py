# SPDX-License-Identifier: Apache-2.0
"""Volumes that nibabel writes, byte by byte, and the values that it reads from them: channels last, z first."""

import gzip

import nibabel
import numpy


def header(dtype, extents, order, slope, inter):
    head = nibabel.Nifti1Header(endianness=order)
    head.set_data_dtype(dtype)
    head.set_data_shape(extents)
    head["magic"], head["vox_offset"] = b"n+1", 352
    head["scl_slope"], head["scl_inter"] = slope, inter
    return head


def case(dtype, extents, order="<", slope=0.0, inter=0.0, packed=False):
    stored = numpy.arange(numpy.prod(extents)).reshape(extents, order="F") * 5 % 23
    kind = numpy.dtype(dtype).newbyteorder(order)
    stored = (stored - 7 if kind.kind in "if" else stored).astype(kind)
    content = header(kind, extents, order, slope, inter).binaryblock + b"\0" * 4 + stored.tobytes(order="F")
    values = numpy.asanyarray(nibabel.Nifti1Image.from_bytes(content).dataobj, dtype=float)
    values = values.reshape(extents if len(extents) == 4 else (*extents, 1)).transpose(2, 1, 0, 3)
    content = gzip.compress(content, mtime=0) if packed else content
    return {"file": content.hex(), "shape": list(values.shape), "values": values.ravel().tolist()}


def cases():
    dtypes = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
    volumes = {f"{dtype} {order}": case(dtype, (2, 3, 2), order) for dtype in dtypes for order in "<>"}
    volumes["scaled"] = case("int16", (3, 2, 2), slope=0.25, inter=-1.5)
    volumes["channels"] = case("uint8", (2, 2, 3, 2), ">", slope=2.0, inter=1.0)
    volumes["packed"] = case("float32", (3, 1, 2), packed=True)
    return {"volumes": volumes}
