"""Why a job failed: programs go by its code, people read a sentence in their own language."""

import json
import re
import subprocess
import sys

import pytest
from django.conf import settings
from django.utils.translation import gettext, override

from annotation import failures
from annotation.errors import HypacError, InputError, JobFailedError
from annotation.jobs import jobs, kinds
from annotation.jobs.context import JobContext
from annotation.models import Job
from testbed.factories import make_project
from tests.support import child_environment

pytestmark = pytest.mark.costly

SPILLED = failures.Failure("spilled", lambda params: gettext("Log out") + f" {params['litres']}")


@pytest.fixture
def failed(db, monkeypatch) -> Job:
    """A job whose handler raised the failure "spilled"."""
    monkeypatch.setitem(failures._failures, "spilled", SPILLED)

    def spill(_context: JobContext) -> None:
        raise SPILLED.error(litres=3)

    monkeypatch.setitem(kinds.KINDS, "spill", kinds.Kind("spill", "Spill", spill, lambda _job: "default"))
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


@pytest.fixture
def around(monkeypatch) -> failures.Failure:
    """A failure that tells of another one, such as "spilled"."""
    monkeypatch.setattr(failures, "_failures", {"spilled": SPILLED})
    return failures.register("around", "(%(why)s)")


def stored(error: HypacError) -> Job:
    return Job(state=Job.State.FAILED, **json.loads(json.dumps(failures.columns_of(error))))


def test_the_place_stands_before_the_sentence_in_every_language(around) -> None:
    job = stored(SPILLED.error(raised_as=InputError, where="line 3", litres=2))
    assert (job.error, job.error_params) == ("line 3: Log out 2", {"litres": 2, "where": "line 3"})
    assert job.error_in_words == "line 3: Log out 2"
    with override("fr"):
        assert job.error_in_words == "line 3: Se déconnecter 2"


@pytest.mark.parametrize(
    ("part", "english", "french"),
    [
        (SPILLED.part(litres=2), "(Log out 2)", "(Se déconnecter 2)"),
        (failures.part_of_error(SPILLED.error(litres=2)), "(Log out 2)", "(Se déconnecter 2)"),
        (failures.term("Log out"), "(Log out)", "(Se déconnecter)"),
        (failures.part_of_error(InputError("It is wet.")), "(It is wet.)", "(It is wet.)"),
        (failures.clause(failures.part_of_error(InputError("It is wet."))), "(It is wet)", "(It is wet)"),
        ({"failure": "of a later version", "params": {}, "words": "It dries."}, "(It dries.)", "(It dries.)"),
        ("plain words", "(plain words)", "(plain words)"),
    ],
)
def test_what_another_failure_says_is_told_in_the_language_of_the_reader(
    around, part: object, english: str, french: str
) -> None:
    with override("fr"):
        job = stored(around.error(why=part))
        assert job.error_in_words == french
    assert (job.error, job.error_in_words) == (english, english)


@pytest.mark.parametrize("changed", [{"error_code": "of a later version"}, {"error_params": {}}])
def test_what_this_version_cannot_tell_is_shown_as_it_was_stored(failed: Job, changed: dict) -> None:
    Job.objects.filter(pk=failed.pk).update(**changed)
    failed.refresh_from_db()
    assert failed.error_in_words == "Log out 3"


def test_a_failure_whose_module_was_not_imported_yet_is_told(monkeypatch) -> None:
    monkeypatch.setattr(failures, "_failures", {})
    monkeypatch.setattr(failures, "_further", [lambda: failures.register("late", "Log out")])
    with override("fr"):
        assert failures.in_words("late", {}) == "Se déconnecter"
    assert failures.in_words("", {}) == ""


KNOWN = """
import sys, django
django.setup()
from annotation import failures
print(*(code for code in sys.argv[1:] if not failures.in_words(code, {}) and code not in failures._failures))
"""


def test_every_process_knows_every_failure() -> None:
    """A page may tell of what a worker came to in modules that no page needs."""
    register = re.compile(r'failures\.register\(\s*"(\w+)"')
    folders = [settings.BASE_DIR / folder for folder in ("annotation", "routing")]
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")]
    codes = {code for text in texts for code in register.findall(text)}
    assert len(codes) > 100
    run = subprocess.run(
        [sys.executable, "-c", KNOWN, *codes],
        cwd=settings.BASE_DIR, env=child_environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.split() == []


def test_a_job_that_is_started_again_has_no_failure(failed: Job) -> None:
    jobs.retry(job=failed)
    failed.refresh_from_db()
    assert (failed.error, failed.error_code, failed.error_params) == ("", "", {})
    assert failed.error_in_words == ""
