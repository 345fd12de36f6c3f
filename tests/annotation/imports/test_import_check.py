"""What an import would do, told before it is started, against what it then does."""

import pytest

from annotation.imports import check as import_check
from annotation.imports.check import check_import
from annotation.imports.columns import ColumnMapping
from annotation.models import Item, Job, Project, StoredFile
from testbed.factories import make_image, make_project
from tests.annotation.imports.test_import_pages import ROWS, text, upload
from tests.annotation.imports.test_importers import make_zip
from tests.annotation.imports.test_imports import BY_TEXT, CSV, counts, import_file, storage, store

__all__ = ["storage"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


def as_import(check: import_check.Check) -> dict[str, int]:
    return {
        "added": check.new,
        "already_there": check.already_there,
        "problems": check.unusable,
        "duplicates": check.duplicates,
    }


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        "id,text\na,first\nb,other\nd,new\ne,new\nd,new\nd,newer\n,x\nf,\ng\n",
        "id,text\n" + "".join(f"{n % 40},text {n % 30}\n" for n in range(100)),
    ],
)
@pytest.mark.parametrize("chunk", [3, 1000])
def test_it_counts_as_the_import_does_and_stores_nothing(project, monkeypatch, content, chunk) -> None:
    monkeypatch.setattr(import_check, "CHUNK", chunk)
    import_file(project, store(project, CSV), BY_TEXT)
    before = (Item.objects.count(), Job.objects.count())
    stored = store(project, content, "new.csv")
    check = check_import(stored_file=stored, mapping=BY_TEXT, format_name="csv_comma")
    assert (Item.objects.count(), Job.objects.count()) == before
    assert check.whole
    job = import_file(project, stored, BY_TEXT)
    assert as_import(check) == counts(job)
    assert check.rows == job.total
    assert check.first is not None
    assert check.first.text


def test_of_a_large_file_it_counts_the_first_rows(project, monkeypatch) -> None:
    monkeypatch.setattr(import_check, "QUICK_BYTES", 10)
    monkeypatch.setattr(import_check, "FIRST_ROWS", 2)
    check = check_import(stored_file=store(project, CSV), mapping=BY_TEXT, format_name="csv_comma")
    assert (check.rows, check.new, check.whole) == (2, 2, False)
    monkeypatch.setattr(import_check, "FIRST_ROWS", 3)
    check = check_import(stored_file=store(project, CSV), mapping=BY_TEXT, format_name="csv_comma")
    assert (check.rows, check.whole) == (3, True)


def test_images_are_counted_without_being_kept(project) -> None:
    archive = make_zip({"a.png": make_image(1), "b.png": make_image(1), "c.txt": b"no"})
    stored = store(project, archive, "x.zip")
    check = check_import(stored_file=stored, mapping=ColumnMapping(), format_name="zip_images")
    assert (check.rows, check.new, check.duplicates, check.unusable) == (3, 2, 1, 1)
    assert StoredFile.objects.get() == stored
    assert as_import(check) == counts(import_file(project, stored, ColumnMapping()))


def test_the_first_problems_are_named(project) -> None:
    content = "id,text\n" + "".join(f"{n},\n" for n in range(9))
    check = check_import(stored_file=store(project, content), mapping=BY_TEXT, format_name="csv_comma")
    assert (check.unusable, len(check.problems)) == (9, import_check.SHOWN_PROBLEMS)
    assert check.problems[0][0] == "line 2, column “text”"
    assert check.first is None


def test_the_page_does_not_propose_what_cannot_be_imported(owner, project) -> None:
    path, proposed = upload(owner, project, ROWS), '<button type="submit" id="import-now">'
    assert proposed in text(owner.get(path))
    page = text(owner.post(path, {"text_column": [""], "format": "csv_comma", "do": "look"}))
    assert "note error" in page
    assert proposed not in page
    assert '<button type="submit" id="import-now" class="secondary">' in page
