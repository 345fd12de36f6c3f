"""Whether bytes are an image that a browser can show."""

import base64
import io

import PIL.Image
import PIL.ImageOps
from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.imports.faults import fault
from annotation.imports.formats.base import Image

# No SVG: it can hold scripts.
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")


def checked_image(content: bytes) -> Image:
    """Decode the image, its first frame where it moves, to see that it is whole. Raises InputError if not.

    The media type comes from the content, never from a name.
    """
    if len(content) > settings.HYPAC_MAX_IMAGE_BYTES:
        raise fault(
            gettext_noop("The image is larger than %(hypac_max_image_bytes)s bytes (HYPAC_MAX_IMAGE_BYTES)."),
            hypac_max_image_bytes=f"{settings.HYPAC_MAX_IMAGE_BYTES:,}",
        )
    try:
        with PIL.Image.open(io.BytesIO(content), formats=FORMATS) as image:
            media_type = PIL.Image.MIME[image.format or ""]
            width, height = image.size
            small = width * height <= settings.HYPAC_MAX_IMAGE_PIXELS
            if small:
                image.verify()
        if small:
            with PIL.Image.open(io.BytesIO(content), formats=FORMATS) as image:
                image.load()
    except PIL.UnidentifiedImageError:
        raise fault(gettext_noop("This is no PNG, JPEG, GIF, WebP or BMP image.")) from None
    except PIL.Image.DecompressionBombError:
        small = False
    except MemoryError:
        raise
    except Exception as error:  # decoders meet hostile bytes with exceptions of every kind
        raise fault(
            gettext_noop("The image is damaged and cannot be shown (%(error)s)."), error=error
        ) from None
    if not small:
        raise fault(
            gettext_noop(
                "The image has more than %(hypac_max_image_pixels)s pixels (HYPAC_MAX_IMAGE_PIXELS)."
            ),
            hypac_max_image_pixels=f"{settings.HYPAC_MAX_IMAGE_PIXELS:,}",
        )
    return Image(content, media_type)


def thumbnail(image: Image, *, side: int = 128) -> str:
    """The image made small, as a data address; "" where it cannot be made smaller."""
    try:
        with PIL.Image.open(io.BytesIO(image.content), formats=FORMATS) as opened:
            opened.draft("RGB", (side, side))
            small = PIL.ImageOps.exif_transpose(opened).convert("RGBA")
            small.thumbnail((side, side))
            out = io.BytesIO()
            small.save(out, "WEBP", quality=80, lossless=max(small.size) <= side // 2)
    except MemoryError:
        raise
    except Exception:  # decoders meet hostile bytes with exceptions of every kind
        return ""
    return f"data:image/webp;base64,{base64.b64encode(out.getvalue()).decode()}"
