"""Run lengths of a mask: how many pixels outside and inside follow each other, beginning outside.

`counts` go along lines of `length` pixels: down the columns of an image, as COCO has them, or along its rows,
as Label Studio and CVAT do. Nothing here makes pixels of them: what a mask costs is its runs and its outline.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise

import numpy as np

Counts = tuple[int, ...]
Edges = Sequence[int]
"""Where inside begins and ends, in turn."""
_BITS, _MORE, _SIGN, _ZERO = 5, 0x20, 0x10, 48


def edges_of(counts: Sequence[int]) -> list[int]:
    """Along all lines; two runs of one kind with nothing between them are one."""
    return _met_once(islice(accumulate(counts), len(counts) // 2 * 2))


def _met_once(places: Iterable[int]) -> list[int]:
    """Of places in their order those that are not there twice: there inside ends and begins again."""
    found = list[int]()
    for place in places:
        if found and found[-1] == place:
            found.pop()
        else:
            found.append(place)
    return found


def counts_of(edges: Edges, pixels: int) -> Counts:
    """The one way to write them: no run is empty but the first, and the last pixel ends the last run."""
    found = [end - start for start, end in pairwise((0, *edges))]
    return (*found, pixels - edges[-1]) if edges and edges[-1] < pixels else tuple(found) or (pixels,)


def lines(edges: Edges, length: int) -> Iterator[tuple[int, int, list[int]]]:
    """(first, after, edges within the line) of lines that have something in them, in their order: those from
    `first` to before `after` have the same.
    """
    line, within = -1, list[int]()
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        first, last = start // length, (end - 1) // length
        if first != line and within:
            yield line, line + 1, within
            within = []
        line = first
        if first == last:
            within += [start - first * length, end - first * length]
            continue
        yield first, first + 1, [*within, start - first * length, length]
        if first + 1 < last:
            yield first + 1, last, [0, length]
        line, within = last, [0, end - last * length]
    if within:
        yield line, line + 1, within


def _steps(edges: Edges, length: int) -> Iterator[tuple[int, list[int]]]:
    """(line, edges within it) of what is otherwise than in the line before; beyond the image is nothing."""
    before, after = list[int](), 0
    for first, end, within in lines(edges, length):
        if before and first > after:
            yield after, before
            before = []
        if differs := sorted(set(before) ^ set(within)):
            yield first, differs
        before, after = within, end
    if before:
        yield after, before


def perimeter(edges: Edges, length: int) -> int:
    """How many sides of pixels lie between inside and outside."""
    along = sum(len(within) * (after - first) for first, after, within in lines(edges, length))
    return along + sum(sum(differs[1::2]) - sum(differs[::2]) for _line, differs in _steps(edges, length))


def transposed(edges: Edges, length: int, number: int) -> list[int]:
    """The same mask along the other direction: of `number` lines of `length` pixels those across them. Takes
    as long as its outline: look at that first.
    """
    steps = list(_steps(edges, length))
    starts = np.array([start for _line, differs in steps for start in differs[::2]], dtype=np.int64)
    sizes = np.array([end for _line, differs in steps for end in differs[1::2]], dtype=np.int64) - starts
    line = np.repeat([line for line, _ in steps], [len(differs) // 2 for _, differs in steps]).astype(
        np.int64
    )
    if not len(sizes):
        return []
    # Each piece of the outline, as the place across at which it lies.
    behind = np.cumsum(sizes) - sizes
    across = np.arange(sizes.sum()) - np.repeat(behind - starts, sizes)
    places = np.sort(across * number + np.repeat(line, sizes))
    return _met_once(places.tolist())


def placed(edges: Edges, length: int, *, left: int, top: int, width: int) -> list[int]:
    """Of a mask along the rows of a part of an image, `length` wide, the edges in the whole of it, `width`
    wide; the part lies at `left` and `top`. Takes as long as the rows that it has something in.
    """
    return _met_once(
        row * width + left + edge
        for first, after, within in lines(edges, length)
        for row in range(first + top, after + top)
        for edge in within
    )


def from_text(text: str) -> list[int] | None:
    """The counts behind COCO's compressed form; None where it is none.

    Each number has groups of five bits, the least first, in the characters from "0" on; 0x20 says that more
    follow, 0x10 of the last that it is negative; from the fourth on it is the difference from the one two
    before it (pycocotools, rleFrString).
    """
    counts = list[int]()
    number, shift = 0, 0
    for character in text:
        group = ord(character) - _ZERO
        if not 0 <= group < 2 * _MORE or shift > 6 * _BITS:
            return None
        number |= (group & (_MORE - 1)) << shift
        shift += _BITS
        if group & _MORE:
            continue
        if group & _SIGN:
            number -= 1 << shift
        if len(counts) > 2:
            number += counts[-2]
        if number < 0:
            return None
        counts.append(number)
        number, shift = 0, 0
    return None if shift else counts
