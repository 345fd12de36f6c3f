"""Imports that would do another thing than whoever starts them thinks: items twice, labels lost."""

import json

import pytest

from annotation.errors import ConflictError, InputError
from annotation.imports.check import check_import
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.models import Item, Job, Project
from testbed.factories import make_image, make_project
from tests.annotation.imports.test_import_parquet import table
from tests.annotation.imports.test_importers import make_zip
from tests.annotation.imports.test_imports import CSV, counts, import_file, result, storage, store

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.database]

TEXT = ColumnMapping(text_column="text")
ROWS = [f"a text {n}" for n in range(20)]


@pytest.fixture
def project() -> Project:
    return make_project()


def lines(rows: list[str]) -> str:
    return "text\n" + "".join(f"{row}\n" for row in rows)


def again(project: Project, content: str | bytes, name: str = "again.csv", **options: bool) -> Job:
    stored = store(project, content, name)
    job = start_import(project=project, user=project.created_by, stored_file=stored, mapping=TEXT, **options)
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


class TestTwice:
    def test_rows_that_are_there_under_other_names_are_asked_about(self, project) -> None:
        import_file(project, store(project, lines(ROWS), "may.csv"), TEXT)
        june = lines([*ROWS, "a new one"])
        with pytest.raises(ConflictError, match="20 are in the project already") as raised:
            again(project, june)
        assert raised.value.where == "add_duplicates"
        assert (Item.objects.count(), Job.objects.count()) == (20, 1)
        assert counts(again(project, june, add_duplicates=True)) == result(21, duplicates=20)

    def test_other_formats_of_the_same_rows_are_asked_about(self, project) -> None:
        import_file(project, store(project, lines(ROWS), "may.csv"), TEXT)
        objects = "".join(json.dumps({"text": row}) + "\n" for row in ROWS)
        for content, name in ((objects, "x.jsonl"), (table({"text": ROWS}), "x.parquet")):
            with pytest.raises(ConflictError, match="add_duplicates"):
                again(project, content, name)

    def test_the_same_file_again_adds_nothing_and_asks_nothing(self, project) -> None:
        stored = store(project, lines(ROWS))
        import_file(project, stored, TEXT)
        assert counts(import_file(project, stored, TEXT)) == result(0, already_there=20)

    def test_the_same_file_with_other_names_is_asked_about(self, project) -> None:
        stored = store(project, CSV)
        import_file(project, stored, ColumnMapping(id_column="id", text_column="text"))
        for mapping in (TEXT, ColumnMapping(text_column="label")):
            with pytest.raises(ConflictError, match="imported before"):
                import_file(project, stored, mapping)

    def test_new_rows_with_a_common_text_among_them_are_not(self, project) -> None:
        import_file(project, store(project, lines(["thanks", *ROWS]), "may.csv"), TEXT)
        new = [f"another text {n}" for n in range(20)]
        assert counts(again(project, lines([*new, "thanks"]))) == result(21, duplicates=1)
        assert counts(again(project, lines(["thanks"]), "one.csv")) == result(1, duplicates=1)

    def test_rows_with_a_name_of_their_own_are_kept_and_reported(self, project) -> None:
        mapping = ColumnMapping(id_column="id", text_column="text")
        import_file(project, store(project, CSV), mapping)
        renamed = CSV.replace("a,", "x,").replace("b,", "y,").replace("c,", "z,")
        assert counts(import_file(project, store(project, renamed, "y.csv"), mapping)) == result(
            3, duplicates=3
        )

    def test_the_check_counts_them(self, project) -> None:
        import_file(project, store(project, lines(ROWS[:5]), "may.csv"), TEXT)
        stored = store(project, lines([*ROWS, "twice", "twice"]), "june.csv")
        check = check_import(stored_file=stored, mapping=TEXT, format_name="csv")
        assert (check.rows, check.new, check.duplicates, check.again) == (22, 22, 6, 5)


class TestLabels:
    @pytest.mark.parametrize(
        ("content", "name"),
        [
            (CSV, "x.csv"),
            ('{"text": "a", "label": "cat", "source": "person"}\n', "labels.jsonl"),
            ('[{"text": "a", "label": "cat"}]', "labels.json"),
            (table({"text": ["a"], "label": ["cat"]}), "labels.parquet"),
        ],
    )
    def test_they_are_not_kept_in_silence_of_a_file_that_does_not_tell_them(
        self, project, content, name
    ) -> None:
        with pytest.raises(InputError, match="does not say which of its columns are labels") as raised:
            again(project, content, name, keep_labels=True)
        assert raised.value.where == "keep_labels"
        assert not Job.objects.exists()

    def test_of_one_that_tells_them_the_first_rows_need_none(self, project) -> None:
        tasks = json.dumps([{"id": n, "data": {"text": f"t{n}"}, "annotations": []} for n in range(3)])
        assert again(project, tasks, "tasks.json", keep_labels=True).result["added"] == 3


def test_an_import_of_the_other_kind_is_told_once(storage) -> None:
    project = make_project()
    texts = store(project, "id,text\na,hello\n")
    mapping = ColumnMapping(id_column="id", text_column="text")
    assert not import_file(project, texts, mapping).problems.exists()
    job = import_file(project, store(project, make_zip({"a.png": make_image()}), "x.zip"), ColumnMapping())
    assert (job.result["added"], job.result["problems"]) == (1, 0)
    assert "Images were added to a text project" in job.problems.get().message
    more = store(project, make_zip({"b.png": make_image(2)}), "y.zip")
    assert not import_file(project, more, ColumnMapping()).problems.exists()
    images = make_project()
    import_file(images, store(images, make_zip({"a.png": make_image()}), "x.zip"), ColumnMapping())
    told = import_file(images, store(images, "id,text\na,hello\n"), mapping).problems.get()
    assert told.message.startswith("Texts were added to an image project")
