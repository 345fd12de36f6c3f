"""Deliveries of small worlds, one of each kind of certificate, for what reads deliveries."""

import random
from collections.abc import Callable
from decimal import Decimal

from routing.core.reference.words import EXPERT as BY_EXPERT
from routing.delivery.deliver import deliver
from routing.models import Delivery, Run
from routing.runs.certify import analyse
from routing.runs.commitments import give_value
from routing.runs.expert.final import analyse_final_audit, draw_final_audit
from routing.runs.later.take_in import take_in
from routing.runs.route import route
from testbed.experts import ExpertWorld
from testbed.measured import measuring, world_of_meshes
from testbed.worlds import NUMBERS, SETS, World, files_of, make_world

Files = dict[str, bytes]
AUDITED = {
    "m": 110,
    "recheck_share": Decimal(1),
    "final_sample": 40,
    "final_models_error": Decimal("0.06"),
    "audit_share": Decimal("0.2"),
}


def delivered(world: World, run: Run, formats: tuple[str, ...] = ("csv", "jsonl")) -> Files:
    deliver(run=run, user=world.manager, formats=formats)
    world.do("deliver_run")
    return files_of(Delivery.objects.filter(run=run).order_by("-number")[0])


def by_person(**plan: object) -> Files:
    """One person's word counts as right; by default a data set, by thresholds on the first score."""
    world = make_world(300)
    return delivered(world, world.complete(**plan))


def by_every_score(*, own_scores: bool = True, human_cost: str = "8", **plan: object) -> Files:
    world = make_world(300, own_scores=own_scores, human_cost=human_cost)
    return delivered(world, world.complete(rule="every_score", **plan))


def settled() -> Files:
    """Two people, and a third where they differ."""
    here = ExpertWorld(200, error=0.05)
    run = here.world.start(reference="settled", m=100, p=None, rule="")
    here.world.do("prepare_run")
    people = [*here.world.annotators, here.expert]
    while here.label(*people):
        pass
    run.refresh_from_db()
    analyse(run=run, user=here.world.manager)
    here.world.do("analyse_run")
    run.refresh_from_db()
    route(run=run, user=here.world.manager)
    here.world.do("route_run")
    run.refresh_from_db()
    while here.label(*people):
        pass
    run.refresh_from_db()
    return here.delivered(run)


def by_expert(share: str, **plan: object) -> Files:
    """An expert, who rechecks this share of the asked items on which all agree."""
    here = ExpertWorld(240)
    plan = {"reference": BY_EXPERT, "recheck_share": Decimal(share), "audit_share": Decimal("0.2"), **plan}
    return here.delivered(here.finish(here.routed(here.start(**plan))))


def by_expert_and_scores() -> Files:
    """Models and expert are cheapest alone, so that each model's own score decides."""
    chance = random.Random(11)

    def change(_index: int, row: dict[str, str]) -> None:
        row["confidence1"] = f"{chance.random():.6f}"  # tells nothing, so that slices of it tell nothing

    errors = (lambda _: 0.4, lambda u: 0.002 if u < 0.75 else 0.9)
    here = ExpertWorld(400, error=0.25, change=change, errors=errors, own_scores=True)
    plan = {"recheck_share": Decimal(1), "epsilon": Decimal("0.06"), "m": 160, "pilot_size": 80}
    return here.delivered(here.finish(here.routed(here.start(**plan))))


def with_final_audit() -> Files:
    """An expert, and her final audit."""
    here = ExpertWorld(240, error=0.0)
    run = here.finish(here.routed(here.start(**AUDITED)))
    draw_final_audit(run=run, user=here.world.manager)
    here.world.do("draw_final_audit")
    here.finish(run)
    analyse_final_audit(run=run, user=here.world.manager)
    here.world.do("analyse_final_audit")
    return here.delivered(run)


def partial() -> Files:
    """People have not labelled all of what was sent to them."""
    world = make_world(200)
    return delivered(world, world.routed())


def with_later_items() -> Files:
    """A run for the population that took in later items, half of them audited."""
    world = make_world(500)
    run = world.complete(target="population", m=200, p=Decimal(1), later_audit_share=Decimal("0.5"))
    world.arrive(60)
    take_in(run=run, user=world.manager)
    world.do("take_in")
    world.label()
    return delivered(world, run)


def from_a_strangers_text() -> Files:
    """The draw comes from a text that somebody else chose."""
    world = make_world(300)
    run = world.start(draw_from="nonce", pilot_size=40)
    world.do("prepare_run")
    give_value(run=run, user=world.manager, value="heads, said the stranger")
    world.do("prepare_run")
    world.finish()
    run.refresh_from_db()
    return delivered(world, world.complete_from(run))


def second_run() -> Files:
    """A later run on the items that people have not labelled."""
    world = make_world(300)
    world.complete()
    return delivered(world, world.complete(m=60))


def of_numbers() -> Files:
    world = make_world(200, answers=NUMBERS)
    return delivered(world, world.complete())


def of_sets() -> Files:
    world = make_world(200, answers=SETS)
    return delivered(world, world.complete())


def measured_elsewhere() -> Files:
    """A program of the team's measures the losses, of values that nothing else can compare."""
    world = world_of_meshes(300)
    plan = {"rule": "every_score", "target": "dataset", "epsilon": Decimal("0.3"), "pilot_size": 60}
    world.route(world.analyse(measuring(world, **plan)))
    world.finish()
    return delivered(world, world.project.runs.get())


KINDS: dict[str, Callable[[], Files]] = {
    "dataset": by_person,
    "pool": lambda: by_person(target="pool"),
    "population": lambda: by_person(target="population", m=100),
    "several chains": lambda: by_person(rule="multi_chain"),
    "nothing": lambda: by_person(epsilon=Decimal("0.001")),
    "every score": lambda: by_every_score(pilot_size=60),
    "every score, cheap models": lambda: by_every_score(human_cost="200"),
    "every score, pool": lambda: by_every_score(target="pool", pilot_size=60),
    "every score, population": lambda: by_every_score(target="population", m=100, pilot_size=60),
    "every score, first score alone": lambda: by_every_score(own_scores=False),
    "settled": settled,
    "expert, r = 1": lambda: by_expert("1"),
    "expert, r = .5": lambda: by_expert("0.5"),
    "expert, by scores": by_expert_and_scores,
    "final audit": with_final_audit,
    "partial": partial,
    "later items": with_later_items,
    "second run": second_run,
    "a stranger's text": from_a_strangers_text,
    "numbers": of_numbers,
    "sets": of_sets,
    "learnt": lambda: by_person(rule="split_fixed_sequence"),
    "bets": lambda: by_person(bound="betting_upper", epsilon=Decimal("0.3")),
    "measured elsewhere": measured_elsewhere,
    "another bound": lambda: by_person(bound="hoeffding_bentkus"),
}
