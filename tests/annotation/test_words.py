"""What a job does, and what is wrong where: English for programs, the language of the reader on pages."""

import pytest
from django.utils.translation import gettext_noop, override

from annotation.imports.faults import fault
from annotation.jobs import jobs
from annotation.jobs.context import MAX_STAGE, JobContext
from annotation.jobs.places import (
    place_in,
    place_in_line,
    place_of_line,
    place_of_record,
    place_of_row,
    within,
)
from annotation.models import Job, JobProblem
from annotation.words import Words, for_reader, in_words
from testbed.factories import make_project


def test_names_and_numbers_stand_in_them() -> None:
    words = Words(gettext_noop("Scores of %(source)s"), source="50 % fast")
    assert words == "Scores of 50 % fast"
    with override("fr"):
        assert Words(words.template, **words.named) == "Scores of 50 % fast"
        assert (words.in_words(), for_reader(words)) == ("Scores de 50 % fast", "Scores de 50 % fast")
        assert in_words(words.params, words) == "Scores de 50 % fast"
        assert Words("%(done)s / %(size)s", done=12345, size=1).in_words() == "12\xa0345 / 1"
        assert for_reader("of a library") == "of a library"


def test_words_stand_in_words() -> None:
    inner = Words(gettext_noop("This line is no JSON."))
    words = Words(gettext_noop("This line cannot be used: %(error)s"), error=inner)
    assert words == "This line cannot be used: This line is no JSON."
    with override("fr"):
        assert in_words(words.params, words) == words.in_words()
        assert "This" not in words.in_words()


def test_a_name_is_never_translated() -> None:
    with override("fr"):
        assert Words.name("Rows").in_words() == "Rows"
        assert Words(gettext_noop("Rows")).in_words() == "Lignes"


@pytest.mark.parametrize(
    ("place", "english", "french"),
    [
        (place_of_line(12345), "line 12345", "ligne 12345"),
        (place_in_line(3, 7), "line 3, entry 7", "ligne 3, entrée 7"),
        (place_of_record(5), "record 5", "enregistrement 5"),
        (place_of_row(5, "Sheet1, "), "Sheet1, row 5", "Sheet1, ligne 5"),
        (place_in("a/metadata.csv", place_of_line(2)), "a/metadata.csv, line 2", "a/metadata.csv, ligne 2"),
    ],
    ids=["line", "entry", "record", "row", "inside"],
)
def test_a_place(place: Words, english: str, french: str) -> None:
    assert place == english
    with override("fr"):
        assert in_words(place.params, place) == french


@pytest.mark.django_db
@pytest.mark.database
def test_characters_that_no_database_stores_end_no_job(make_job) -> None:
    """A file may hold them in its names, and what is said of it quotes those."""
    odd = "a\0b\ud800"
    words = gettext_noop("This line cannot be used: %(error)s")

    def handler(context: JobContext) -> None:
        context.problems([(within(place_of_line(3), "%(line)s", line=odd), Words(words, error=odd))])
        raise fault(words, where=odd, error=odd)

    job = make_job(handler)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code) == (Job.State.FAILED, "import_refused")
    assert "a\ufffdb\ufffd" in job.error_in_words
    assert "a\ufffdb\ufffd" in JobProblem.objects.get(job=job).message_in_words


@pytest.mark.django_db
def test_a_page_and_a_program_read_the_same_job() -> None:
    job = jobs.enqueue(project=make_project(), kind_name="prepare_run", params={})
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING, claim_token="mine")
    context = JobContext(job, "mine")
    context.progress(stage=Words(gettext_noop("Counting")))
    context.problems([(place_of_line(3), Words(gettext_noop("This line is no JSON."))), ("here", "there")])
    job.refresh_from_db()
    known, plain = JobProblem.objects.filter(job=job)
    assert (known.where, known.line, known.message) == ("line 3", 3, "This line is no JSON.")
    with override("fr"):
        assert (job.stage, job.stage_in_words) == ("Counting", "Comptage")
        assert (known.where_in_words, known.message_in_words != known.message) == ("ligne 3", True)
        assert (plain.where_in_words, plain.message_in_words) == ("here", "there")
    context.progress(stage=Words.name("x" * 200))
    job.refresh_from_db()
    assert job.stage == "x" * MAX_STAGE
