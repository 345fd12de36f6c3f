"""A project of images with shapes on them: imported as a zip, answered by two models in files."""

import io
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from annotation.common.files import store_file
from annotation.common.value_reader import reader_of
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.models import Job, Project
from annotation.projects.manage import create_project
from routing.sources.manage import save_source
from testbed.factories import add_member, make_image, make_user
from testbed.worlds import World
from tests.annotation.imports.test_importers import make_zip
from tests.routing.sources.sending import sent

LABELS = ("cat", "dog")
SIZE = (80, 60)
"""Width and height."""

Shape = dict[str, Any]


@dataclass(frozen=True)
class Story:
    """What is on an image, the same as somebody else draws it, and what a model makes of it that is wrong."""

    config: str
    some: Callable[[random.Random], list[Shape]]
    nearly: Callable[[Sequence[Shape], random.Random], list[Shape]]
    wrong: Callable[[Sequence[Shape], random.Random], list[Shape]]


def world_of_shapes(count: int, story: Story, *, seed: int = 5) -> tuple[World, dict[str, list[Shape]]]:
    """The project with its two sources, and what there is to see by the name of the image."""
    chance = random.Random(seed)
    project = create_project(
        user=make_user("manager"), name="Animals", label_config=story.config, human_cost=Decimal(8)
    )
    files = {f"pictures/{number}.png": make_image(number, size=SIZE) for number in range(count)}
    brought(project, make_zip(files))
    truth = {name: story.some(chance) for name in files}
    for number, rate in enumerate((1.2, 0.4), start=1):
        source = save_source(
            project=project,
            user=project.created_by,
            name=f"Detector {number}",
            backend="uploaded",
            params={"model": f"detector-{number}", "revision": "1"},
            cost_per_label=Decimal(number),
        )
        job = sent(source, answers(truth, story, rate, chance))
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


def answers(
    truth: Mapping[str, list[Shape]], story: Story, rate: float, chance: random.Random
) -> list[dict[str, Any]]:
    """One line of a predictions file for each image: shapes, and how sure the model is."""
    lines = []
    for name, shapes in truth.items():
        doubt = chance.random()
        said = story.wrong if chance.random() < rate * doubt else story.nearly
        label = said(shapes, chance)
        lines.append({"external_id": name, "label": label, "confidence": round(1 - doubt, 6)})
    return lines


def read(project: Project, truth: Mapping[str, list[Shape]]) -> dict[str, str]:
    """In the form in which they are stored."""
    reader = reader_of(project)
    return {name: str(reader(shapes)[0]) for name, shapes in truth.items()}
