"""Sizes of images whose EXIF is damaged: browsers show them, and so do we."""

import io

import pytest
from PIL import Image

from annotation.common.image_sizes import size_in

GOOD = Image.Exif()
GOOD[0x0112] = 6  # on its side


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
@pytest.mark.parametrize(
    ("exif", "size"),
    [
        (b"Exif\0\0garbage!", (30, 40)),
        (b"Exif\0\0II+\0\x08\0\0\0", (30, 40)),
        (b"Exif\0\0II*\0\xff\xff\xff\xff", (30, 40)),
        (GOOD.tobytes(), (40, 30)),
    ],
)
def test_an_image_has_its_size_whatever_its_exif(form: str, exif: bytes, size: tuple[int, int]) -> None:
    file = io.BytesIO()
    Image.new("RGB", (40, 30)).save(file, format=form, exif=exif)
    file.seek(0)
    assert size_in(file) == size


def test_what_is_no_image_is_told() -> None:
    with pytest.raises(OSError, match="cannot identify"):
        size_in(io.BytesIO(b"<svg/>"))
