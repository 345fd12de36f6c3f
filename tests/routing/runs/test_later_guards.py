"""What happens around taking in later items: labels given meanwhile, what was paid before, changed choices,
and models that are being measured.
"""

from decimal import Decimal
from typing import Any

import pytest

from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import Job
from annotation.projects.choices import ChoiceSpec
from annotation.projects.manage import set_choices
from routing.models import Prediction, Run
from routing.runs.cancel import cancel_run
from routing.runs.later import take_in as taking
from routing.runs.later.audit import later_audit_state
from routing.runs.later.take_in import take_in
from routing.runs.measure import start_measurement
from routing.runs.spending import paid_by
from testbed.worlds import make_world
from tests.routing.runs import test_later_audit
from tests.routing.runs.test_later_items import a_run, take
from tests.routing.runs.test_resume import dying, kill_and_take_over

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


def test_what_people_labelled_meanwhile_is_not_asked_again_for_the_audit(monkeypatch) -> None:
    world, run = test_later_audit.a_run()
    later = {item.pk for item in world.arrive(80)}
    counted = taking.tally_of

    def labelled_meanwhile(run: Run, *args: Any, **kwargs: Any) -> dict[str, Any]:
        theirs = list(run.routes.filter(item__in=later, position=3).values_list("item", flat=True))
        batch = queue.create_batch(project=world.project, item_ids=theirs, blind=False, priority=1, entropy=2)
        world.fill(batch, lambda one: (world.annotators[0], world.truth[one.item.external_id]))
        return counted(run, *args, **kwargs)

    monkeypatch.setattr(taking, "tally_of", labelled_meanwhile)
    take(world, run)
    people = set(run.routes.filter(item__in=later, position=3).values_list("item", flat=True))
    assert people
    asked = set(run.later_audit_batch.work_items.values_list("item", flat=True))
    assert asked == later - people
    world.label()
    run.refresh_from_db()
    assert later_audit_state(run).audited == 80


@pytest.mark.database
def test_what_was_paid_earlier_counts_while_an_intake_is_not_finished(monkeypatch) -> None:
    world = make_world(60)
    earlier = world.start(target="population", m=20)
    world.do("prepare_run")
    cancel_run(run=earlier, user=world.manager)
    first = earlier.run_sources.get(position=1)
    answers = list(Prediction.objects.filter(source=first.source)[:30])
    for answer, item in zip(answers, world.arrive(500), strict=False):
        answer.pk, answer.item = None, item  # as an earlier run has paid it
        answer.save(force_insert=True)
    run = world.complete(
        target="population", m=200, p=Decimal(1), later_audit_share=Decimal(0), epsilon=Decimal("0.2")
    )

    def reused() -> list[int]:
        return [row.quantity for row in paid_by(run) if row.stage == "reused" and row.source == "Model 1"]

    before = reused()
    assert before
    world.arrive(20, seed=4)
    take_in(run=run, user=world.manager)
    with monkeypatch.context() as patch:
        patch.setattr(taking, "tally_of", dying(taking.tally_of, at=1))
        kill_and_take_over(world, "take_in")
    assert run.intakes.get().finished_at is None
    assert reused() == before


def test_nothing_is_taken_in_after_the_choices_were_changed() -> None:
    world, run = a_run()
    world.arrive(10)
    before = [ChoiceSpec(name=one.name, key=one.key) for one in world.project.choices.order_by("position")]
    set_choices(project=world.project, user=world.manager, choices=[*before, ChoiceSpec(name="Yak")])
    with pytest.raises(ConflictError, match="labels to choose from, or their order"):
        take_in(run=run, user=world.manager)
    set_choices(project=world.project, user=world.manager, choices=before)
    assert take(world, run).later_size == 10


def test_nothing_is_taken_in_while_models_are_measured() -> None:
    world, run = a_run()
    world.arrive(60)
    start_measurement(project=world.project, user=world.manager, target="population", size=30)
    # As it is while a worker has them answer.
    world.project.jobs.filter(kind="measure").update(state=Job.State.RUNNING)
    with pytest.raises(ConflictError, match="Measuring the models is already under way"):
        take_in(run=run, user=world.manager)
    world.project.jobs.filter(kind="measure").update(state=Job.State.DONE)
    assert take(world, run).later_size == 30
