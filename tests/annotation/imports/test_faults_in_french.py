"""Why an import failed reaches each reader in their language, down to what is wrong with the file."""

import gzip

import pytest
from django.utils.translation import override

from annotation.jobs import jobs
from annotation.models import Job, JobProblem
from testbed.factories import make_project
from tests.annotation.imports.test_imports import storage, store

__all__ = ["storage"]


def imported(file_format: str, content: bytes) -> Job:
    """The job after a worker that speaks French has done it."""
    project = make_project()
    stored = store(project, content)
    params = {"file": stored.pk, "format": file_format, "id_column": "id", "text_column": "text"}
    job = jobs.enqueue(project=project, kind_name="import", params=params)
    with override("fr"):
        jobs.run(job.pk)
    job.refresh_from_db()
    return job


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("file_format", "content", "english", "french"),
    [
        ("csv_comma", b"id,text\n1,a\n2,\0\n", "line 3: There is a NUL", "line 3: Il y a un caractère NUL"),
        ("csv_comma", b"id,text\n1,\xff\n", "is not UTF-8: byte 0xFF at place 3", "0xFF à la position 3"),
        ("csv_comma", b"id,id\n1,2\n", "The column 'id' is there twice", "La colonne 'id'"),
        ("json", b'[{"id": "1", "text": "a"}', "The list is never closed", "La liste n’est jamais fermée"),
        ("csv_comma", gzip.compress(b"id,text\n1,a\n")[:-6], "damaged or cut off (", "est abîmé ou tronqué"),
        ("zip_images", b"PK\3\4", "The zip archive is damaged", "L’archive zip est endommagée"),
    ],
    ids=["NUL", "no UTF-8", "twice", "never closed", "cut off", "damaged"],
)
def test_a_file_that_cannot_be_read(file_format: str, content: bytes, english: str, french: str) -> None:
    job = imported(file_format, content)
    assert (job.state, job.error_code) == (Job.State.FAILED, "import_refused")
    assert english in job.error
    assert job.error_in_words == job.error
    with override("fr"):
        assert french in job.error_in_words


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("file_format", "content", "english", "french"),
    [
        ("jsonl", b'{"id": "1", "text": "a"}\n[1]\n', "it is no JSON object", "Cette ligne ne peut pas"),
        ("jsonl", b'{"id": "1", "text": "a"}\n{"text": \n', "it breaks off", "Cette ligne ne peut pas"),
        ("csv_comma", b"id,text\n1,a\n2\n", "This row has 1 cell,", "Cette ligne a 1 cellule"),
        ("csv_comma", b"id,text\n1,a\n2,\n", "there is nothing to label", "rien"),
    ],
    ids=["no object", "cut off", "uneven", "empty"],
)
def test_a_row_that_cannot_be_used(file_format: str, content: bytes, english: str, french: str) -> None:
    job = imported(file_format, content)
    (problem,) = JobProblem.objects.filter(job=job)
    assert english in problem.message
    with override("fr"):
        assert problem.where_in_words.startswith("ligne ")
        assert french in problem.message_in_words
        assert english not in problem.message_in_words
