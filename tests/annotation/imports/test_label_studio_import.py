"""Tasks and exports of Label Studio: what becomes a column, what is kept whole, whose labels there are."""

import io
import json
from typing import Any

import pytest

from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats import label_studio
from annotation.imports.formats.base import Problem, Record, Row
from annotation.imports.formats.detect import detect
from annotation.imports.formats.label_studio import LabelStudio
from annotation.imports.formats.registry import IMPORTERS
from annotation.imports.formats.reserved import model_output
from annotation.imports.upload import preview, start_import
from testbed.factories import make_project
from tests.annotation.imports.test_importers import count_of
from tests.annotation.imports.test_imports import storage, store

__all__ = ["storage"]


def results(*values: str, name: str = "l", kind: str = "choices") -> list[dict[str, Any]]:
    key = {"textarea": "text"}.get(kind, kind)
    value = values[0] if kind in ("rating", "number") else list(values)
    return [{"from_name": name, "to_name": "t", "type": kind, "value": {key: value}}]


TASK: dict[str, Any] = {
    "id": 17,
    "data": {"text": "שלום 🙂\nzwei", "year": 1999, "tags": ["a", None], "none": None, "id": "x1"},
    "annotations": [
        {
            "id": 3,
            "completed_by": {"id": 1, "email": "ann@example.com"},
            "result": results("cat"),
            "was_cancelled": False,
            "created_at": "2024-05-06T07:08:09.123456Z",
            "lead_time": 4.567,
        }
    ],
    "predictions": [{"model_version": "bert-v1", "score": 0.87, "result": results("dog")}],
    "drafts": [{"result": results("dog")}],
    "meta": {"batch": 2},
    "inner_id": 1,
}


def read(content: Any, *, lines: bool = False) -> list[Record]:
    text = "\n".join(map(json.dumps, content)) if lines else json.dumps(content)
    return list(LabelStudio().records(io.BytesIO(text.encode()), "t.json"))


def row(task: dict[str, Any]) -> Row:
    (found,) = read([task])
    assert isinstance(found, Row), found
    return found


@pytest.mark.parametrize("lines", [True, False])
def test_data_become_columns_and_the_rest_is_kept_whole(lines) -> None:
    (found,) = read([TASK], lines=lines)
    assert isinstance(found, Row)
    assert found.name == "17"
    assert found.columns["text"] == "שלום 🙂\nzwei"
    assert list(found.columns)[:5] == ["text", "year", "tags", "none", "id"]
    assert found.typed is not None
    rest = {key: value for key, value in TASK.items() if key != "data"}
    score = {"bert-v1.score": 0.87}
    assert found.typed == {"year": 1999, "tags": ["a", None], "none": None, **score, "label_studio": rest}


def test_each_version_of_a_model_has_a_column_for_answer_and_score() -> None:
    several = {"model_version": "gpt", "score": None, "result": results("cat", "dog")}
    found = row(TASK | {"predictions": [*TASK["predictions"], several, {"result": []}, 12]})
    assert found.columns["bert-v1.label"] == "dog"
    assert found.columns["bert-v1.score"] == "0.87"
    assert json.loads(found.columns["gpt.label"]) == ["cat", "dog"]
    assert found.columns["gpt.score"] == ""
    typed = found.typed or {}
    assert (typed["bert-v1.score"], typed["gpt.score"]) == (0.87, None)
    assert "bert-v1.label" not in typed
    assert typed["gpt.label"] == ["cat", "dog"]


def test_no_column_of_the_data_is_overwritten() -> None:
    found = row(TASK | {"data": {"text": "a", "bert-v1.label": "mine"}})
    assert found.columns["bert-v1.label"] == "mine"
    assert found.columns["label_studio.bert-v1.label"] == "dog"
    (problem,) = read([{"data": {"text": "a", "label_studio": 1}}])
    assert isinstance(problem, Problem)
    assert "Rename it" in problem.message


def test_annotations_are_labels_with_person_time_and_lead_time() -> None:
    (label,) = row(TASK).labels
    assert (label.value, label.annotator) == ("cat", "ann@example.com")
    assert (label.created_at, label.lead_time_ms) == ("2024-05-06T07:08:09.123456Z", 4567)
    assert label.tool == "Label Studio"


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (results("cat", "dog"), ["cat", "dog"]),
        (results("long\ntext", kind="textarea"), "long\ntext"),
        ([{"from_name": "r", "type": "rating", "value": {"rating": 4}}], 4),
        ([{"from_name": "r", "type": "rating", "value": {"rating": 4.0}}], 4),
        ([{"from_name": "n", "type": "number", "value": {"number": -2.5}}], -2.5),
        ([], []),
        ([*results("remark", name="c", kind="textarea"), *results("cat")], "cat"),
    ],
)
def test_values_of_each_kind(result, value) -> None:
    assert row({"data": {"text": "a"}, "annotations": [{"result": result}]}).labels[0].value == value


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ([*results("cat", name="a"), *results("dog", name="b")], "several answers (a, b)"),
        ([{"from_name": "s", "type": "labels", "value": {"labels": ["x"]}}], "no choice"),
    ],
)
def test_what_is_no_one_answer_says_why(result, words) -> None:
    (label,) = row({"data": {"text": "a"}, "annotations": [{"result": result}]}).labels
    assert words in label.problem


