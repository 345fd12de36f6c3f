"""Whether bytes are an image that a browser can show.

An image of the most pixels that are allowed takes some hundred megabytes once it is decoded, whatever its
bytes. Therefore a process decodes one after the other, in one thread: memory that several threads have used
and given back stays with each of them.
"""

import base64
import io
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import PIL.Image
import PIL.ImageOps
from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.common.image_sizes import FORMATS
from annotation.imports.allowance import seconds_left_of_look
from annotation.imports.faults import fault
from annotation.imports.formats.base import Image
from annotation.imports.limits import ImportLimitError

STEP = 4
"""A large image is reduced to so many times the size that is wanted coarsely, and from there finely."""

T = TypeVar("T")
_decoder = ThreadPoolExecutor(max_workers=1)


def checked_image(content: bytes) -> Image:
    """Decode the image, its first frame where it moves, to see that it is whole. Raises InputError if not,
    ImportLimitError where others are decoded for as long as whoever waits may wait.

    The media type comes from the content, never from a name.
    """
    if len(content) > settings.HYPAC_MAX_IMAGE_BYTES:
        raise fault(
            gettext_noop("The image is larger than %(hypac_max_image_bytes)s bytes (HYPAC_MAX_IMAGE_BYTES)."),
            hypac_max_image_bytes=f"{settings.HYPAC_MAX_IMAGE_BYTES:,}",
        )
    decoded = _decode(_media_type, content)
    try:
        media_type = _result(decoded)
    except PIL.UnidentifiedImageError:
        raise fault(gettext_noop("This is no PNG, JPEG, GIF, WebP or BMP image.")) from None
    except PIL.Image.DecompressionBombError:
        media_type = None
    except (MemoryError, ImportLimitError):
        raise
    except Exception as error:  # decoders meet hostile bytes with exceptions of every kind
        raise fault(
            gettext_noop("The image is damaged and cannot be shown (%(error)s)."), error=error
        ) from None
    if media_type is None:
        raise fault(
            gettext_noop(
                "The image has more than %(hypac_max_image_pixels)s pixels (HYPAC_MAX_IMAGE_PIXELS)."
            ),
            hypac_max_image_pixels=f"{settings.HYPAC_MAX_IMAGE_PIXELS:,}",
        )
    return Image(content, media_type)


def thumbnail(image: Image, *, side: int = 128) -> str:
    """The image made small, as a data address; "" where it cannot be made smaller. Raises ImportLimitError as
    `checked_image` does.
    """
    decoded = _decode(_reduced, image.content, STEP * side)
    try:
        small = PIL.ImageOps.exif_transpose(_result(decoded)).convert("RGBA")
        small.thumbnail((side, side))
        out = io.BytesIO()
        small.save(out, "WEBP", quality=80, lossless=max(small.size) <= side // 2)
    except (MemoryError, ImportLimitError):
        raise
    except Exception:  # decoders meet hostile bytes with exceptions of every kind
        return ""
    return f"data:image/webp;base64,{base64.b64encode(out.getvalue()).decode()}"


# --- In the one thread --------------------------------------------------------------------------------------


def _media_type(content: bytes) -> str | None:
    """Of an image that is whole; None where its header says more pixels than are decoded."""
    with PIL.Image.open(io.BytesIO(content), formats=FORMATS) as image:
        width, height = image.size
        if width * height > settings.HYPAC_MAX_IMAGE_PIXELS:
            return None
        image.verify()
    with PIL.Image.open(io.BytesIO(content), formats=FORMATS) as image:
        image.load()
        return PIL.Image.MIME[image.format or ""]


def _reduced(content: bytes, side: int) -> PIL.Image.Image:
    """The image with no side longer than that. A large one is never copied whole, not into other colours
    either: only some of its pixels are taken.
    """
    with PIL.Image.open(io.BytesIO(content), formats=FORMATS) as image:
        image.draft("RGB", (side, side))
        scale = min(1.0, side / max(image.size))
        width, height = (max(1, round(length * scale)) for length in image.size)
        return image.resize((width, height), PIL.Image.Resampling.NEAREST)


def _decode(work: Callable[..., T], *given: object) -> Future[T]:
    """Have it done once all that was asked for before is done."""
    return _decoder.submit(work, *given)


def _result(decoded: Future[T]) -> T:
    try:
        return decoded.result(timeout=seconds_left_of_look())
    except TimeoutError:
        decoded.cancel()
        words = gettext_noop("Other images are being looked at. Try again in a moment.")
        raise fault(words, raised_as=ImportLimitError) from None


def _forget() -> None:
    """A forked process has none of its parent's threads: it starts its own."""
    global _decoder
    _decoder = ThreadPoolExecutor(max_workers=1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
