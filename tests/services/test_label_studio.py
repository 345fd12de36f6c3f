"""There and back with the program itself: Label Studio, a project here, people, Label Studio again.

Run by `make test-label-studio`, which makes the environment that the program needs.
"""

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.projects.label_studio_config import config_of
from routing.models import Run
from testbed import delivered as deliveries
from testbed.worlds import World
from tests import boxes_story, masks_story
from tests.annotation.imports.test_imports import storage
from tests.label_studio_server import MANAGER, PROGRAM, RUNNING, LabelStudioServer
from tests.label_studio_story import CONFIG, MODEL, brought, delivered, labelled, results, tasks
from tests.support import missing
from tests.verify.reports import found_in

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.label_studio]
COUNT = 200
# What Label Studio itself gives to everything that it imports, or counts, whatever the file says.
ITS_OWN_OF_TASKS = {
    "id",
    "inner_id",
    "created_at",
    "updated_at",
    "project",
    "updated_by",
    "total_annotations",
}
ITS_OWN_OF_ANNOTATIONS = {
    *("id", "unique_id", "created_at", "updated_at", "task", "project", "updated_by", "import_id"),
    *("created_ago", "prediction", "result_count"),
}
ITS_OWN_OF_PREDICTIONS = {"id", "created_at", "updated_at", "created_ago", "task", "project"}


@pytest.fixture(scope="module")
def label_studio() -> Iterator[LabelStudioServer]:
    if not PROGRAM.exists() and not RUNNING:
        missing("label_studio", f"{PROGRAM} is not there: make test-label-studio installs it.")
    with LabelStudioServer() as server:
        yield server


def differing(before: dict[str, Any], after: dict[str, Any], its_own: set[str]) -> Counter[str]:
    """Names of the fields that `before` has and `after` has not, or has otherwise."""
    return Counter(name for name in before.keys() - its_own if before[name] != after.get(name))


