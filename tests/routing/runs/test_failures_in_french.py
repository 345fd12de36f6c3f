"""Why a job of a run failed reaches each reader in their language, down to what the core said."""

import pytest
from django.utils.translation import override

from annotation import failures
from annotation.jobs import jobs
from annotation.models import Job
from routing.core.calibration_rows import CalibrationError
from routing.core.losses import LossUnavailableError, make_loss
from routing.core.messages import say
from routing.runs import analysis, certify, chains
from testbed.worlds import make_world

ENGLISH = (
    "The losses could not be computed: item '7': the label 'cat' is not a number; correct it, or choose the "
    "loss 'exact_match'."
)


def no_number(*_args: object, **_kwargs: object) -> None:
    with pytest.raises(ValueError, match="is not a number") as caught:
        make_loss("numeric")("cat", "1")
    raise CalibrationError(say("item.wrong", item="'7'", why=caught.value.said))


@pytest.mark.django_db
def test_what_the_core_said_of_a_label_is_told_in_the_language_of_the_reader(monkeypatch) -> None:
    world = make_world(60)
    run = world.calibrated(m=30)
    monkeypatch.setattr(analysis, "certify", no_number)
    certify.analyse(run=run, user=world.manager)
    with override("fr"):  # whatever the worker speaks
        jobs.run(Job.objects.get(kind="analyse_run").pk)
    job = Job.objects.get(kind="analyse_run")
    assert (job.state, job.error_code, job.error) == (Job.State.FAILED, "losses_failed", ENGLISH)
    assert job.error_in_words == ENGLISH
    with override("fr"):
        assert "n’est pas un nombre" in job.error_in_words
        assert "Les pertes" in job.error_in_words


def test_a_server_that_failed_may_be_there_again() -> None:
    said = say("cosine_distance.failed", path="'a:b'", error="Timeout")
    error = chains.no_losses(LossUnavailableError(said))
    assert not error.permanent
    assert failures.in_english(error.code, error.params) == str(error)
    assert chains.no_losses(CalibrationError(said)).permanent
