"""Images that are small to send and large to decode: one after the other, and never copied whole."""

import base64
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import PIL.Image
import PIL.ImageFile
import pytest

from annotation.imports import allowance
from annotation.imports.allowance import one_look
from annotation.imports.formats import images
from annotation.imports.formats.base import Image
from annotation.imports.formats.images import checked_image, thumbnail
from annotation.imports.limits import ImportLimitError

PNG = "image/png"


def picture(mode: str = "RGB", size: tuple[int, int] = (1500, 900), **saved: Any) -> bytes:
    out = io.BytesIO()
    PIL.Image.new(mode, size).save(out, "PNG", **saved)
    return out.getvalue()


def shown(address: str) -> PIL.Image.Image:
    return PIL.Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))


def test_a_process_decodes_one_image_after_the_other(monkeypatch: Any) -> None:
    threads: set[int] = set()
    load = PIL.ImageFile.ImageFile.load

    def noted(self: Any) -> Any:
        threads.add(threading.get_ident())
        return load(self)

    monkeypatch.setattr(PIL.ImageFile.ImageFile, "load", noted)
    content = picture()
    with ThreadPoolExecutor(4) as people:
        found = list(people.map(lambda _number: thumbnail(checked_image(content)), range(8)))
    assert len(set(found)) == 1
    assert found[0]
    assert len(threads) == 1


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L", "1", "I;16"])
def test_a_large_image_is_made_small_before_anything_else(mode: str, monkeypatch: Any) -> None:
    sizes: list[int] = []
    convert = PIL.Image.Image.convert

    def noted(self: Any, *given: Any, **named: Any) -> Any:
        sizes.append(max(self.size))
        return convert(self, *given, **named)

    content = picture(mode)
    monkeypatch.setattr(PIL.Image.Image, "convert", noted)
    address = thumbnail(Image(content, PNG))
    assert sizes
    assert max(sizes) <= images.STEP * 128
    assert shown(address).size == (128, 77)


def test_a_thumbnail_is_turned_as_its_image_says() -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # its top is on the right
    assert shown(thumbnail(Image(picture(exif=exif), PNG))).size == (77, 128)


def test_more_pixels_than_are_allowed_are_never_decoded(settings: Any, monkeypatch: Any) -> None:
    settings.HYPAC_MAX_IMAGE_PIXELS = 1_000
    content = picture()

    def load(self: Any) -> None:
        pytest.fail("it was decoded")

    monkeypatch.setattr(PIL.ImageFile.ImageFile, "load", load)
    with pytest.raises(Exception, match="more than 1,000 pixels"):
        checked_image(content)


def test_whoever_waits_is_told_that_others_are_before_them(monkeypatch: Any) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(allowance, "_request_seconds", lambda: 0.0)
    images._decode(go_on.wait, 30)
    try:
        with one_look(), pytest.raises(ImportLimitError, match="Try again in a moment"):
            checked_image(picture(size=(4, 4)))
    finally:
        go_on.set()
    assert checked_image(picture(size=(4, 4))).media_type == PNG
