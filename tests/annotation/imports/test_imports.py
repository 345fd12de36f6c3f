"""From an uploaded file to items."""

import io
import re
from typing import Any

import pytest
from django.core.files.storage import default_storage

from annotation.common.files import open_file, store_file
from annotation.errors import ConflictError, InputError
from annotation.imports import job as import_job, rows as import_rows
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats import registry
from annotation.imports.upload import preview, start_import
from annotation.jobs import jobs
from annotation.models import Item, Job, Project, StoredFile
from testbed.factories import make_image, make_project
from tests.annotation.imports.test_importers import make_zip

pytestmark = [pytest.mark.django_db, pytest.mark.database]

CSV = "id,text,label\na,first,cat\nb,second,dog\nc,third,cat\n"
BY_TEXT = ColumnMapping(id_column="id", text_column="text")


@pytest.fixture(autouse=True)
def storage(settings, tmp_path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def project() -> Project:
    return make_project()


def store(project: Project, content: str | bytes, name: str = "data.csv") -> StoredFile:
    raw = content if isinstance(content, bytes) else content.encode()
    return store_file(project=project, content=io.BytesIO(raw), original_name=name, media_type="text/csv")


def import_file(project: Project, stored: StoredFile, mapping: ColumnMapping, encoding: str = "") -> Job:
    job = start_import(
        project=project, user=project.created_by, stored_file=stored, mapping=mapping, encoding=encoding
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def result(added: int, already_there: int = 0, problems: int = 0, duplicates: int = 0) -> dict[str, int]:
    return {
        "added": added,
        "already_there": already_there,
        "problems": problems,
        "duplicates": duplicates,
    }


def counts(job: Job) -> dict[str, int]:
    """Without labels, and what is kept for whoever takes the import back."""
    others = ("positions", "columns", "labels", "labels_unread", "spent")
    return {name: value for name, value in job.result.items() if name not in others}


def problems_of(job: Job) -> list[tuple[str, str]]:
    return list(job.problems.values_list("where", "message"))


class TestPreview:
    def test_shows_rows_and_suggests_columns(self, project) -> None:
        seen = preview(stored_file=store(project, CSV), rows=2)
        assert (seen.format, seen.columns, seen.problems) == ("csv_comma", ["id", "text", "label"], [])
        assert seen.rows == [
            {"id": "a", "text": "first", "label": "cat"},
            {"id": "b", "text": "second", "label": "dog"},
        ]
        assert seen.suggestion == BY_TEXT

    def test_an_id_that_repeats_is_not_suggested_and_the_longest_column_is_the_text(self, project) -> None:
        seen = preview(stored_file=store(project, "id,x,long\n1,a,some words\n1,b,more words\n"))
        assert seen.suggestion == ColumnMapping(text_column="long")

    def test_names_problems_of_the_first_rows(self, project) -> None:
        seen = preview(stored_file=store(project, "a,b\n1\n1,2\n"))
        assert [where for where, _ in seen.problems] == ["line 2"]

    def test_images(self, project) -> None:
        table = "file_name,label\na.png,cat\n"
        stored = store(project, make_zip({"a.png": make_image(), "metadata.csv": table}), "x.zip")
        seen = preview(stored_file=stored)
        assert (seen.format, seen.columns, seen.holds_images) == ("zip_images", ["file_name", "label"], True)

    @pytest.mark.parametrize(
        ("name", "content", "format_name"),
        [
            ("x.csv", b"a,b\n1,2\n", "csv_comma"),
            ("x.csv", b"a;b\n1,5;2\n", "csv_semicolon"),
            ("x.csv", "a;b\n1,5;2\n".encode("utf-16"), "csv_semicolon"),
            ("x.txt", "a\tb\n1\t2\n".encode("utf-16"), "tsv"),
            ("x.json", b' [{"a": 1}]', "json"),
            ("x.txt", b"text\nIt rains, it pours.\n", "csv_comma"),
            ("x.txt", b"It rains, it pours.\nNo.\nYes, no, yes; no.\n", "lines"),
            ("x.txt", b'q,a\n1,2\n"3,4",5\n', "csv_comma"),
            ("x.txt", b"a\tb\n1\t2\n", "tsv"),
            ("x.tsv", b"a\n1\n", "tsv"),
            ("x.json", b'\xef\xbb\xbf {"a": 1}\n', "jsonl"),
            ("x.csv", make_zip({"a.png": make_image()}), "zip_images"),
        ],
    )
    def test_the_format_is_told_by_the_content(self, project, name, content, format_name) -> None:
        assert preview(stored_file=store(project, content, name)).format == format_name

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "empty"),
            (b"\xef\xbb\xbf \n", "empty"),
            (b"a,b\n", "no rows"),
            (b"<!DOCTYPE html>\n", "seems to be a web page"),
            (b"\xef\xbb\xbf \n<html lang='en'>\n<p>a,b</p>\n", "seems to be a web page"),
            (make_image(), "single image"),
            (b"%PDF-1.4\n\xff binary", "neither text"),
            (b"\x7fELF\0\0", "neither text"),
            (b"[]", "no entries"),
            ("a,b\n1,2".encode("utf-16") + b"x", "begins as UTF-16, and this is not"),
            (b"a,b\ncaf\xe9,1\n", "not UTF-8"),
        ],
    )
    def test_what_cannot_be_read_is_said_in_words(self, project, content, message) -> None:
        with pytest.raises(InputError, match=message):
            preview(stored_file=store(project, content))

    def test_a_zip_by_name_alone_is_no_table(self, project) -> None:
        with pytest.raises(InputError, match="no zip archive"):
            preview(stored_file=store(project, b"a,b\n1,2\n", "images.zip"))


