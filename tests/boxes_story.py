"""A project of images with boxes: imported as a zip, answered by two models in files, labelled elsewhere."""

import json
import random
from collections.abc import Sequence
from typing import Any

from annotation.projects.label_studio_config import read_config
from testbed.worlds import World
from tests.shapes_story import LABELS, SIZE, Story, world_of_shapes

CONFIG = """<View><Image name="picture" value="$image"/>
<RectangleLabels name="animals" toName="picture">
  <Label value="Cat" alias="cat" background="#b3401d"/>
  <Label value="Dog 🐕" alias="dog"/>
</RectangleLabels></View>"""

Box = dict[str, Any]


def some_boxes(chance: random.Random) -> list[Box]:
    """Up to three boxes that lie apart."""
    found = []
    for column in range(chance.randint(0, 3)):
        x, width = 33 * column + chance.uniform(0, 8), chance.uniform(10, 22)
        y, height = chance.uniform(0, 50), chance.uniform(10, 45)
        sides = {"x": round(x, 3), "y": round(y, 3), "width": round(width, 3), "height": round(height, 3)}
        found.append({"label": chance.choice(LABELS), **sides})
    return found


def nearly(boxes: Sequence[Box], chance: random.Random) -> list[Box]:
    """As somebody else draws the same boxes, in another order."""
    moved = [{**box, "x": round(box["x"] + chance.uniform(-0.02, 0.02) * (box["x"] > 1), 4)} for box in boxes]
    return chance.sample(moved, len(moved))


def wrong(boxes: Sequence[Box], chance: random.Random) -> list[Box]:
    """With a box that is not there, or with one label for the other."""
    if not boxes or chance.random() < 0.5:
        return [*boxes, {"label": "cat", "x": 90, "y": 96, "width": 9, "height": 3.5}]
    first = {**boxes[0], "label": "dog" if boxes[0]["label"] == "cat" else "cat"}
    return [first, *boxes[1:]]


def world_of_boxes(count: int, *, seed: int = 5, config: str = CONFIG) -> tuple[World, dict[str, list[Box]]]:
    """The project with its two sources, and what there is to see by the name of the image."""
    return world_of_shapes(count, Story(config, some_boxes, nearly, wrong), seed=seed)


def regions(boxes: Sequence[Box], config: str = CONFIG) -> list[dict[str, Any]]:
    """As somebody draws them in Label Studio."""
    control = read_config(config).control
    return [
        {
            "from_name": control.name,
            "to_name": control.to_name,
            "type": "rectanglelabels",
            "original_width": SIZE[0],
            "original_height": SIZE[1],
            "image_rotation": 0,
            "value": {
                **{side: box[side] for side in ("x", "y", "width", "height")},
                "rotation": 0,
                "rectanglelabels": [box["label"]],
            },
        }
        for box in boxes
    ]


def sides_of(text: str) -> list[Box]:
    found: list[Box] = json.loads(text)
    return found
