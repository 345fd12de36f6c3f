"""Jobs act on rows of their own project alone, whatever numbers stand in their parameters."""

import pytest

from annotation.jobs import jobs
from annotation.models import Job, StoredFile
from routing.jobs import queue_of_measurement, queue_of_run, queue_of_try
from routing.models import (
    Certificate,
    Delivery,
    Measurement,
    PromptCandidate,
    Run,
    Source,
    SourceRevision,
    SourceTry,
)
from routing.sources.sent_words import page_of_sent_answers
from routing.workshop.candidates import KIND as CANDIDATE
from testbed.factories import make_project
from testbed.worlds import World, make_world
from tests.conftest import Stored

pytestmark = [pytest.mark.django_db, pytest.mark.database]

OF_RUNS = [
    *("prepare_run", "ask_expert", "analyse_run", "route_run", "take_in", "draw_final_audit"),
    *("analyse_final_audit", "give_to_people", "settle_run", "deliver_run"),
]


@pytest.fixture(scope="module")
def _theirs(stored: Stored) -> World:
    def make() -> World:
        world = make_world(40)
        world.complete(m=20)
        return world

    return stored(make)


@pytest.fixture
def theirs(_theirs: World) -> World:
    return _theirs


def done_elsewhere(kind: str, **params: object) -> Job:
    project = make_project()
    job = Job.objects.create(project=project, kind=kind, params=params, created_by=project.created_by)
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


@pytest.mark.parametrize("kind", OF_RUNS)
@pytest.mark.parametrize("as_text", [False, True])
def test_no_job_finds_the_run_of_another_project(theirs: World, kind: str, as_text: bool) -> None:
    run = theirs.project.runs.get()
    before = Run.objects.filter(pk=run.pk).values().get()
    counts = [model.objects.count() for model in (Certificate, Delivery, StoredFile)]
    job = done_elsewhere(kind, run=str(run.pk) if as_text else run.pk, intake=1)
    assert (job.state, job.error_code) == (Job.State.FAILED, "unexpected")
    assert "Run matching query does not exist" in job.error
    assert Run.objects.filter(pk=run.pk).values().get() == before
    assert [model.objects.count() for model in (Certificate, Delivery, StoredFile)] == counts


def test_nor_its_sources(theirs: World) -> None:
    source = theirs.project.sources.order_by("position")[0]
    item = theirs.project.items.first()
    tried = done_elsewhere("try_source", source=source.pk, items=[item.pk])
    assert (tried.state, tried.error_code) == (Job.State.FAILED, "source_gone")
    assert not SourceTry.objects.exists()


def test_nor_what_they_measured_or_compared(theirs: World) -> None:
    source = theirs.project.sources.order_by("position")[0]
    measurement = Measurement.objects.create(
        project=theirs.project, outside=False, pool_size=5, last=4, size=2, entropy="1"
    )
    job = done_elsewhere("measure", measurement=measurement.pk)
    assert "Measurement matching query does not exist" in job.error
    measurement.refresh_from_db()
    assert measurement.pool_hash == ""
    candidate = PromptCandidate.objects.create(
        project=theirs.project, source=source, number=1, template="{{ text }}", position=1,
        cost_per_label=1, fingerprint="f" * 64,
    )  # fmt: skip
    job.kind, job.params, job.state = CANDIDATE, {"candidate": candidate.pk, "source": source.pk}, "queued"
    job.save()
    jobs.run(job.pk)
    job.refresh_from_db()
    assert "PromptCandidate matching query does not exist" in job.error


def test_pages_and_queues_look_at_their_own_alone(theirs: World) -> None:
    run, source = theirs.project.runs.get(), theirs.project.sources.order_by("position")[0]
    Source.objects.filter(pk=source.pk).update(backend="vllm")
    revision = SourceRevision.objects.create(source=source, model="m", revision="1", fields=[])
    home, away = theirs.project, make_project()
    for project, queue in ((home, "gpu"), (away, "default")):
        job = Job(project=project, params={"run": run.pk, "source": source.pk, "revision": revision.pk})
        assert (queue_of_run(job), queue_of_try(job)) == (queue, queue)
        assert (page_of_sent_answers(job) is None) == (project == away)
    job.params = {"measurement": 1}
    assert queue_of_measurement(job) == "default"
