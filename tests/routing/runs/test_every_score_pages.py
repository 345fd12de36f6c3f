"""Pages of runs in which each model's own score decides, and of their plans."""

from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.jobs import jobs
from annotation.models import Job
from routing.core.verify import verify
from routing.models import Run, Spend
from routing.runs.certify import analyse
from routing.runs.plan import outlook_of_plan
from routing.runs.queries import run_report
from routing.sources.backends.recorded import Recorded
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

RULE = "every_score"
DEAR = {"costs": ("0.01", "0.2"), "human_cost": "1"}
UNLIKE = (lambda u: 0.8 * u, lambda u: 0.1 * u)
"""Both err along their scores, the second less."""


def test_a_run_page_draws_what_is_known_of_other_epsilons(client_of):
    """A dear model was not asked about all that another epsilon would send to it."""
    world = make_world(600, error=(lambda u: 0.8 * u, lambda u: 0.4 * u), **DEAR)
    run = world.analysed(rule=RULE, m=300, p=Decimal(1))
    known = [point["values"]["this_run"] for point in run.certificate.figures["savings"]["points"]]
    assert None in known
    assert any(value is not None for value in known)
    page = (
        client_of(world.manager).get(reverse("run_evidence", args=[world.project.slug, 1])).content.decode()
    )
    assert "Model 1 labels up to u" in page
    assert "Model 2 labels up to u" in page
    assert "a model would have had to be asked about more items" in page
    told = client_of(world.manager).get(f"/api/v1/projects/{world.project.slug}/runs/1/").json()
    assert told["certificate"]["own_scores"] is True
    assert len(told["certificate"]["thresholds"]) == 2


def test_an_analysis_stops_at_the_budget_and_goes_on_when_it_is_raised(client_of, monkeypatch):
    monkeypatch.setattr(Recorded, "never_lost", False)
    monkeypatch.setattr(Recorded, "in_flight", 8)
    world = make_world(600, error=UNLIKE, **DEAR)
    run = world.calibrated(rule=RULE, m=300, p=Decimal(1), budget=Decimal(20))
    analyse(run=run, user=world.manager)
    job = world.project.jobs.get(kind="analyse_run")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    rows = Spend.objects.filter(run=run, source__position=2, stage=Spend.Stage.CALIBRATION)
    assert (job.stage, job.done) == ("Model 2 on the calibration set", sum(row.quantity for row in rows))
    assert job.done < job.total
    client, address = client_of(world.manager), reverse("run", args=[world.project.slug, run.number])
    stopped = client.get(address).content.decode()
    assert "Stopped at the budget" in stopped
    assert "Set the budget and go on" in stopped
    client.post(reverse("run_budget", args=[world.project.slug, run.number]), {"budget": ""})
    at_work = client.get(address).content.decode()
    assert "The tests need answers of a dear model first." in at_work
    assert f"{job.done} of {job.total}" in at_work
    overview = client.get(reverse("overview", args=[world.project.slug])).content.decode()
    assert "Model 2 on the calibration set" in overview
    world.do("analyse_run")
    run.refresh_from_db()
    assert run.state == Run.State.ANALYSED
    assert verify(run.certificate.document.encode(), run.certificate.draw_lines.encode()) == []


def test_models_that_are_renamed_later_keep_the_names_of_the_certificate(client_of):
    world = make_world(600, error=UNLIKE, costs=("0.004", "0.04"), human_cost="1")
    run = world.complete(rule=RULE, m=300, p=Decimal(1))
    for position, name in ((1, "tmp"), (2, "Model 1"), (1, "Model 2")):
        world.project.sources.filter(position=position).update(name=name)
    report = run_report(Run.objects.get(pk=run.pk))
    assert [one.name for one in report.thresholds] == ["Model 1", "Model 2"]
    assert [row.name for row in report.counts][:2] == ["Model 1", "Model 2"]
    page = client_of(world.manager).get(reverse("run", args=[world.project.slug, 1])).content.decode()
    assert "Every answer of Model 2 is kept." in page


def test_nothing_is_measured_while_a_run_is_under_way(client_of):
    world = make_world(600, error=UNLIKE, **DEAR)
    client, address = client_of(world.manager), reverse("plan_outlook", args=[world.project.slug])
    plan = {"epsilon": "10", "alpha": "10", "target": "dataset", "m": "60"}
    assert 'name="measure"' in client.get(address, plan).content.decode()
    world.start(m=60)
    assert 'name="measure"' not in client.get(address, plan).content.decode()


def test_a_plan_says_what_a_dear_model_costs_at_most_and_at_least(client_of):
    world = make_world(600, error=UNLIKE, **DEAR)
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 120, "p": Decimal(1)}
    seen = outlook_of_plan(project=world.project, **plan)
    assert seen.plan.rule == RULE
    assert seen.called_where_needed == ["Model 2"]
    assert seen.model_cost - seen.model_cost_at_least == 120 * Decimal("0.2")
    assert seen.at_least == seen.model_cost_at_least + 120
    paper = outlook_of_plan(project=world.project, **plan, rule="fixed_sequence")
    assert (paper.called_where_needed, paper.model_cost_at_least) == ([], paper.model_cost)
    page = client_of(world.manager).get(reverse("plan", args=[world.project.slug])).content.decode()
    assert "Model 2: dear, so asked about drawn items only where the tests need it." in page
