"""What an item is made of: one column or several, and which ones people may never see."""

import io
import json
import re

import pytest

from annotation.errors import ConflictError, InputError
from annotation.imports.columns import Column, ColumnMapping, read_columns
from annotation.imports.formats.detect import detect_in
from annotation.imports.formats.registry import IMPORTERS
from annotation.imports.rows import fields_hash, fields_text, text_hash
from annotation.imports.upload import preview, start_import
from annotation.labelling import queue
from annotation.models import Job, Project
from annotation.ports import routing_port
from testbed.factories import make_project
from tests.annotation.imports.test_imports import counts, import_file, problems_of, result, storage, store

__all__ = ["storage"]
pytestmark = pytest.mark.django_db

QA = "id,question,answer,label\na,What is 1+1?,2,cat\nb,And 2+2?,,dog\nc,,,cat\n"
BOTH = ColumnMapping(id_column="id", field_columns=("question", "answer"))


@pytest.fixture
def project() -> Project:
    return make_project()


class TestFields:
    def test_several_columns_become_fields_in_their_order(self, project) -> None:
        job = import_file(project, store(project, QA), BOTH)
        assert counts(job) == result(2, problems=1)
        first, second = project.items.all()
        assert first.fields == [["question", "What is 1+1?"], ["answer", "2"]]
        assert first.text == "question: What is 1+1?\nanswer: 2"
        assert second.fields == [["question", "And 2+2?"], ["answer", ""]]
        assert first.data == {"id": "a", "question": "What is 1+1?", "answer": "2", "label": "cat"}
        assert problems_of(job) == [
            ("line 4", "All columns that people see are empty: there is nothing to label.")
        ]

    def test_one_column_is_a_text_as_ever(self, project) -> None:
        assert ColumnMapping.showing(["question"], id_column="id") == ColumnMapping("id", "question")
        import_file(
            project, store(project, "id,text\na,one\n"), ColumnMapping.showing(["text"], id_column="id")
        )
        item = project.items.get()
        assert (item.fields, item.text, item.content_hash) == ([], "one", text_hash("one"))

    def test_what_people_see_is_what_makes_two_items_the_same(self, project) -> None:
        import_file(project, store(project, QA), BOTH)
        turned = ColumnMapping(id_column="id", field_columns=("answer", "question"))
        again = import_file(project, store(project, QA), BOTH)
        assert counts(again) == result(0, already_there=2, problems=1)
        other = import_file(project, store(project, QA), turned)
        assert counts(other) == result(0, problems=3)  # the same ids with other content
        fields = [("question", "one\nanswer: 2")]
        assert fields_text(fields) == fields_text([("question", "one"), ("answer", "2")])
        assert fields_hash(fields) != fields_hash([("question", "one"), ("answer", "2")])
        assert fields_hash(fields) != text_hash(fields_text(fields))

    def test_a_column_that_a_row_lacks_is_empty(self, project) -> None:
        content = '{"id": "1", "q": "x", "a": "y"}\n{"id": "2", "q": "z"}\n'
        mapping = ColumnMapping(id_column="id", field_columns=("q", "a"))
        assert counts(import_file(project, store(project, content), mapping)) == result(2)
        assert project.items.last().fields == [["q", "z"], ["a", ""]]

    @pytest.mark.parametrize(
        ("columns", "words"),
        [(("question", "question"), "once"), (("question", "reply"), "no column “reply”")],
    )
    def test_what_cannot_be_shown_is_refused(self, project, columns, words) -> None:
        with pytest.raises(InputError, match=words) as raised:
            import_file(project, store(project, QA), ColumnMapping(field_columns=columns))
        assert raised.value.where == "text_column"

    def test_a_job_of_an_earlier_version_knows_no_fields(self) -> None:
        params = {"file": 1, "format": "csv", "id_column": "id", "text_column": "text"}
        assert ColumnMapping.of(params) == ColumnMapping("id", "text")


