"""A project of images with boxes: imported as a zip, answered by two models in files, labelled elsewhere."""

import io
import json
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from annotation.common.files import store_file
from annotation.common.value_reader import reader_of
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.models import Job, Project
from annotation.projects.label_studio_config import read_config
from annotation.projects.manage import create_project
from routing.sources.manage import save_source
from testbed.factories import add_member, make_image, make_user
from testbed.worlds import World
from tests.annotation.imports.test_importers import make_zip
from tests.routing.sources.sending import sent

CONFIG = """<View><Image name="picture" value="$image"/>
<RectangleLabels name="animals" toName="picture">
  <Label value="Cat" alias="cat" background="#b3401d"/>
  <Label value="Dog 🐕" alias="dog"/>
</RectangleLabels></View>"""
LABELS = ("cat", "dog")
SIZE = (80, 60)

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
    chance = random.Random(seed)
    project = create_project(
        user=make_user("manager"), name="Animals", label_config=config, human_cost=Decimal(8)
    )
    files = {f"pictures/{number}.png": make_image(number, size=SIZE) for number in range(count)}
    brought(project, make_zip(files))
    truth = {name: some_boxes(chance) for name in files}
    for number, rate in enumerate((1.2, 0.4), start=1):
        source = save_source(
            project=project,
            user=project.created_by,
            name=f"Detector {number}",
            backend="uploaded",
            params={"model": f"detector-{number}", "revision": "1"},
            cost_per_label=Decimal(number),
        )
        job = sent(source, answers(truth, rate, chance))
        assert (job.state, job.result["added"]) == (Job.State.DONE, count), job.result
    people = [add_member(project) for _ in range(2)]
    return World(project, project.created_by, people, dict(read(project, truth))), truth


def brought(project: Project, archive: bytes) -> None:
    stored = store_file(
        project=project,
        content=io.BytesIO(archive),
        original_name="pictures.zip",
        media_type="application/zip",
    )
    job = start_import(project=project, user=project.created_by, stored_file=stored, mapping=ColumnMapping())
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    project.refresh_from_db()


def answers(truth: Mapping[str, list[Box]], rate: float, chance: random.Random) -> list[dict[str, Any]]:
    """One line of a predictions file for each image: boxes, and how sure the model is."""
    lines = []
    for name, boxes in truth.items():
        doubt = chance.random()
        said = wrong(boxes, chance) if chance.random() < rate * doubt else nearly(boxes, chance)
        lines.append({"external_id": name, "label": said, "confidence": round(1 - doubt, 6)})
    return lines


def read(project: Project, truth: Mapping[str, list[Box]]) -> dict[str, str]:
    """In the form in which they are stored."""
    reader = reader_of(project)
    return {name: str(reader(boxes)[0]) for name, boxes in truth.items()}


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
