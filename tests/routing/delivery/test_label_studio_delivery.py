"""From an export of Label Studio through a run to files that Label Studio takes again.

Its own package judges them; tests/services has the program itself.
"""

import io
import json
import re
from copy import deepcopy
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.imports.columns import ColumnMapping
from annotation.imports.formats.base import Row
from annotation.labelling import queue
from annotation.labelling.labels_of_record import disagreements
from annotation.models import Label
from annotation.ports import routing_port
from annotation.projects.label_studio_config import config_of
from annotation.projects.manage import create_project
from annotation.review.decide import decide_dispute
from routing.delivery.formats.base import Files
from routing.delivery.formats.label_studio import LabelStudioWriter
from routing.labels.page import DeliveryInfo, Page, Row as DeliveredRow
from routing.sources.suggested import found_models
from testbed.factories import add_member, make_project, make_user
from tests import label_studio_story
from tests.annotation.imports.test_imports import import_file, storage, store
from tests.annotation.imports.test_label_studio_import import read
from tests.label_studio_story import CONFIG, MODEL, brought, delivered, labelled, results, tasks
from tests.routing.delivery.written import files_written, kinds_of

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]
COUNT = 120
OTHER = "Negative 👎"
SECRET = {"label_studio", f"{MODEL}.label", f"{MODEL}.score"}


def export(count: int = COUNT) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """As Label Studio writes it: every tenth task is annotated, every twentieth skipped."""
    found, truth = tasks(count)
    for number, task in enumerate(found):
        task |= {"id": 1000 + number, "inner_id": number + 1, "annotations": [], "meta": {}, "drafts": []}
        for prediction in task["predictions"]:
            prediction |= {"id": 5000 + number, "created_ago": "1 day"}
        if number % 10 == 0:
            label = truth[task["data"]["key"]]
            task["annotations"] = [annotation(number, label)]
        if number % 20 == 5:
            task["annotations"] = [annotation(number, "pos") | {"was_cancelled": True}]
    return found, truth


def annotation(number: int, label: str) -> dict[str, Any]:
    return {
        "id": 9000 + number,
        "completed_by": 1,
        "result": results(label),
        "was_cancelled": False,
        "lead_time": 1.5,
        "created_at": "2024-05-06T07:08:09.123456Z",
        "unique_id": f"u{number}",
    }


@pytest.fixture
def files() -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    given, truth = export()
    project, job = brought(deepcopy(given))
    assert (job.result["added"], job.result["labels"], job.result["problems"]) == (COUNT, 12, 0)
    return given, delivered(labelled(project, truth))


def test_predictions_become_a_source_that_nobody_sees() -> None:
    given, _truth = export(20)
    project, _job = brought(given)
    (suggestion,) = found_models(project).sound
    assert suggestion.name == MODEL
    assert suggestion.params == {"label_column": f"{MODEL}.label", "confidence_column": f"{MODEL}.score"}
    assert routing_port().hidden_columns(project=project) >= SECRET
    assert routing_port().model_columns(project=project) >= SECRET


@pytest.mark.parametrize("name", ["jsonl", "doccano", "manifest", "parquet", "huggingface"])
def test_scores_of_predictions_are_numbers_where_a_format_has_numbers(name) -> None:
    given, _truth = export(3)
    given[2]["predictions"][0]["score"] = None
    came = [row for row in read(given) if isinstance(row, Row)]
    rows = [({**row.columns, **(row.typed or {})}, DeliveredRow(row.name)) for row in came]
    info = DeliveryInfo(columns=[f"{MODEL}.score"], kinds=kinds_of(rows))
    written, _ = files_written(name, info, rows, texts=["x"] * 3)
    if name == "parquet":
        (content,) = written.values()
        found = pq.read_table(io.BytesIO(content)).to_pylist()
    elif name == "huggingface":
        (content,) = (content for path, content in written.items() if path.endswith(".arrow"))
        found = pa.ipc.open_stream(content).read_all().to_pylist()
    else:
        (content,) = written.values()
        found = [json.loads(line) for line in content.splitlines()]
    scores = [task["predictions"][0]["score"] for task in given]
    assert [row[f"{MODEL}.score"] for row in found] == scores
    assert isinstance(scores[0], float)