def test_json_min_has_one_item_for_a_task_with_all_its_annotations() -> None:
    common = {"text": "hello", "year": 3, "id": 5}
    entries = [
        common
        | {
            "sentiment": value,
            "annotator": who,
            "annotation_id": at,
            "created_at": f"2024-01-0{at}T00:00:00Z",
        }
        | {"updated_at": "2024-01-09T00:00:00Z", "lead_time": 1.5}
        for at, (value, who) in enumerate([("cat", 1), ({"choices": ["cat", "dog"]}, 2)], 1)
    ]
    other = entries[0] | {"id": 6, "text": "other"}
    first, second = read([*entries, other])
    assert isinstance(first, Row)
    assert isinstance(second, Row)
    assert [(label.value, label.annotator) for label in first.labels] == [
        ("cat", "user 1"),
        (["cat", "dog"], "user 2"),
    ]
    assert (first.name, second.name) == ("5", "6")
    assert set(first.columns) == {"text", "year", "label_studio"}
    assert first.typed is not None
    assert [entry["annotation_id"] for entry in first.typed["label_studio"]["json_min"]] == [1, 2]


def test_tasks_without_a_number_are_named_by_their_place() -> None:
    found = read([{"data": {"text": "a"}}, {"data": {"text": "b"}}])
    assert [record.name for record in found if isinstance(record, Row)] == ["t.json:1", "t.json:2"]


def test_what_cannot_be_used_is_told_and_the_rest_is_read() -> None:
    text = (
        '[{"data": {"text": "a"}}, {"data": 3}, 5, {"data": {"text": "\\u0000"}}, {"data": {"t": "\\ud800"}}]'
    )
    found = list(LabelStudio().records(io.BytesIO(text.encode()), "t.json"))
    assert [type(record) for record in found] == [Row, *[Problem] * 4]
    nul = {"data": {"text": "a"}, "meta": {"x": ["\0"]}}
    assert isinstance(read([nul])[0], Problem)


def test_counting_and_skipping_agree() -> None:
    tasks = [{"id": at, "data": {"text": str(at)}} for at in range(5)]
    file = io.BytesIO(json.dumps(tasks).encode())
    assert count_of(LabelStudio(), file, "t.json") == 5
    file.seek(0)
    names = [
        record.name for record in LabelStudio().records(file, "t.json", skip=3) if isinstance(record, Row)
    ]
    assert names == ["3", "4"]


def test_a_task_that_json_min_goes_on_about_is_a_problem_of_its_own(settings, monkeypatch) -> None:
    settings.HYPAC_MAX_CELL_CHARACTERS = 1_000
    entry = {"text": "a", "id": 1, "sentiment": "cat", "annotator": 1, "annotation_id": 1, "lead_time": 1.5}
    held = []
    decoded = label_studio._row
    monkeypatch.setattr(label_studio, "_row", lambda *given: held.append(len(given[2])) or decoded(*given))
    entries = [*[entry] * 2_000, entry | {"id": 2}, entry | {"id": 3}]
    long, second, third = read(entries)
    assert isinstance(long, Problem)
    assert (long.where, "too long" in long.message) == ("line 1, entry 1", True)
    assert (isinstance(second, Row), isinstance(third, Row), held) == (True, True, [1, 1])
    assert count_of(LabelStudio(), io.BytesIO(json.dumps(entries).encode()), "t.json") == 3
    grouped = label_studio._grouped(label_studio._read(io.BytesIO(json.dumps(entries).encode()), "t.json"))
    assert len(next(grouped)) < 1_000


@pytest.mark.django_db
class TestProject:
    @pytest.mark.parametrize(
        ("content", "found"),
        [
            (json.dumps([TASK]), "label_studio"),
            (json.dumps(TASK) + "\n" + json.dumps(TASK), "label_studio"),
            (json.dumps([TASK], indent=2), "label_studio"),
            (json.dumps([{"data": {"text": "a"}}]), "label_studio"),
            (json.dumps([{"id": 1, "data": {"text": "a"}}]), "label_studio"),
            (json.dumps([{"id": 1, "data": {"text": "a"}, "more": 1}]), "json"),
            (json.dumps([TASK | {"data": {"text": "long " * 50_000}}]), "label_studio"),
            (json.dumps([{"data": "x", "annotations": []}]), "json"),
            (json.dumps({"text": "a", "data": {"x": 1}}), "jsonl"),
        ],
    )
    def test_it_is_recognised_by_its_first_task(self, content, found) -> None:
        assert detect(store(make_project(), content, "tasks.json"), IMPORTERS.values()) == found

    def test_what_others_said_is_never_shown(self) -> None:
        project = make_project()
        stored = store(project, json.dumps([TASK]), "tasks.json")
        seen = preview(stored_file=stored)
        secret = {column.name for column in seen.details if not column.may_be_shown}
        assert secret == {"label_studio", "bert-v1.label", "bert-v1.score"} == model_output(seen.columns)
        assert seen.suggestion.text_column == "text"
        for name in secret:
            mapping = ColumnMapping(text_column=name)
            with pytest.raises(InputError, match="must not see that"):
                start_import(project=project, user=project.created_by, stored_file=stored, mapping=mapping)
