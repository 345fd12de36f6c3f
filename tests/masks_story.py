"""A project of images with masks: as pixels, as COCO has them, and as somebody draws them elsewhere."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.projects.label_studio_config import read_config
from testbed.worlds import World
from tests.shapes_story import LABELS, SIZE, Shape, Story, world_of_shapes

CONFIG = """<View><Image name="picture" value="$image"/>
<BrushLabels name="animals" toName="picture">
  <Label value="Cat" alias="cat" background="#b3401d"/>
  <Label value="Dog 🐕" alias="dog"/>
</BrushLabels></View>"""
WIDTH, HEIGHT = SIZE
Pixels = NDArray[np.uint8]


def runs(flat: Pixels) -> list[int]:
    """Run lengths, beginning outside."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat]))).tolist()
    places = [0, *edges, len(flat)]
    return [after - before for before, after in pairwise(places)]


def coco(label: str, pixels: Pixels) -> Shape:
    return {"label": label, "size": list(pixels.shape), "counts": runs(pixels.ravel(order="F"))}


def pixels_of(mask: Shape) -> Pixels:
    height, width = mask["size"]
    inside = np.arange(len(mask["counts"])) % 2
    return np.repeat(inside, mask["counts"]).astype(np.uint8).reshape((height, width), order="F")


def ellipse(x: float, y: float, across: float, down: float, size: tuple[int, int] = SIZE) -> Pixels:
    rows, columns = np.mgrid[: size[1], : size[0]]
    return (((columns - x) / across) ** 2 + ((rows - y) / down) ** 2 <= 1).astype(np.uint8)


def some_masks(chance: random.Random) -> list[Shape]:
    """Up to three animals."""
    return [
        coco(
            chance.choice(LABELS),
            ellipse(13 + 26 * n, chance.uniform(20, 40), chance.uniform(8, 12), chance.uniform(10, 16)),
        )
        for n in range(chance.randint(0, 3))
    ]


def nearly(masks: Sequence[Shape], chance: random.Random) -> list[Shape]:
    """As somebody else draws the same, a pixel beside, in another order."""
    moved = [coco(one["label"], np.roll(pixels_of(one), 1, axis=chance.randint(0, 1))) for one in masks]
    return chance.sample(moved, len(moved))


def wrong(masks: Sequence[Shape], chance: random.Random) -> list[Shape]:
    """With a mask that is not there, or with one label for the other."""
    if not masks or chance.random() < 0.5:
        return [*masks, coco("cat", ellipse(70, 50, 9, 9)), coco("dog", ellipse(8, 50, 9, 9))]
    return [{**masks[0], "label": "dog" if masks[0]["label"] == "cat" else "cat"}, *masks[1:]]


def world_of_masks(count: int, *, seed: int = 5) -> tuple[World, dict[str, list[Shape]]]:
    """The project with its two sources, and what there is to see by the name of the image."""
    return world_of_shapes(count, Story(CONFIG, some_masks, nearly, wrong), seed=seed)


def painted(pixels: Pixels) -> list[int]:
    """As Label Studio packs it: in a colour, and half as opaque at some of its pixels."""
    from label_studio_sdk.converter.brush import encode_rle  # takes two seconds

    colored = np.zeros((*pixels.shape, 4), dtype=np.uint8)
    colored[pixels > 0] = (179, 64, 29, 255)
    colored[::7, :, 3] //= 2
    packed: list[int] = encode_rle(colored.ravel())
    return packed


def regions(masks: Sequence[Shape], config: str = CONFIG) -> list[dict[str, Any]]:
    """As somebody draws them in Label Studio."""
    control = read_config(config).control
    return [
        {
            "from_name": control.name,
            "to_name": control.to_name,
            "type": "brushlabels",
            "original_width": mask["size"][1],
            "original_height": mask["size"][0],
            "image_rotation": 0,
            "value": {"format": "rle", "rle": painted(pixels_of(mask)), "brushlabels": [mask["label"]]},
        }
        for mask in masks
    ]


def cvat_mask(mask: Shape) -> dict[str, str]:
    """The fields of CVAT's element: runs along the rows of the part in which the mask lies."""
    pixels = pixels_of(mask)
    rows, columns = np.nonzero(pixels)
    left, top = int(columns.min()), int(rows.min())
    part = pixels[top : rows.max() + 1, left : columns.max() + 1]
    return {
        "label": mask["label"],
        "rle": ", ".join(map(str, runs(part.ravel()))),
        "left": str(left),
        "top": str(top),
        "width": str(part.shape[1]),
        "height": str(part.shape[0]),
    }