class TestStart:
    @pytest.mark.parametrize(
        ("mapping", "where"),
        [
            (ColumnMapping(id_column="id"), "text_column"),
            (ColumnMapping(text_column="txt"), "text_column"),
            (ColumnMapping(id_column="nr", text_column="text"), "id_column"),
        ],
    )
    def test_a_mapping_that_does_not_fit_names_the_field(self, project, mapping, where) -> None:
        with pytest.raises(InputError) as raised:
            import_file(project, store(project, CSV), mapping)
        assert raised.value.where == where
        assert not Job.objects.exists()

    def test_one_import_at_a_time(self, project) -> None:
        arguments = {"project": project, "user": project.created_by, "mapping": BY_TEXT}
        start_import(stored_file=store(project, CSV), **arguments)
        with pytest.raises(ConflictError, match="under way"):
            start_import(stored_file=store(project, CSV), **arguments)

    def test_a_file_of_another_project_is_refused(self, project) -> None:
        with pytest.raises(InputError, match="another project"):
            import_file(project, store(make_project(), CSV), BY_TEXT)


class TestImport:
    def test_rows_become_items_in_their_order(self, project) -> None:
        job = import_file(project, store(project, CSV), BY_TEXT)
        assert (job.state, job.done, job.total, counts(job)) == (Job.State.DONE, 3, 3, result(3))
        items = list(project.items.values_list("position", "external_id", "text"))
        assert items == [(0, "a", "first"), (1, "b", "second"), (2, "c", "third")]
        assert project.items.first().data == {"id": "a", "text": "first", "label": "cat"}
        project.refresh_from_db()
        assert project.columns == ["id", "text", "label"]

    def test_the_same_file_twice_adds_nothing(self, project) -> None:
        for mapping in (BY_TEXT, ColumnMapping(text_column="text")):
            other = make_project()
            first = import_file(other, store(other, CSV), mapping)
            again = import_file(other, store(other, CSV, "renamed.csv"), mapping)
            assert (counts(first), counts(again)) == (result(3), result(0, already_there=3))
            assert again.state == Job.State.DONE
            assert other.items.count() == 3

    def test_a_longer_file_adds_what_is_new_behind(self, project) -> None:
        import_file(project, store(project, CSV), BY_TEXT)
        longer = "id,note,text\nd,new,fourth\na,changed,first\n"
        job = import_file(project, store(project, longer), BY_TEXT)
        assert counts(job) == result(1, already_there=1)
        assert project.items.last().external_id == "d"
        assert project.items.last().position == 3
        project.refresh_from_db()
        assert project.columns == ["id", "text", "label", "note"]

    def test_without_an_id_column_files_do_not_get_in_each_others_way(self, project) -> None:
        mapping = ColumnMapping(text_column="text")
        import_file(project, store(project, "text\none\n", "a.csv"), mapping)
        job = import_file(project, store(project, "text\ntwo\n", "b.csv"), mapping)
        assert counts(job) == result(1)
        assert list(project.items.values_list("external_id", flat=True)) == ["a.csv:2", "b.csv:2"]

    def test_bad_rows_are_named_and_the_others_kept(self, project) -> None:
        content = "id,text\na,one\n,two\nb\nc, \na,three\n" + "x" * 256 + ",four\nd,one\n"
        job = import_file(project, store(project, content), BY_TEXT)
        assert (job.state, counts(job)) == (Job.State.DONE, result(2, problems=5, duplicates=1))
        messages = dict(problems_of(job))
        assert "has no id" in messages["line 3, column “id”"]
        assert "1 cell," in messages["line 4"]
        assert "nothing to label" in messages["line 5, column “text”"]
        assert "“a” is the id of line 2 of this file, too" in messages["line 6, column “id”"]
        assert "256 characters" in messages["line 7, column “id”"]
        assert "same content as the item “a”" in messages["line 8"]
        assert list(project.items.values_list("external_id", flat=True)) == ["a", "d"]

    def test_hostile_text_stays_as_it_is(self, project) -> None:
        text = "<script>alert(1)</script> =cmd|' /C calc'!A0 {{ x }} \u202e"
        import_file(project, store(project, f'id,text\n"../../{text}","{text}"\n'), BY_TEXT)
        item = project.items.get()
        assert (item.text, item.external_id) == (text, f"../../{text}")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"id,text\na,one\nb,caf\xe9\n", "line 3: This is not UTF-8"),
            (b'id,text\na,one\nb,"two\n', "line 3: The quotation marks"),
            (b"id,text\na,\nb,\n", r"No row of .* \(of 2\)\. .* line 2, column “text”: It is empty"),
        ],
    )
    def test_a_file_that_breaks_off_adds_nothing(self, project, content, message) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("annotation.imports.upload.SAMPLE", 1)
            patch.setattr("annotation.imports.encodings.LOOKED_AT", 8)
            job = import_file(project, store(project, content), BY_TEXT)
        assert job.state == Job.State.FAILED
        assert re.search(message, job.error)
        assert not project.items.exists()

    def test_json_lines_with_a_column_that_is_missing_in_some(self, project) -> None:
        content = '{"id": 1, "text": "one"}\n{"id": 2}\n{"id": 3, "text": "three", "more": 1.0}\n'
        job = import_file(project, store(project, content), BY_TEXT)
        assert counts(job) == result(2, problems=1)
        assert problems_of(job) == [
            ("line 2, column “text”", "This row has no such column. Add it, or drop the row.")
        ]

    def test_images_are_stored_by_their_hash(self, project) -> None:
        same = make_image(1)
        table = "file_name,label\nb.png,cat\n"
        archive = make_zip({"a.png": same, "b.png": make_image(2), "c/a.png": same, "metadata.csv": table})
        job = import_file(project, store(project, archive, "x.zip"), ColumnMapping())
        assert counts(job) == result(3, duplicates=1)
        b, a, copy = project.items.all()
        assert (b.external_id, a.external_id, copy.external_id) == ("b.png", "a.png", "c/a.png")
        assert b.data == {"file_name": "b.png", "label": "cat"}
        assert a.image == copy.image
        assert a.image.storage_name == f"projects/{project.pk}/{a.image.sha256[:2]}/{a.image.sha256}"
        with open_file(a.image) as file:
            assert file.read() == same
        assert counts(import_file(project, store(project, archive), ColumnMapping())) == result(
            0, already_there=3
        )

    def test_too_many_columns(self, project, monkeypatch) -> None:
        monkeypatch.setattr(import_rows, "MAX_COLUMNS", 3)
        content = '{"id": "1", "text": "a"}\n{"id": "2", "text": "b", "x": 1, "y": 2}\n'
        job = import_file(project, store(project, content), BY_TEXT)
        assert counts(job) == result(1, problems=1)


