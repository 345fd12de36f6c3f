"""What HyPAC delivered, Ground Truth's manifests, and texts without columns come in with what they hold."""

import io
import json
import zipfile
from typing import Any

import pytest

from annotation.common.spreadsheets import escape_formula, unescape_formula
from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping, answer_columns
from annotation.imports.formats.base import Row
from annotation.imports.formats.delivered import ADDED, columns_of
from annotation.imports.upload import preview, start_import
from annotation.jobs import jobs
from annotation.models import Job, Label, Project
from routing.labels.page import ADDED as DELIVERED
from testbed.factories import add_member, make_project
from tests.annotation.apis import Api
from tests.annotation.imports.test_imported_labels import records
from tests.annotation.imports.test_importers import read
from tests.annotation.imports.test_imports import problems_of, storage, store

__all__ = ["storage"]


def test_a_formula_comes_back_from_the_cell_that_is_none() -> None:
    for cell in ("=1", "'=1", "''=1", "-5", "'-5", "- 5", "'x", "''", "\t", "＝", " @x", "'", "", "x"):
        assert unescape_formula(escape_formula(cell)) == cell
        assert escape_formula(escape_formula(cell)) != escape_formula(cell) or escape_formula(cell) == cell


def test_a_delivery_is_told_by_its_columns_whatever_they_are_called_beside_others() -> None:
    assert DELIVERED[: len(ADDED)] == ADDED
    assert columns_of(["label", "x", "external_id", "hypac_label", *ADDED[2:], "expert_saw"])["label"] == (
        "hypac_label"
    )
    twice = ["text", *ADDED, *(f"hypac_{name}" for name in ADDED)]
    assert columns_of(twice)["source"] == "hypac_source"
    assert list(columns_of(["text", *ADDED, "expert_saw", "hypac_suggestion", "own"]).values())[-2:] == [
        *("expert_saw", "hypac_suggestion"),
    ]
    assert {*DELIVERED} <= columns_of(["suggestion", *DELIVERED[:-1], "hypac_suggestion"]).keys()
    assert not columns_of(["text", *ADDED[:-1]])
    assert not columns_of(["text", "external_id", "certificate_id", "label"])


def delivered(**fields: Any) -> dict[str, Any]:
    row = dict.fromkeys(ADDED)
    return {"text": "t", **row, "external_id": "a", "asked": False, "run": 1, **fields}


ROWS = [
    delivered(external_id="a", label="cat", label_name="Cat", source="person", annotator="bo"),
    delivered(external_id="=b", label="dog", label_name="Dog", source="model1", uncertainty=0.25),
    delivered(external_id="c", label="fish", source="expert", annotator="eve"),
    delivered(external_id="d", reason="nobody was asked"),
]


@pytest.fixture
def project() -> Project:
    return make_project(choices=["cat", "dog"])


def bring(project: Project, name: str, content: str | bytes, **fields: Any) -> Job:
    raw = content.encode() if isinstance(content, str) else content
    mapping = fields.pop("mapping", ColumnMapping())
    fields = {"keep_labels": False, **fields}
    job = start_import(
        project=project,
        user=project.created_by,
        stored_file=store(project, raw, name),
        mapping=mapping,
        **fields,
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == "done", job.error
    return job


@pytest.mark.django_db
class TestDeliveries:
    def test_rows_that_are_sent_keep_what_people_said(self, project) -> None:
        body = "".join(f"{json.dumps(row)}\n" for row in ROWS)
        api = Api(project, add_member(project, "manager"))
        query = "id_column=external_id&text_column=text&keep_labels=true"
        answer = api.raw(f"items/?{query}", body.encode(), "application/x-ndjson")
        assert answer.status_code == 202, answer.content
        job = Job.objects.get(pk=answer.json()["id"])
        jobs.run(job.pk)
        job.refresh_from_db()
        assert (job.result["added"], job.result["labels"], job.result["labels_unread"]) == (4, 1, 1)
        assert records(project) == {"a": "cat"}
        assert Label.objects.get().annotator.username == "bo (HyPAC)"
        assert set(ADDED[1:]) <= answer_columns(Project.objects.get())
        assert any("no label of the project" in message for _where, message in problems_of(job))

    def test_models_come_first_and_labels_are_kept_all_the_same(self, project) -> None:
        rows = [{**ROWS[1], "external_id": f"m{n}", "text": f"t{n}"} for n in range(300)]
        body = "".join(f"{json.dumps(row)}\n" for row in [*rows, ROWS[0]])
        mapping = ColumnMapping("external_id", "text")
        look = preview(stored_file=store(project, body.encode(), "x.jsonl"))
        assert (look.labels, look.may_keep_labels) == (0, True)
        assert bring(project, "x.jsonl", body, mapping=mapping, keep_labels=True).result["labels"] == 1

    def test_what_is_no_delivery_has_no_labels_to_keep(self, project) -> None:
        with pytest.raises(InputError, match="deliveries of HyPAC"):
            bring(
                project,
                "x.csv",
                "external_id,text,label\n1,a,cat\n",
                mapping=ColumnMapping("external_id", "text"),
                keep_labels=True,
            )

    def test_nobody_reads_what_was_said_of_the_item(self, project) -> None:
        body = "".join(f"{json.dumps(row)}\n" for row in ROWS)
        with pytest.raises(InputError, match="must not see"):
            bring(project, "x.jsonl", body, mapping=ColumnMapping("external_id", "label"))


def line(**fields: Any) -> str:
    metadata = {"class-name": "cat", "human-annotated": "yes", "creation-date": "2024-05-06T07:08:09"}
    return json.dumps({"source": "text", "id": 1, "animal": 0, "animal-metadata": metadata, **fields})


@pytest.mark.django_db
def test_ground_truth_labels_are_kept_where_people_gave_them(project) -> None:
    by_model = {"class-name": "dog", "human-annotated": "no", "confidence": 0.5}
    body = "\n".join(
        [
            line(source="one"),
            line(source="two", id=2, **{"animal-metadata": by_model}),
            line(
                source="three",
                id=3,
                other=1,
                **{"other-metadata": {"class-name": "dog", "human-annotated": "yes"}},
            ),
            json.dumps({"source": "four", "id": 4}),
        ]
    )
    assert preview(stored_file=store(project, body.encode(), "x.manifest")).format == "manifest"
    mapping = ColumnMapping("id", "source")
    job = bring(project, "x.manifest", body, mapping=mapping, keep_labels=True)
    assert (job.result["added"], job.result["labels"], job.result["labels_unread"]) == (4, 1, 1)
    assert records(project) == {"1": "cat"}
    assert Label.objects.get().created_at.isoformat() == "2024-05-06T07:08:09+00:00"
    assert "several" in problems_of(job)[0][1]
    assert {"animal", "animal-metadata"} <= answer_columns(Project.objects.get())


def test_classes_of_a_manifest_are_a_list() -> None:
    metadata = {"class-map": {"0": "a", "3": "d"}, "human-annotated": "yes"}
    (row,) = read("manifest", line(**{"animal": [0, 3], "animal-metadata": metadata}))
    assert isinstance(row, Row)
    assert row.labels[0].value == ["a", "d"]


@pytest.mark.django_db
def test_plain_texts_need_no_name_of_a_column(project) -> None:
    bring(project, "x.txt", "one\ntwo\n")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("c.txt", "three")
    bring(project, "x.zip", out.getvalue())
    assert list(project.items.order_by("position").values_list("text", flat=True)) == ["one", "two", "three"]