def test_what_came_goes_back_as_it_came(files) -> None:
    given, made = files
    back = json.loads(made["label_studio/tasks.json"])
    assert len(back) == COUNT
    for before, after in zip(given, back, strict=True):
        assert after["data"] == before["data"]
        assert {name: after[name] for name in ("id", "inner_id", "drafts")} == {
            name: before[name] for name in ("id", "inner_id", "drafts")
        }
        assert after["predictions"][: len(before["predictions"])] == before["predictions"]
        assert after["annotations"][: len(before["annotations"])] == before["annotations"]
    assert made["label_studio/config.xml"].decode() == CONFIG


def test_each_label_is_there_once_with_its_provenance(files) -> None:
    _given, made = files
    rows = [json.loads(line) for line in made["labels.jsonl"].splitlines()]
    back = json.loads(made["label_studio/tasks.json"])
    kinds = {"imported": 0, "people": 0, "model": 0}
    for row, task in zip(rows, back, strict=True):
        facts = task["meta"]["hypac"]
        assert facts["label"] == row["label"]
        assert (facts["source"], facts.get("p_i"), facts["asked"]) == (
            row["source"],
            row["p_i"],
            row["asked"],
        )
        given = [entry for entry in task["annotations"] if not entry["was_cancelled"]]
        if row["source"] != "person":
            kinds["model"] += 1
            assert not given
            assert [entry["model_version"] for entry in task["predictions"]] == [MODEL]
        elif row["settled_by"] == "imported":
            kinds["imported"] += 1
            assert "certificate_id" not in facts
            assert len(given) == 1
        else:
            kinds["people"] += 1
            assert given[-1]["result"][0]["value"] == {"choices": [row["label"]]}
            assert given[-1]["ground_truth"] is row["asked"]
    assert kinds["imported"] == 12
    assert "are covered by no certificate: 12" in made["README.md"].decode()
    assert min(kinds.values()) > 0


def test_label_studios_own_package_takes_all_of_it(files) -> None:
    from label_studio_sdk.label_interface import LabelInterface  # takes two seconds

    _given, made = files
    interface = LabelInterface(made["label_studio/config.xml"].decode())
    interface.validate()
    for task in json.loads(made["label_studio/tasks.json"]):
        # Of a whole task it would check the annotations in a way of its own that always fails.
        assert interface.validate_task({"data": task["data"]})
        for entry in task["annotations"]:
            assert interface.validate_annotation(entry)
        for entry in task["predictions"]:
            assert not interface.validate_prediction(entry, return_errors=True)


def test_it_can_be_imported_here_again(files) -> None:
    given, made = files
    again = json.loads(made["label_studio/tasks.json"])
    rows = [row for row in read(again) if isinstance(row, Row)]
    assert [row.columns["text"] for row in rows] == [task["data"]["text"] for task in given]
    people = sum(len(row.labels) for row in rows)
    assert people == sum(task["meta"]["hypac"]["source"] == "person" for task in again)


@pytest.mark.parametrize("cell", ["INV-17", "3", "[1]", 17, [1]])
def test_a_column_that_only_has_the_name_stays_a_column(cell: Any) -> None:
    """Any table may call a column so."""
    files = Files(io.BytesIO)
    writer = LabelStudioWriter(files, DeliveryInfo(["text", "label_studio"], label_config=CONFIG))
    original = {"text": "x", "label_studio": str(cell)}
    page = Page.of([(original, DeliveredRow("1"))])
    writer.write(Page(page.originals, page.columns, typed=[{"label_studio": cell}]))
    writer.close()
    content = next(file.content for file in files.made if file.name.endswith("tasks.json"))
    content.seek(0)
    assert [task["data"] for task in json.load(content)] == [{"text": "x", "original_label_studio": cell}]


def test_that_none_of_the_choices_fits_is_counted() -> None:
    """There it looks like an annotation in which nobody chose anything."""
    info = DeliveryInfo(["text"], task_type="multiple_choice", label_config=CONFIG)
    labels: list[tuple[Any, str | None]] = [([], "person"), ([], "model"), (["pos"], "person"), (None, None)]
    rows = [
        ({"text": f"{number}"}, DeliveredRow(f"{number}", label=label, label_name=label, source=source))
        for number, (label, source) in enumerate(labels)
    ]
    files, writer = files_written("label_studio", info, rows)
    by_person, by_model, _, without = json.loads(files["label_studio/tasks.json"])
    assert [entry["result"] for entry in by_person["annotations"] + by_model["predictions"]] == [[], []]
    assert (by_person["meta"]["hypac"]["label"], without["annotations"]) == ([], [])
    assert writer.counts["none_of_them"] == 2


