"""How Label Studio packs a mask: bits of which each block is a run of one value, or values one by one.

The values are those of an image's pixels along its rows, four each, of which the last, how opaque it is, says
what is in the mask: all that is not 0, as Label Studio shows it. (rle-pack of thi.ng/umbrella: 32 bits how
many values, 5 bits their width less 1, four times 4 bits the widths less 1 that the length of a block can
have; a block is 1 bit, whether it is a run, 2 bits, which width, its length less 1, and its value or values.)
"""

from collections.abc import Iterator, Sequence
from typing import Any

CHANNELS, OPAQUE = 4, 255
WIDTHS = (3, 4, 8, 16)
_LONGEST = 2 ** WIDTHS[-1]


def unpacked(rle: Any, pixels: int) -> list[int] | None:
    """Where the mask begins and ends, along the rows of an image of so many pixels; None for what is no such
    packing of it.
    """
    if not isinstance(rle, list) or not all(type(byte) is int and 0 <= byte < 256 for byte in rle):
        return None
    if len(rle) < 8:
        return None
    bits = bin(int.from_bytes(b"\1" + bytes(rle), "big"))[3:]
    if int(bits[:32], 2) != CHANNELS * pixels:
        return None
    try:
        return _edges(_runs(bits, CHANNELS * pixels))
    except ValueError:  # a block reaches beyond the bits
        return None


def _runs(bits: str, values: int) -> Iterator[tuple[int, int, bool]]:
    """(first, after, opaque) in pixels. Raises ValueError where the bits end before the values do, or the
    values before a block.
    """
    word = int(bits[32:37], 2) + 1
    widths = [int(bits[place : place + 4], 2) + 1 for place in range(37, 53, 4)]
    at, done = 53, 0
    while done < values:
        width = widths[int(bits[at + 1 : at + 3], 2)]
        end = done + 1 + int(bits[at + 3 : at + 3 + width], 2)
        is_run, at = bits[at] == "1", at + 3 + width
        if end > values or at + word * (1 if is_run else end - done) > len(bits):
            raise ValueError("a block that is cut off")
        # How opaque a pixel is: the last of its values.
        first, after = done // CHANNELS, end // CHANNELS
        if is_run:
            yield first, after, int(bits[at : at + word], 2) > 0
            at += word
        else:
            for pixel in range(first, after):
                place = at + (CHANNELS * pixel + CHANNELS - 1 - done) * word
                yield pixel, pixel + 1, int(bits[place : place + word], 2) > 0
            at += (end - done) * word
        done = end


def _edges(runs: Iterator[tuple[int, int, bool]]) -> list[int]:
    edges: list[int] = []
    for first, after, opaque in runs:
        if not opaque or first == after:
            continue
        if edges and edges[-1] == first:
            edges[-1] = after
        else:
            edges += [first, after]
    return edges


def packed(edges: Sequence[int], pixels: int) -> list[int]:
    """A mask along the rows of an image, as Label Studio reads it."""
    parts = [f"{CHANNELS * pixels:032b}", f"{8 - 1:05b}", *(f"{width - 1:04b}" for width in WIDTHS)]
    place = 0
    for number, end in enumerate((*edges, pixels)):
        parts += _blocks(CHANNELS * (end - place), OPAQUE if number % 2 else 0)
        place = end
    bits = "".join(parts)
    bits += "0" * (-len(bits) % 8)
    return list(int(bits, 2).to_bytes(len(bits) // 8, "big"))


def _blocks(length: int, value: int) -> Iterator[str]:
    """A run of values in blocks."""
    while length > 0:
        size = min(length, _LONGEST)
        kind = next(kind for kind, width in enumerate(WIDTHS) if size <= 2**width)
        yield f"1{kind:02b}{size - 1:0{WIDTHS[kind]}b}{value:08b}"
        length -= size
