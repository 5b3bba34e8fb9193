# SPDX-License-Identifier: Apache-2.0
"""Files that PIL writes, byte by byte, and the pixels that it reads from them: WebP, images whose EXIF block says how to
turn them upright (ImageOps.exif_transpose), and masks that are scaled to the nearest pixel and cropped in the middle."""

import io

import numpy
from PIL import Image, ImageOps

ORIENTATION = 0x0112


def picture(width, height, channels=3):
    y, x = numpy.mgrid[:height, :width]
    planes = [x * 255 // width, y * 255 // height, (7 * x + 13 * y) % 256, (31 * x * y) % 256]
    return Image.fromarray(numpy.stack(planes[:channels], -1).astype("uint8"))


def stored(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def case(content):
    """Decoded and turned by PIL."""
    pixels = numpy.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB"))
    height, width, _ = pixels.shape
    return {"file": content.hex(), "width": width, "height": height, "pixels": pixels.ravel().tolist()}


def turned(orientation, order):
    """An EXIF block of one entry, in the byte order "II" or "MM"."""
    endian = "little" if order == "II" else "big"
    number = lambda value, count: value.to_bytes(count, endian)
    tiff = order.encode() + number(42, 2) + number(8, 4) + number(1, 2)
    entry = number(ORIENTATION, 2) + number(3, 2) + number(1, 4) + number(orientation, 2) + b"\0\0"
    return b"Exif\0\0" + tiff + entry + number(0, 4)


def mask(width, height, resize, size, mode="L"):
    """Resize(resize, NEAREST) and CenterCrop(size), as torchvision computes them."""
    y, x = numpy.mgrid[:height, :width]
    values = ((x * 5 + y * 3 + x * y) % (2 if mode == "1" else 16)).astype("uint8")
    image = Image.fromarray(values)
    if mode == "P":
        image.putpalette([(37 * i) % 256 for i in range(48)])
    content = stored(image if mode != "1" else Image.fromarray(values * 255).convert("1"), "PNG")
    scaled = [side * resize // min(width, height) for side in (width, height)]
    left, top = (round((side - size) / 2) for side in scaled)
    cropped = Image.fromarray(values).resize(scaled, Image.NEAREST).crop((left, top, left + size, top + size))
    return {"file": content.hex(), "width": width, "height": height, "resize": resize, "size": size,
            "values": numpy.asarray(cropped).ravel().tolist()}


def cases():
    photo = picture(11, 7)
    webp = {
        "lossless": case(stored(photo, "WEBP", lossless=True)),
        "lossy": case(stored(picture(33, 18), "WEBP", quality=80)),
        "alpha": case(stored(picture(9, 6, 4), "WEBP", lossless=True, exact=True)),
        "lossy_alpha": case(stored(picture(17, 20, 4), "WEBP", quality=70)),
        "grey": case(stored(picture(8, 5).convert("L"), "WEBP", lossless=True)),
    }
    exif = {}
    for orientation in range(0, 10):
        order = "II" if orientation % 2 else "MM"
        block = turned(orientation, order)
        exif[f"jpeg {orientation}"] = case(stored(picture(21, 13), "JPEG", quality=95, subsampling=0, exif=block))
        exif[f"png {orientation}"] = case(stored(photo, "PNG", exif=block))
        exif[f"webp {orientation}"] = case(stored(photo, "WEBP", lossless=True, exif=block))
    masks = {"smaller": mask(40, 30, 20, 16), "larger": mask(9, 7, 14, 12), "half": mask(24, 16, 8, 8),
             "palette": mask(33, 50, 24, 24, "P"), "one bit": mask(21, 17, 12, 10, "1")}
    return {"webp": webp, "exif": exif, "masks": masks}