def test_columns_that_could_not_be_shown_have_plain_names_there_and_their_own_here_again() -> None:
    from label_studio_sdk.label_interface import LabelInterface  # takes two seconds

    shown = ["my text", "текст", "a.b"]
    given = {"id": "1", "my text": "hello", "my_text": "other", "текст": "да", "a.b": "x"}
    project = make_project(choices=["cat", "dog"])
    stored = store(project, f"{json.dumps(given)}\n", "rows.jsonl")
    import_file(project, stored, ColumnMapping(field_columns=tuple(shown)))
    project.refresh_from_db()
    info = DeliveryInfo(project.columns, label_config=config_of(project))
    files, _writer = files_written("label_studio", info, [(given, DeliveredRow("1"))])
    config = files["label_studio/config.xml"].decode()
    named = re.findall(r'value="\$([^"]+)"', config)
    assert named == ["my_text_2", "field", "a_b"]
    (task,) = json.loads(files["label_studio/tasks.json"])
    assert [task["data"][name] for name in named] == [given[name] for name in shown]
    assert task["data"]["my_text"] == "other"
    assert LabelInterface(config).validate_task({"data": task["data"]})
    (again,) = read([task])
    assert isinstance(again, Row)
    assert list(again.columns.items())[: len(given)] == list(given.items())


@pytest.mark.parametrize("said", [{"a": "b"}, {"id": "my_text"}, {"id": 5}, [1], None])
def test_what_a_task_says_of_its_columns_loses_none(said: Any) -> None:
    (row,) = read([{"data": {"id": 1, "my_text": 2}, "meta": {"hypac": {"columns": said}}}])
    assert isinstance(row, Row)
    assert list(row.columns)[:2] == ["id", "my_text"]


def test_a_project_made_from_what_was_delivered_has_its_configuration() -> None:
    config = CONFIG.replace("$text", "$my_text")
    project = create_project(user=make_user(), name="x", label_config=config)
    import_file(
        project, store(project, '{"my text": "a"}\n', "rows.jsonl"), ColumnMapping(text_column="my text")
    )
    project.refresh_from_db()
    assert config_of(project) == config.strip()


def test_what_was_corrected_or_decided_here_is_an_annotation_besides(monkeypatch) -> None:
    given, truth = tasks(COUNT)
    for number, task in enumerate(given):
        task |= {"id": 1000 + number, "annotations": []}
    ann, bob, eve = ({"completed_by": {"email": f"{name}@example.com"}} for name in ("ann", "bob", "eve"))
    given[0]["annotations"] = [annotation(0, "pos") | ann]
    given[1]["annotations"] = [annotation(1, "pos") | bob, annotation(2, OTHER) | eve]
    given[2]["annotations"] = [annotation(3, "pos") | ann, annotation(4, OTHER) | bob]
    given[3]["annotations"] = [annotation(5, "pos") | ann]
    given[4]["annotations"] = [annotation(6, OTHER) | bob, annotation(7, OTHER) | eve]
    manager = make_user(email="ann@example.com")
    monkeypatch.setattr(label_studio_story, "make_user", lambda _name: manager)
    project, _job = brought(deepcopy(given))
    ann_here = project.created_by
    for key in ("k0", "k2"):  # of two who differed the one comes round to what the other says
        label = Label.objects.get(annotator=ann_here, item__external_id=key)
        queue.correct(user=ann_here, label_id=label.pk, value=OTHER, idempotency_key=key)
    reviewer = add_member(project, "reviewer")
    (dispute,) = disagreements(project, reviewer)
    decide_dispute(project=project, actor=reviewer, work_item=dispute, value=OTHER)
    made = delivered(labelled(project, truth))
    lines = list(map(json.loads, made["labels.jsonl"].splitlines()))[:5]
    assert [row["label"] for row in lines] == [OTHER, OTHER, OTHER, "pos", OTHER]
    assert [row["settled_by"] for row in lines] == [None, "adjudicated", "majority", "imported", "imported"]
    assert [row["certificate_id"] for row in lines] == [None] * 5
    found = json.loads(made["label_studio/tasks.json"])
    for task, before, added in zip(found, given, (1, 1, 1, 0, 0), strict=False):
        came = len(before["annotations"])
        assert task["annotations"][:came] == before["annotations"]
        new = task["annotations"][came:]
        assert [entry["result"][0]["value"]["choices"] for entry in new] == [[OTHER]] * added
    assert b"are covered by no certificate: 2\n" in made["README.md"]
