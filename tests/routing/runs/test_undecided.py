"""What is not decided while losses are computed: the expert may still have to label an item, and nobody is
given its annotator's label.
"""

from decimal import Decimal
from typing import Any

import pytest

from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Item, Job, Label
from routing.core.losses import LossError
from routing.core.messages import say
from routing.core.reference.sources import CHECKED
from routing.labels.page import Row
from routing.models import ExpertRequest, Run, Spend
from routing.runs.expert.audit import audit_state
from routing.runs.expert.counts import counts_of_people
from routing.runs.expert.delivered import undelivered
from routing.runs.expert.report import audit_in_words
from testbed.experts import ExpertWorld
from testbed.worlds import CHOICES, rows_of
from tests.routing.runs.slow_loss import PATH, SLOW, compute_all

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]

UNDECIDED = ExpertRequest.Why.UNDECIDED
WAITS = "it waits for the expert"
AUDIT = {"audit_share": Decimal("0.3"), "accepted_error": Decimal("0.6")}


@pytest.fixture(autouse=True)
def slow(settings: Any) -> None:
    settings.HYPAC_LOSSES = [PATH]
    SLOW.pairs.clear()


def labelled(error: float = 0.2, **plan: Any) -> tuple[ExpertWorld, Run]:
    """A run of which everything is labelled, and no loss computed since its routing."""
    here = ExpertWorld(240, error=error)
    run = here.routed(here.start(loss=PATH, **AUDIT, **plan))
    while here.label(*here.world.annotators, *here.experts):
        pass
    run.refresh_from_db()
    return here, run


def checked(run: Run) -> list[str]:
    routes = run.routes.filter(position=run.run_sources.count() + CHECKED + 1)
    asked = Label.objects.filter(work_item__batch=run.routed_batch, item__in=routes.values("item"))
    return list(asked.values_list("item__external_id", flat=True).distinct())


def decided(here: ExpertWorld) -> None:
    while compute_all(here.world.project) or here.label(*here.experts):
        pass


def test_a_delivery_leaves_blank_what_may_come_to_the_expert() -> None:
    here, run = labelled()
    names = checked(run)
    assert names
    assert run.state == Run.State.LABELLING
    rows = {row.external_id: row for row in rows_of(run)}
    assert {(rows[name].label, rows[name].reason, rows[name].expert_saw) for name in names} == {
        (None, WAITS, None)
    }
    items = Item.objects.filter(project=here.world.project, external_id__in=names)
    assert items.filter(undelivered(run, "pk")).count() == len(names)
    assert sum(counts_of_people(run)) == sum(1 for row in rows.values() if row.source in ("person", "expert"))
    assert any(f"Of {len(names)} items it is not decided" in said for said in audit_in_words(run, None))
    compute_all(here.world.project)
    assert not any("not decided" in said for said in audit_in_words(run, None))
    rows = {row.external_id: row for row in rows_of(run)}
    looks = set(
        run.expert_requests.filter(why="second_look").values_list("item__external_id", flat=True)
    ) & set(names)
    assert 0 < len(looks) < len(names)
    assert {name for name in names if rows[name].label is None} == looks
    assert not run.expert_requests.filter(why=UNDECIDED).exists()
    decided(here)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert not [row for row in rows_of(run) if row.label is None]


def test_a_correction_is_undecided_anew_and_its_run_open() -> None:
    """Of what the expert was not asked about, and of what she was asked about for the audit alone."""
    here, run = labelled()
    compute_all(here.world.project)
    labels = Label.objects.filter(work_item__batch=run.routed_batch, item__external_id__in=checked(run))
    agreed = labels.exclude(item__in=run.expert_requests.values("item"))[0]
    audited = labels.filter(item__in=run.expert_requests.filter(why="audit").values("item"))[0]
    run.project.computed_losses.all().delete()
    SLOW.pairs.clear()
    for label in (agreed, audited):
        correct(label)
        assert run.expert_requests.get(item=label.item).why == UNDECIDED
        assert row_of(run, label).label is None
    assert not SLOW.pairs
    here.label(here.expert)  # the item that was audited among them
    assert row_of(run, audited).source == "expert"
    stages = Spend.objects.filter(run=run, key=f"label:{labels_of_expert(run).get(item=audited.item).pk}")
    assert stages.get().stage == Spend.Stage.AUDIT
    compute_all(here.world.project)
    for label in (agreed, audited):
        assert run.expert_requests.get(item=label.item).why == "second_look"
    decided(here)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert not audit_state(run).computing

    kept = labels.exclude(item__in=run.expert_requests.values("item"))[0]
    run.project.computed_losses.all().delete()
    correct(kept)
    run.refresh_from_db()
    assert run.state == Run.State.LABELLING
    decided(here)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert row_of(run, kept).source == "expert"


def test_a_label_is_stored_where_the_loss_is_not_to_be_had_any_more(monkeypatch: Any) -> None:
    here = ExpertWorld(240, error=0.2)
    run = here.routed(here.start(loss=PATH, **AUDIT))

    def gone(*_given: Any, **_more: Any) -> None:
        raise LossError(say("own.not_callable", path=PATH))

    with monkeypatch.context() as patched:
        patched.setattr("routing.common.computed_losses.make_loss", gone)
        while here.label(*here.world.annotators, *here.experts):
            pass
        names = checked(run)
        assert run.expert_requests.filter(why=UNDECIDED).count() == len(names) > 0
        patched.setattr("routing.runs.compute_losses.make_loss", gone)
        job = run.project.jobs.get(kind="compute_losses", state="queued")
        assert not jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == Job.State.FAILED
        assert PATH in job.error
    run.refresh_from_db()
    assert run.state == Run.State.LABELLING


def row_of(run: Run, label: Label) -> Row:
    return next(row for row in rows_of(run) if row.external_id == label.item.external_id)


def labels_of_expert(run: Run) -> Any:
    return Label.objects.filter(work_item__batch=run.expert_routed_batch)


def correct(label: Label) -> None:
    other = next(name for name in CHOICES if name != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key=f"again-{label.pk}")
