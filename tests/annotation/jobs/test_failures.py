"""Why a job failed: programs go by its code, people read a sentence in their own language."""

import pytest
from django.utils.translation import gettext, override

from annotation import failures
from annotation.errors import HypacError, JobFailedError
from annotation.jobs import running as jobs
from annotation.models import Job
from testbed.factories import make_project

SPILLED = failures.Failure("spilled", lambda params: gettext("Log out") + f" {params['litres']}")


@pytest.fixture
def failed(db, monkeypatch) -> Job:
    """A job whose handler raised the failure "spilled"."""
    monkeypatch.setitem(failures._failures, "spilled", SPILLED)

    def spill(_context: jobs.JobContext) -> None:
        raise SPILLED.error(litres=3)

    monkeypatch.setitem(jobs._kinds, "spill", jobs.Kind("spill", "Spill", spill, lambda _job: "default"))
    job = jobs.enqueue(project=make_project(), kind_name="spill", params={})
    with override("fr"):  # whatever the worker speaks
        jobs.run(job.pk)
    job.refresh_from_db()
    return job


def test_a_failure_is_raised_as_an_error_of_jobs_with_its_code() -> None:
    class OtherError(HypacError):
        pass

    error = SPILLED.error(litres=2, permanent=False)
    assert (type(error), str(error), error.permanent) == (JobFailedError, "Log out 2", False)
    assert (error.code, error.params) == ("spilled", {"litres": 2})
    assert isinstance(SPILLED.error(raised_as=OtherError, litres=2), OtherError)


def test_a_failed_job_keeps_code_and_parameters_and_the_english_sentence(failed: Job) -> None:
    assert (failed.state, failed.error) == (Job.State.FAILED, "Log out 3")
    assert (failed.error_code, failed.error_params) == ("spilled", {"litres": 3})


def test_each_reader_reads_it_in_their_language(failed: Job) -> None:
    with override("fr"):
        assert failed.error_in_words == "Se déconnecter 3"
    assert failed.error_in_words == "Log out 3"


@pytest.mark.parametrize("changed", [{"error_code": "of a later version"}, {"error_params": {}}])
def test_what_this_version_cannot_tell_is_shown_as_it_was_stored(failed: Job, changed: dict) -> None:
    Job.objects.filter(pk=failed.pk).update(**changed)
    failed.refresh_from_db()
    assert failed.error_in_words == "Log out 3"


def test_a_job_that_is_started_again_has_no_failure(failed: Job) -> None:
    jobs.retry(job=failed)
    failed.refresh_from_db()
    assert (failed.error, failed.error_code, failed.error_params) == ("", "", {})
    assert failed.error_in_words == ""
