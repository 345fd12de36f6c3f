"""What is read of CVAT's file, and what is not."""

import tracemalloc

import pytest

from annotation.errors import InputError
from annotation.task_types import SHAPES
from routing.elsewhere.cvat import answers_of

BOXES, MASKS = SHAPES
BOX = '<box label="cat" xtl="8" ytl="6" xbr="16" ybr="12"/>'


def of(images: str, *, kind=BOXES, empty: str = "wait"):
    return answers_of(f"<annotations>{images}</annotations>".encode(), kind, annotator="ann", empty=empty)


def image(within: str = BOX, *, width: str = "80", height: str = "60") -> str:
    return f'<image id="0" name="7_cat.png" width="{width}" height="{height}">{within}</image>'


def test_boxes_are_read_in_percent() -> None:
    (given,) = of(image())
    assert (given.item, given.problem) == (7, "")
    assert given.value == [{"label": "cat", "rotation": 0, "x": 10, "y": 10, "width": 10, "height": 10}]


@pytest.mark.parametrize("size", ["1e-999999", "0", "-80", "80.5", "1000001", "", "\u0668\u0660", "9" * 30])
def test_a_size_that_is_none_is_told_with_its_image_and_the_rest_is_read(size: str) -> None:
    wrong, right = of(image(width=size) + image())
    assert "whole numbers of pixels" in wrong.problem
    assert right.problem == ""


@pytest.mark.parametrize("place", ["1e-999999", "-1e-999999", "1e999999", "nan", "x"])
def test_a_place_that_is_none_is_no_error_of_ours(place: str) -> None:
    (given,) = of(image(BOX.replace('"8"', f'"{place}"')))
    assert given.value is not None
    assert given.value[0].get("x") in (0, None)


@pytest.mark.parametrize(
    "shape", ["<polygon/>", "<track><box/></track>", '<b:box xmlns:b="urn:b"/>', "<Box/>", "<cuboid/>"]
)
def test_only_a_frame_with_tags_alone_says_that_there_is_nothing(shape: str) -> None:
    wrong, right = of(image(shape) + image('<tag label="seen"/>'), empty="nothing")
    assert wrong.value is None
    assert "only rectangles" in wrong.problem
    assert (right.value, right.problem) == ([], "")


@pytest.mark.parametrize(
    ("within", "words"),
    [
        ("<track/>" + image(), "has a 'track'"),
        (image() * 1001, "More than 1,000 images"),
        ("<meta>" * 30 + "</meta>" * 30, "too deep"),
    ],
)
def test_a_file_that_is_something_else_is_refused(within: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        of(within)


def test_a_file_takes_little_more_memory_than_its_text() -> None:
    content = f"<annotations>{image('<box/>' * 170_000)}</annotations>".encode()
    tracemalloc.start()
    try:
        (given,) = answers_of(content, BOXES, annotator="ann", empty="wait")
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(given.value or ()) == 501, "one more than an image may have, so that it is refused"
    assert most < 6 * len(content)