def test_there_and_back_again(label_studio: LabelStudioServer) -> None:
    given, truth = tasks(COUNT)
    first = label_studio.project("first", CONFIG)
    for number, task in enumerate(given):
        task["meta"] = {"number": number}
    numbers = label_studio.bring(first, given)
    for number, (pk, task) in enumerate(zip(numbers, given, strict=True)):
        if number % 10 == 0:
            right = truth[task["data"]["key"]]
            label_studio.annotate(pk, result=results(right), lead_time=1.25 + number, was_cancelled=False)
        if number % 20 == 5:
            label_studio.annotate(pk, result=results("pos"), lead_time=0.5, was_cancelled=True)
    export = label_studio.export(first)
    assert [task["data"] for task in export] == [task["data"] for task in given]
    assert all(isinstance(entry, dict) for task in export for entry in task["predictions"])

    project, job = brought(export)
    assert (job.result["added"], job.result["labels"]) == (COUNT, COUNT // 10)
    files = delivered(labelled(project, truth))
    back = json.loads(files["label_studio/tasks.json"])
    for before, after in zip(export, back, strict=True):
        ours = {"meta", "annotations", "predictions"}
        assert not differing(before, after, ours)
        for name in ("annotations", "predictions"):
            assert after[name][: len(before[name])] == before[name]
        assert {**before["meta"], "hypac": after["meta"]["hypac"]} == after["meta"]

    second = label_studio.project("second", files["label_studio/config.xml"].decode())
    label_studio.bring(second, back)
    again = label_studio.export(second)
    changed: Counter[str] = Counter()
    renewed: Counter[str] = Counter()
    kinds: Counter[str] = Counter()

    def compare(what: str, one: dict[str, Any], other: dict[str, Any], its_own: set[str]) -> None:
        for field, count in differing(one, other, set()).items():
            (renewed if field in its_own else changed)[f"{what}.{field}"] += count

    for before, after in zip(back, again, strict=True):
        compare("task", before, after, ITS_OWN_OF_TASKS | {"annotations", "predictions"})
        for name, own in (("annotations", ITS_OWN_OF_ANNOTATIONS), ("predictions", ITS_OWN_OF_PREDICTIONS)):
            kinds[name] += len(before[name])
            in_order = sorted(after[name], key=lambda entry: entry["id"])
            for one, other in zip(before[name], in_order, strict=True):
                compare(name, one, other, own)
        kinds[after["meta"]["hypac"]["source"]] += 1
        cancelled = sum(bool(entry["was_cancelled"]) for entry in after["annotations"])
        kinds["cancelled"] += cancelled
    print(f"\n{COUNT} tasks: {dict(kinds)}")
    print(f"changed: {dict(changed)}; given anew by Label Studio: {dict(sorted(renewed.items()))}")
    assert kinds[MODEL] + kinds["person"] == COUNT
    assert kinds["cancelled"] == COUNT // 20
    assert not changed


@pytest.mark.parametrize(
    ("world_of", "regions", "loss"),
    [
        (boxes_story.world_of_boxes, boxes_story.regions, "boxes_right"),
        (masks_story.world_of_masks, masks_story.regions, "masks_right"),
    ],
)
def test_shapes_are_drawn_there_and_certified_here(
    label_studio: LabelStudioServer, client: Client, tmp_path: Path, world_of: Any, regions: Any, loss: str
) -> None:
    world, truth = world_of(150)
    run = world.start(m=90, p=Decimal(1), epsilon=Decimal("0.1"), loss=loss)
    world.do("prepare_run")
    drawn = {name: regions(shapes, config_of(world.project)) for name, shapes in truth.items()}
    client.force_login(world.manager)
    drawn_there(label_studio, client, world, "calibration", drawn)
    run.refresh_from_db()
    run = world.route(world.analyse(run))
    assert run.certificate.certified
    drawn_there(label_studio, client, world, "routed", drawn)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE

    checked = found_in(tmp_path / "files", deliveries.delivered(world, run))
    assert (checked.code, checked.faults) == (0, "")
    files = deliveries.delivered(world, run, ("label_studio",))
    before = json.loads(files["label_studio/tasks.json"])
    again = label_studio.project(f"{loss}, delivered", files["label_studio/config.xml"].decode())
    label_studio.bring(again, before)
    after = label_studio.export(again)
    kinds: Counter[str] = Counter()
    for one, other in zip(before, after, strict=True):
        for name in ("annotations", "predictions"):
            assert [entry["result"] for entry in one[name]] == [entry["result"] for entry in other[name]]
            kinds[name] += len(one[name])
            kinds["shapes"] += sum(len(entry["result"]) for entry in one[name])
    print(f"\n{len(before)} images: {dict(kinds)}")
    assert kinds["annotations"] + kinds["predictions"] == len(before)


def drawn_there(
    label_studio: LabelStudioServer,
    client: Client,
    world: World,
    part: str,
    drawn: dict[str, list[dict[str, Any]]],
) -> None:
    """What waits here is given out, somebody draws on it in the program, and its export comes back."""
    slug = world.project.slug
    address = reverse("api_run_work_lines", args=[slug, 1])
    query = {"shape": "label-studio", "part": part, "image_seconds": 3600}
    response: Any = client.get(address, query)
    tasks = [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]
    project = label_studio.project(f"{world.project.task_type}, {part}", config_of(world.project))
    names = [task["meta"]["hypac"]["external_id"] for task in tasks]
    for pk, name in zip(label_studio.bring(project, tasks), names, strict=True):
        label_studio.annotate(pk, result=drawn[name], lead_time=2.5, was_cancelled=False)
    body = {"part": part, "rows": label_studio.export(project), "people": {MANAGER: world.manager.username}}
    assert all(row["data"]["file_name"].startswith("http") for row in body["rows"])
    taken = client.post(reverse("api_run_work", args=[slug, 1]), body, content_type="application/json")
    assert taken.json() == {"stored": len(tasks), "known": 0, "refused": []}
