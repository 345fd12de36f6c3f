"""A delivery of a run whose people saw suggestions says so, and anybody can still verify it."""

import io
import json
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from django.urls import reverse

from annotation.imports.columns import answer_columns
from annotation.labelling import queue
from annotation.labelling.labels_of_record import record_values
from annotation.models import Label
from hypac_client.frames import table_of
from routing.core.verify import main as recompute
from routing.delivery.formats import FORMATS
from routing.models import Run
from testbed.delivered import delivered
from testbed.worlds import World, make_world
from tests.routing.delivery.test_format_table import imported, packed
from tests.verify.reports import Files, found_in

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
SAYS = "Whoever labels a routed item is shown what a model answered."


def label_routed(world: World) -> tuple[int, int]:
    """People take every second suggestion; returns how many labels they gave, and how many are the same."""
    annotator, count, same = world.annotators[0], 0, 0
    while task := queue.claim(project=world.project, user=annotator):
        value = task.suggestion.value if count % 2 else world.truth[task.item.external_id]
        count, same = count + 1, same + (value == task.suggestion.value)
        queue.submit(
            user=annotator,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=value,
            idempotency_key=f"key-{count}",
        )
    return count, same


def lines_of(files: Files) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files["labels.jsonl"].decode().splitlines()]


def test_card_run_and_certificate_say_it_and_the_files_verify(client, tmp_path, capsys) -> None:
    world = make_world(150)
    run = world.routed(m=60, suggestions=True)
    count, same = label_routed(world)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert 0 < same < count
    files = delivered(world, run)
    card = files["README.md"].decode()
    assert SAYS in card
    assert (
        f"routed items: {count}; with a suggestion in sight: {count}; the same as suggested: {same} (" in card
    )
    document = json.loads(files["certificate.json"])
    assert document["provenance"]["suggestions_shown"] is True
    checked = found_in(tmp_path / "files", files)
    assert (checked.code, checked.faults) == (0, "")
    assert "these labels are not blind" in checked.notes
    folder = tmp_path / "files"
    assert recompute([str(folder / "certificate.json"), str(folder / "draw.jsonl")]) == 0
    client.force_login(world.manager)
    slug = world.project.slug
    told = client.get(reverse("api_run", args=[slug, run.number])).json()
    assert told["suggested"] == {"labels": count, "shown": count, "taken": same}
    for name in ("run", "run_certificate_page"):
        assert SAYS in client.get(reverse(name, args=[slug, run.number])).content.decode(), name
    # A correction counts as what it is now.
    taken = Label.objects.filter(suggestion="taken").first()
    other = next(name for name in ("cat", "dog", "emu") if name != taken.value)
    queue.correct(user=world.annotators[0], label_id=taken.pk, value=other, idempotency_key="last")
    told = client.get(reverse("api_run", args=[slug, run.number])).json()
    assert told["suggested"] == {"labels": count, "shown": count, "taken": same - 1}


def test_each_row_says_what_was_shown_in_every_format_and_comes_back(tmp_path) -> None:
    world = make_world(150)
    run = world.routed(m=60, suggestions=True)
    waiting = lines_of(delivered(world, run, ("jsonl",)))
    assert {line["suggestion"] for line in waiting if line["source"] != "person"} == {None}
    label_routed(world)
    files = delivered(world, run, tuple(FORMATS))
    lines = {line["external_id"]: line for line in lines_of(files)}
    said = {name: line["suggestion"] for name, line in lines.items()}
    labels = {label.item.external_id: label for label in Label.objects.select_related("item")}
    assert said == {
        name: (labels[name].suggestion or "none") if line["source"] == "person" else None
        for name, line in lines.items()
    }
    assert {said[name] for name, line in lines.items() if line["asked"]} == {"none"}
    assert set(said.values()) == {None, "none", "taken", "other"}
    for name in ("labels.csv", "labels.json", "labels.jsonl", "labels.parquet"):
        table = table_of(files[name], name)
        assert table.columns[-1] == "suggestion"
        shown = {row.external_id: row.suggestion for row in table.itertuples()}
        assert {name: None if pd.isna(one) else one for name, one in shown.items()} == said, name
    sheet = openpyxl.load_workbook(io.BytesIO(files["labels.xlsx"]), read_only=True).active
    assert [row[-1].value for row in sheet.rows] == ["suggestion", *said.values()]
    for path, facts in (("doccano.jsonl", lambda row: row), ("labels.manifest", lambda row: row["hypac"])):
        rows = [facts(json.loads(line)) for line in files[path].decode().splitlines()]
        assert [row.get("suggestion") for row in rows] == list(said.values()), path
    tasks = json.loads(files["label_studio/tasks.json"])
    assert [task["meta"]["hypac"].get("suggestion") for task in tasks] == list(said.values())
    (shard,) = (name for name in files if name.endswith(".arrow"))
    with pa.ipc.open_stream(files[shard]) as stream:
        assert stream.read_all()["suggestion"].to_pylist() == list(said.values())
    assert "The column `suggestion` says it of each label" in files["README.md"].decode()
    for form in ("csv", "tsv"):
        assert found_in(tmp_path / form, delivered(world, run, (form,))).faults == ""
    people = {name: line["label"] for name, line in lines.items() if line["source"] == "person"}
    for name, writer in FORMATS.items():
        project = imported(*packed(files, writer.file_name))
        names = dict(project.items.values_list("pk", "external_id"))
        records = record_values(project, list(names))
        assert {names[pk]: record.value for pk, record in records.items()} == people, name
        columns = next(iter(project.items.all())).data.keys()
        assert "suggestion" not in columns or "suggestion" in answer_columns(project), name


def test_without_them_nothing_is_said(client, tmp_path) -> None:
    world = make_world(150)
    run = world.complete(m=60)
    files = delivered(world, run)
    assert "suggestion" not in files["README.md"].decode().lower()
    assert all("suggestion" not in line for line in lines_of(files))
    assert json.loads(files["certificate.json"])["provenance"]["suggestions_shown"] is False
    checked = found_in(tmp_path / "files", files)
    assert "not blind" not in checked.notes
    client.force_login(world.manager)
    told = client.get(reverse("api_run", args=[world.project.slug, run.number])).json()
    assert told["suggested"] is None
    page = client.get(reverse("run", args=[world.project.slug, run.number])).content.decode()
    assert SAYS not in page
