"""Run lengths of masks: turned, placed, packed as Label Studio packs them, and COCO's compressed form."""

import base64
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from annotation.task_types import brush, rle
from tests.masks_story import runs

pytestmark = pytest.mark.costly

# A stroke with the brush of Label Studio 1.23.2 on an image of 320 x 240, packed by its editor.
STROKE = (
    "AASwADkb////AOqvYBGXcE8wCM/j7I/+PsjjYxTgnGARi0fdf/4/aOojMeCbYBG14f/48WNV4JpgEb1if/j1o1fgmWARk+L/"
    "+PUjTOCY4BGcx62L/+OjjFuCY4BGsx7OL/+OfjIeCY4BG0x42L/+OejIuCY4BGKxx+L/+OMjI+CY4BGLxxuL/+PMja+CY4BG"
    "Px3+L/+PjjauCY4BGrR4+L/+PjjZeCY4BGix4+L/+O6jI+CY4BGjx5GL/+OyjMeCY4BGsx3WL/+OyjMeCY4BGaR3GL/+OmjM"
    "eCY4BGcx3GL/+PjjfYwzgmGARnkdXi//j540ngmOARocfRi//juIzngmGARhEbjH14v/47mM44JhgEYTG5R9WL/+PFjQOCYY"
    "BGExpUdLi//jlIxLgmOARiUdXiv/j9I4iMO4JjgEZrHU4r/4+SMq4JlgEZVHU4n/47TgmmARlcdzh//j1eCbYBGux9OF/+OI"
    "4JvgEYFGvx7dv/j2owrgnWARpsc7HGRkP//8A///gHyMMAA="
)
SIZES = st.tuples(st.integers(1, 40), st.integers(1, 40))


@st.composite
def masks(draw):
    """Pixels, by rows: noise, blocks that lie over each other, all or nothing."""
    height, width = draw(SIZES)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return (random.random((height, width)) < random.random()).astype(np.uint8)
    pixels = np.full((height, width), kind == 1, dtype=np.uint8)
    for _ in range(kind - 2):
        top, left = random.integers(0, height), random.integers(0, width)
        pixels[top : random.integers(top, height) + 1, left : random.integers(left, width) + 1] ^= 1
    return pixels


def edges(flat):
    return rle.edges_of(runs(flat))


@settings(max_examples=150, deadline=None)
@given(masks())
def test_columns_and_rows_are_turned_into_each_other(pixels):
    height, width = pixels.shape
    columns, rows = edges(pixels.ravel(order="F")), edges(pixels.ravel())
    assert rle.transposed(columns, height, width) == rows
    assert rle.transposed(rows, width, height) == columns
    padded = np.pad(pixels.astype(int), 1)
    sides = sum(int(abs(np.diff(padded, axis=axis)).sum()) for axis in (0, 1))
    assert rle.perimeter(columns, height) == rle.perimeter(rows, width) == sides
    assert rle.edges_of(rle.counts_of(rows, pixels.size)) == rows


@settings(max_examples=150, deadline=None)
@given(masks(), st.integers(0, 2**32 - 1))
def test_label_studio_packs_and_unpacks_the_same(pixels, seed):
    from label_studio_sdk.converter.brush import decode_rle, encode_rle, mask2rle  # takes two seconds

    rows = edges(pixels.ravel())
    packed = brush.packed(rows, pixels.size)
    assert (decode_rle(packed).reshape(*pixels.shape, 4) == pixels[..., None] * 255).all()
    assert brush.unpacked(packed, pixels.size) == rows
    assert brush.unpacked(mask2rle(pixels * 255), pixels.size) == rows
    random = np.random.default_rng(seed)
    painted = np.zeros((*pixels.shape, 4), dtype=np.uint8)
    painted[pixels > 0] = random.integers(1, 256, (int(pixels.sum()), 4))
    assert brush.unpacked(encode_rle(painted.ravel()), pixels.size) == rows


def test_a_stroke_of_label_studios_brush_is_read():
    from label_studio_sdk.converter.brush import decode_rle  # takes two seconds

    stroke = list(base64.b64decode(STROKE))
    alpha = decode_rle(stroke).reshape(240, 320, 4)[..., 3]
    assert 0 < alpha[alpha > 0].min() < 255
    rows = brush.unpacked(stroke, 320 * 240)
    assert rows == edges((alpha > 0).astype(np.uint8).ravel())
    assert sum(rows[1::2]) - sum(rows[::2]) == 407


@settings(max_examples=100, deadline=None)
@given(masks(), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_a_part_lies_where_it_is_placed(pixels, left, top, beside):
    whole = np.pad(pixels, ((top, 3), (left, beside)))
    found = rle.placed(edges(pixels.ravel()), pixels.shape[1], left=left, top=top, width=whole.shape[1])
    assert found == edges(whole.ravel())


def test_a_run_of_nothing_is_no_run():
    assert rle.counts_of(rle.edges_of([0, 2, 0, 3, 1, 0, 4, 0]), 10) == (0, 5, 5)
    assert rle.counts_of(rle.edges_of([10]), 10) == rle.counts_of(rle.edges_of([]), 10) == (10,)


# As pycocotools.mask.encode writes them.
@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("06", [0, 6]),
        ("<", [12]),
        ("52203", [5, 2, 2, 2, 5]),
        ("k3g^4^f8ZaKacT1", [123, 4567, 8910, 1, 46399]),
    ],
)
def test_the_compressed_form_of_coco_is_read(text, counts):
    assert rle.from_text(text) == counts


@pytest.mark.parametrize("text", ["P", "0é", "!", "PPPPPPPPP0", "@", "5O", "0" * 2 + "O" * 4])
def test_what_is_no_compressed_form_is_told(text):
    assert rle.from_text(text) is None


@pytest.mark.parametrize(
    "packed",
    [
        "rle",
        [],
        [1, 2, 3],
        [256] * 20,
        [True] * 20,
        [-1] * 20,
        brush.packed([0, 5], 10)[:-2],
        brush.packed([0, 5], 11),
        [0, 0, 0, 40, 57, 0, 0, 0, 0],
    ],
)
def test_what_label_studio_does_not_write_is_told(packed):
    assert brush.unpacked(packed, 10) is None


def test_a_large_image_costs_its_runs_and_its_outline():
    began = time.perf_counter()
    side = 31_622
    assert rle.perimeter([0, side * side], side) == 4 * side
    assert rle.transposed([0, side * side], side, side) == [0, side * side]
    packed = brush.packed([5, side * side - 5], side * side)
    assert brush.unpacked(packed, side * side) == [5, side * side - 5]
    assert time.perf_counter() - began < 2