class TestColumns:
    def read(self, project: Project, content: str, *model_output: str) -> dict[str, Column]:
        seen = preview(stored_file=store(project, content))
        columns = read_columns(seen.columns, seen.rows, project, frozenset(model_output))
        return {column.name: column for column in columns}

    def test_types_are_read_from_the_values(self, project) -> None:
        rows = "".join(
            f"{n},1 {n:03d}.5,2026-11-{n + 10},{colour},a{n}.PNG,word {n},{'long ' * 60},\n"
            for n, colour in enumerate(("red", "blue", "red", "blue", "red"))
        )
        columns = self.read(project, "id,price,day,colour,file,name,story,void\n" + rows)
        kinds = {name: column.kind for name, column in columns.items()}
        assert kinds == {
            "id": "number",
            "price": "number",
            "day": "date",
            "colour": "category",
            "file": "image",
            "name": "text",
            "story": "long_text",
            "void": "empty",
        }
        assert columns["colour"].words == "category, 2 values"

    @pytest.mark.parametrize(
        ("cells", "kind"),
        [("e-0 E1 e-29", "text"), (".5 -1e3 12%", "number"), ("1e-4 +2.5 3", "number"), ("+ -e2 %", "text")],
    )
    def test_an_exponent_alone_is_no_number(self, project, cells, kind) -> None:
        assert self.read(project, "id\n" + cells.replace(" ", "\n") + "\n")["id"].kind == kind

    @pytest.mark.parametrize(
        "name", ["label", "y_pred", "modelConfidence", "confidence1", "GOLD", "n_tokens", "logprobs"]
    )
    def test_columns_with_answers_are_known_by_their_names(self, project, name) -> None:
        assert self.read(project, f"{name}\nx\n")[name].answers

    @pytest.mark.parametrize("name", ["text", "question", "title", "scoreboard", "relabelled", "tone"])
    def test_other_names_are_not(self, project, name) -> None:
        assert not self.read(project, f"{name}\nx\n")[name].suspicious

    def test_the_labels_of_the_project_are_recognised(self, project) -> None:
        columns = self.read(project, "animal,other\nCat,cat\ndog,cow\n,cat\n")
        assert columns["animal"].labels
        assert not columns["other"].labels

    def test_answers_are_never_suggested_as_the_text(self, project) -> None:
        seen = preview(stored_file=store(project, "prediction,x\na long long answer,short\n"))
        assert seen.suggestion.text_column == "x"
        seen = preview(stored_file=store(project, "prediction,animal\na long long answer,dog\n"))
        assert seen.suggestion == ColumnMapping()


class TestModelOutput:
    @pytest.fixture(autouse=True)
    def named(self, monkeypatch) -> None:
        monkeypatch.setattr(routing_port(), "model_columns", lambda **_: {"reply"})

    @pytest.mark.parametrize(
        "mapping", [ColumnMapping("", "reply"), ColumnMapping(field_columns=("q", "reply"))]
    )
    def test_what_a_source_reads_is_not_shown(self, project, mapping) -> None:
        with pytest.raises(InputError, match="reads its answers from the column “reply”") as raised:
            import_file(project, store(project, "q,reply\na,b\n"), mapping)
        assert raised.value.where == "text_column"
        assert not Job.objects.exists()

    def test_nor_suggested(self, project) -> None:
        seen = preview(stored_file=store(project, "q,reply\na,a long reply\n"))
        assert seen.suggestion.text_column == "q"
        assert not seen.details[1].may_be_shown


class TestTextFormat:
    def start(self, project: Project, text_format: str) -> Job:
        return start_import(
            project=project,
            user=project.created_by,
            stored_file=store(project, "id,text\na,*one*\n"),
            mapping=ColumnMapping("id", "text"),
            text_format=text_format,
        )

    def test_it_is_set_for_the_project(self, project) -> None:
        self.start(project, "markdown")
        project.refresh_from_db()
        assert project.text_format == "markdown"

    def test_not_once_people_have_been_asked(self, project) -> None:
        items = import_file(project, store(project, QA), ColumnMapping("id", "question")).project.items.all()
        queue.create_batch(project=project, item_ids=[items[0].pk], blind=True, priority=1, entropy=1)
        with pytest.raises(ConflictError, match="stays as it is"):
            self.start(project, "markdown")
        assert not project.jobs.filter(state="queued").exists()
        self.start(project, "plain")  # as it is

    def test_an_unknown_one_is_refused(self, project) -> None:
        with pytest.raises(InputError, match="plain or Markdown"):
            self.start(project, "html")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"data": {"rows": [{"id": 1}, {"id": 2}]}}, "data.rows"),
        ({"data": [{"id": 1}, {"id": 2}], "version": "1"}, "data"),
        ({"type": "FeatureCollection", "features": [{"a": 1}, {"a": 2}]}, "features"),
        ({"rows": [{"a": "x" * 6_000}, {"a": "y" * 6_000}]}, "rows"),
    ],
)
def test_rows_that_are_wrapped_are_no_single_item(content: object, place: str) -> None:
    with pytest.raises(InputError, match=f"whose “{re.escape(place)}” is a list of 2 objects"):
        detect_in(io.BytesIO(json.dumps(content, indent=1).encode()), "x.json", IMPORTERS.values())


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('{"id": 1, "data": {"text": "a"}}', "label_studio"),
        ('{"id": 1, "data": {"text": "a"}, "annotations": [{"a": 1}, {"a": 2}]}', "label_studio"),
        ('{"id": 1, "turns": [{"a": 1}, {"a": 2}]}\n{"id": 2, "turns": [{"a": 1}, {"a": 2}]}', "jsonl"),
        ('{"id": 1, "messages": [{"a": 1}, {"a": 2}]}', "jsonl"),
        ('[{"id": 1, "turns": [{"a": 1}, {"a": 2}]}]', "json"),
        ('{"id": 1, "text": "a", "tags": ["b", "c"]}', "jsonl"),
    ],
)
def test_an_item_may_hold_lists(content: str, name: str) -> None:
    assert detect_in(io.BytesIO(content.encode()), "x.json", IMPORTERS.values()) == name
