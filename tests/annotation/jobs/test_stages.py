"""What a job says that it is doing: English for programs, the reader's language on pages."""

import pytest
from django.utils.translation import gettext_noop, override

from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Job
from annotation.stages import MAX_CHARACTERS, Stage
from testbed.factories import make_project


def test_names_and_numbers_stand_in_its_words() -> None:
    stage = Stage(gettext_noop("Scores of %(source)s"), {"source": "50 % fast"})
    assert stage.in_words() == "Scores of 50 % fast"
    with override("fr"):
        assert stage.in_words() == "Scores de 50 % fast"
        assert stage.columns["stage"] == "Scores of 50 % fast"
        assert Stage("%(done)s / %(size)s", {"done": 12345, "size": 1}).in_words() == "12\xa0345 / 1"


def test_a_name_is_never_translated_nor_too_long_to_store() -> None:
    with override("fr"):
        assert Stage.of("Rows").in_words() == "Rows"
        assert Stage(gettext_noop("Rows")).in_words() != "Rows"
    assert len(Stage.of("x" * 200).columns["stage"]) == MAX_CHARACTERS


@pytest.mark.django_db
def test_a_page_and_a_program_read_the_same_job(client) -> None:
    job = jobs.enqueue(project=make_project(), kind_name="prepare_run", params={})
    assert Job(stage="of an older version").stage_in_words == "of an older version"
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING, claim_token="mine")
    JobContext(job, "mine").progress(stage=Stage(gettext_noop("Counting")))
    job.refresh_from_db()
    with override("fr"):
        assert (job.stage, job.stage_in_words) == ("Counting", "Comptage")