class TestResume:
    @pytest.fixture
    def small_chunks(self, monkeypatch) -> None:
        monkeypatch.setattr(import_job, "CHUNK_ROWS", 2)

    def start(self, project: Project) -> Job:
        rows = "".join(f"{number},text {number % 6}\n" for number in range(7)) + "7\n8,\n"
        return start_import(
            project=project,
            user=project.created_by,
            stored_file=store(project, "id,text\n" + rows),
            mapping=BY_TEXT,
        )

    @pytest.mark.parametrize("after", [0, 1, 2, 3])
    def test_a_worker_that_dies_loses_and_doubles_nothing(
        self, project, small_chunks, monkeypatch, after
    ) -> None:
        class KilledError(BaseException):
            pass

        stored_chunks = 0
        real = import_job._insert

        def dies_after_a_while(*arguments: Any) -> int:
            nonlocal stored_chunks
            start = real(*arguments)
            stored_chunks += 1
            if stored_chunks > after:
                raise KilledError  # in the middle of a transaction
            return start

        job = self.start(project)
        with monkeypatch.context() as patch:
            patch.setattr(import_job, "_insert", dies_after_a_while)
            with pytest.raises(KilledError):
                jobs.run(job.pk)
        job.refresh_from_db()
        assert (job.state, job.done) == (Job.State.RUNNING, 2 * after)
        assert project.items.count() == 2 * after
        Job.objects.update(heartbeat_at="2020-01-01T00:00Z")
        assert jobs.run(job.pk) is True
        job.refresh_from_db()
        assert counts(job) == result(7, problems=2, duplicates=1)
        assert job.problems.count() == 3
        assert list(project.items.values_list("external_id", flat=True)) == list("0123456")
        assert list(project.items.values_list("position", flat=True)) == list(range(7))

    def test_cancelled_and_started_again(self, project, small_chunks, monkeypatch) -> None:
        job = self.start(project)
        real = import_job._insert

        def cancelled_meanwhile(*arguments: Any) -> int:
            start = real(*arguments)
            jobs.cancel(job=job)
            return start

        with monkeypatch.context() as patch:
            patch.setattr(import_job, "_insert", cancelled_meanwhile)
            assert jobs.run(job.pk) is False
        assert Item.objects.count() == 2
        job.refresh_from_db()
        jobs.retry(job=job)
        assert jobs.run(job.pk) is True
        assert Item.objects.count() == 7


