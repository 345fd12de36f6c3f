"""Tasks of Label Studio that are hard to carry, and their way through a project here."""

import io
import json
import random
from decimal import Decimal
from typing import Any

from annotation.common.files import store_file
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.models import Job, Project
from annotation.projects.manage import create_project
from routing.delivery.deliver import deliver
from routing.models import Delivery, Run
from routing.runs.certify import analyse
from routing.runs.route import route
from routing.sources.suggested import add_suggested, found_models
from testbed.factories import add_member, make_user
from testbed.worlds import World, files_of

CONFIG = """<View><Header value="How does it sound?"/><Text name="review" value="$text"/>
<Choices name="sentiment" toName="review" choice="single" showInLine="true">
  <Choice value="Positive" alias="pos" hotkey="1" background="green"/>
  <Choice value="Negative 👎" hotkey="2"/>
</Choices></View>"""
CHOICES = ("pos", "Negative 👎")
MODEL = "bert-v1.2"
TEXTS = (
    "plain",
    "Zeilen\nund\r\nmehr\tals eine\n\n",
    "مرحبا بالعالم, שלום עולם",
    "👩‍👩‍👧‍👦 emoji 🏳️‍🌈, e\u0301 and é, ﬁ, ０",
    "<b>no markup</b> & \"quotes\" 'single' \\ backslash \u2028 \u200f",
    "=1+1",
    "null",
    " spaces around ",
)
LIST, OBJECT = ["a", None, {"b": []}], {"k": {"z": 1.25}}
OTHERS: tuple[Any, ...] = (None, 0, -1.5, 1e21, True, "", "12", LIST, OBJECT, 2**53)


def tasks(count: int, *, seed: int = 3) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Tasks with a prediction each, and the true label by the task's `data.key`."""
    chance = random.Random(seed)
    found: list[dict[str, Any]] = []
    truth: dict[str, str] = {}
    for number in range(count):
        label = chance.choice(CHOICES)
        truth[f"k{number}"] = label
        doubt = chance.random()
        said = label if chance.random() > doubt * 0.3 else next(key for key in CHOICES if key != label)
        text = f"{number} {TEXTS[number % len(TEXTS)]}"
        data = {
            "text": text if number else "very long 🙂 " * 8_000,
            "key": f"k{number}",
            "id": f"id{number // 2}",  # each of them twice
            "mixed": OTHERS[number % len(OTHERS)],
        }
        if number % 3 == 0:
            data["only some have it"] = number
        prediction = {"model_version": MODEL, "score": round(1 - doubt / 2, 6), "result": results(said)}
        found.append({"data": data, "predictions": [prediction]})
    return found, truth


def results(choice: str) -> list[dict[str, Any]]:
    value = {"choices": [choice]}
    return [{"from_name": "sentiment", "to_name": "review", "type": "choices", "value": value}]


def brought(
    export: list[dict[str, Any]], *, config: str = CONFIG, text_column: str = "text"
) -> tuple[Project, Job]:
    """A project made from the configuration, with the tasks of an export and the labels in it."""
    project = create_project(user=make_user("manager"), name="Reviews", label_config=config)
    raw = json.dumps(export, ensure_ascii=False).encode()
    stored = store_file(
        project=project, content=io.BytesIO(raw), original_name="export.json", media_type="application/json"
    )
    job = start_import(
        project=project,
        user=project.created_by,
        stored_file=stored,
        mapping=ColumnMapping(id_column="key", text_column=text_column),
        keep_labels=True,
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    project.refresh_from_db()
    return project, job


def labelled(project: Project, truth: dict[str, str]) -> Run:
    """A run with the model whose answers came along; people give their labels through the queue."""
    (suggestion,) = found_models(project).sound
    prices: dict[str, Decimal | None] = {suggestion.label_column: Decimal("0.001")}
    add_suggested(project=project, user=project.created_by, prices=prices)
    annotators = [add_member(project), add_member(project)]
    world = World(project=project, manager=project.created_by, annotators=annotators, truth=dict(truth))
    run = world.start(m=60)
    world.do("prepare_run")
    world.label()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    route(run=run, user=world.manager)
    world.do("route_run")
    world.label()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    return run


def delivered(run: Run) -> dict[str, bytes]:
    """The files of a delivery for Label Studio."""
    job = deliver(run=run, user=run.project.created_by, formats=["label_studio", "jsonl"])
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    return files_of(Delivery.objects.get(pk=job.result["delivery"]))
