# SPDX-License-Identifier: Apache-2.0
"""Volumes that nibabel writes, byte by byte, and what it reads from them: values, channels last and z first, and affines."""

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


def placed(head, sform=0, qform=0, qfac=1.0):
    """The header with a place in space that is exact in float32."""
    head["pixdim"][:4] = [qfac, 0.5, 0.75, 2.5]
    head.set_xyzt_units("mm", "sec")
    head["sform_code"], head["qform_code"] = sform, qform
    head["quatern_b"], head["quatern_c"], head["quatern_d"] = 0.5, -0.25, 0.125
    head["qoffset_x"], head["qoffset_y"], head["qoffset_z"] = -12.5, 7.25, 40.0
    head["srow_x"], head["srow_y"], head["srow_z"] = [0.5, 0.1, 0, -9], [0, 0.75, -0.2, 8], [0.3, 0, 2.5, 17.5]
    return head


def geometry(order="<", extents=(2, 3, 2), **place):
    """A file with a place in space, its affine, and the file of the same values and place as float32."""
    stored = numpy.arange(numpy.prod(extents), dtype=numpy.int16).reshape(extents, order="F")
    content = {}
    for kind in (numpy.dtype("int16").newbyteorder(order), numpy.dtype("<f4")):
        head = placed(header(kind, extents, "<" if kind.kind == "f" else order, 1.0, 0.0), **place)
        content[kind.kind] = head.binaryblock + b"\0" * 4 + stored.astype(kind).tobytes(order="F")
    affine = nibabel.Nifti1Image.from_bytes(content["i"]).affine
    return {"file": content["i"].hex(), "affine": affine[:3].ravel().tolist(), "written": content["f"].hex()}


def cases():
    dtypes = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
    volumes = {f"{dtype} {order}": case(dtype, (2, 3, 2), order) for dtype in dtypes for order in "<>"}
    volumes["scaled"] = case("int16", (3, 2, 2), slope=0.25, inter=-1.5)
    volumes["channels"] = case("uint8", (2, 2, 3, 2), ">", slope=2.0, inter=1.0)
    volumes["packed"] = case("float32", (3, 1, 2), packed=True)
    geometries = {"affine": geometry(sform=2, qform=1), "quaternion": geometry(qform=1),
                  "mirrored": geometry(">", qform=2, qfac=-1.0), "neither": geometry(),
                  "channels": geometry(extents=(2, 1, 3, 2), sform=1)}
    return {"volumes": volumes, "geometries": geometries}