class TestFiles:
    def test_the_same_bytes_are_kept_once(self, project) -> None:
        first, second = store(project, "x", "a.csv"), store(project, "x", "b.csv")
        assert first == second
        assert store(make_project(), "x").pk != first.pk

    def test_a_write_that_was_cut_off_is_made_good(self, project) -> None:
        stored = store(project, "whole content")
        with default_storage.open(stored.storage_name, "wb") as file:
            file.write(b"whole")
        store(project, "whole content")
        with open_file(stored) as file:
            assert file.read() == b"whole content"

    @pytest.mark.parametrize(
        ("name", "kept"),
        [
            ("../../etc/passwd", "passwd"),
            ("C:\\x\\y.csv", "y.csv"),
            ("a\0\nb.csv", "ab.csv"),
            ("", "file"),
            ("../", ".."),
            ("x" * 300, "x" * 255),
        ],
    )
    def test_names_are_for_reading_only(self, project, name, kept) -> None:
        stored = store(project, name + "content", name)
        assert stored.original_name == kept
        assert ".." not in stored.storage_name

    def test_the_cap_on_uploads(self, project, settings) -> None:
        settings.HYPAC_MAX_UPLOAD_BYTES = 10
        with pytest.raises(InputError, match="larger than 10 bytes"):
            store(project, "x" * 11)
        assert not StoredFile.objects.exists()

    def test_a_file_the_storage_has_lost(self, project) -> None:
        stored = store(project, "x")
        default_storage.delete(stored.storage_name)
        with pytest.raises(InputError, match="no longer in the storage"):
            open_file(stored)


def test_the_registry_names_what_it_knows() -> None:
    with pytest.raises(InputError, match=r"csv_semicolon, tsv, .*lines, parquet, excel, .*zip_images"):
        registry.get("xlsx")
