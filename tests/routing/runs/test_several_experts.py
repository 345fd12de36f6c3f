"""Runs with several experts: each item is one's, by a hash, and nobody takes it over."""

import json
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.models import AuditEvent, Label, Membership, User, WorkItem
from routing.core.verify import verify
from routing.models import ExpertRequest, RosterEntry, Run
from routing.runs.absent_people import open_work_of
from routing.runs.expert.leaving import give_up_open_items
from routing.runs.roster import who_is_the_expert
from testbed.experts import ExpertWorld
from testbed.factories import add_member
from testbed.worlds import rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

OPEN = (WorkItem.State.OPEN, WorkItem.State.LEASED)


@pytest.fixture
def here() -> ExpertWorld:
    world = ExpertWorld(240, human_cost="8")
    world.more_experts(1)
    return world


def shared(here: ExpertWorld, *shares: str | None) -> dict[str, Any]:
    """The plan with all experts, with these shares."""
    given = shares or (None,) * len(here.experts)
    return {
        "expert": {
            user.username: None if share is None else Fraction(share)
            for user, share in zip(here.experts, given, strict=True)
        },
        "m": 120,
        "audit_share": Decimal("0.2"),
    }


def hers(run: Run, user: User) -> Any:
    return WorkItem.objects.filter(batch__in=run.expert_batches, assigned_to=user)


def _with_most_open(run: Run, users: list[User]) -> User:
    return max(users, key=lambda user: run.routed_batch.work_items.filter(assigned_to=user).count())


def test_several_experts_from_the_plan_to_a_certificate_that_names_them(here) -> None:
    run = here.finish(here.routed(here.start(**shared(here, "3/4", "1/4"))))
    assert run.state == Run.State.COMPLETE
    whose = who_is_the_expert(run)
    labels = Label.objects.filter(work_item__batch__in=run.expert_batches)
    assert labels.count() == labels.values("item").distinct().count(), "two label the same item"
    for label in labels:
        assert [[label.annotator_id]] == whose([label.item_id])
    made = Counter(labels.values_list("annotator", flat=True))
    assert made[here.experts[0].pk] > made[here.experts[1].pk] > 0
    files = here.delivered(run)
    assert verify(files["certificate.json"], files["draw.jsonl"]) == []
    document = json.loads(files["certificate.json"])
    one, two = sorted(user.username for user in here.experts)
    shares = {user.username: share for user, share in zip(here.experts, ("3/4", "1/4"), strict=True)}
    assert document["reference"]["experts"] == shares
    assert f"what {one} or {two}, by a fixed roster, would give, blind" in document["result"]["sentence"]
    by_expert = {row.external_id: row.annotator for row in rows_of(run) if row.source == "expert"}
    assert set(by_expert.values()) == {one, two}
    assert "among themselves is not known" in files["README.md"].decode()


def test_one_expert_is_named_as_ever_whether_by_name_or_by_share(here) -> None:
    name = here.experts[0].username
    others = {user.username: None for user in here.world.annotators}
    run = here.start(expert={name: Fraction(1)}, roster=others, m=40)
    assert run.expert_name == name
    assert list(run.roster.filter(role="expert").values_list("name", "share")) == [(name, "1/1")]
    document = json.loads(here.analysed(run).certificate.document)
    assert document["reference"]["expert"] == name
    assert "experts" not in document["reference"]


def test_experts_who_cannot_be_are_refused_by_the_field(here) -> None:
    one, two = (user.username for user in here.experts)
    annotator = here.world.annotators[0].username
    reviewer = add_member(here.world.project, Membership.Role.REVIEWER).username
    pseudonym = add_member(here.world.project)
    User.objects.filter(pk=pseudonym.pk).update(username="annotator-1")
    half = Fraction(1, 2)
    for expert, words in (
        ({one: half, two: Fraction(1, 3)}, "add up to 0.8333"),
        ({one: half, two: None}, "has no share of the work"),
        ({one: Fraction(1), two: Fraction(0)}, "must be above 0"),
        ({one: half, reviewer: half}, f"{reviewer} cannot be the expert"),
        ({one: half, "stranger": half}, "stranger cannot be the expert"),
        ({one: half, "annotator-1": half}, "would be taken for one of them"),
        ({}, "Choose who the expert is"),
    ):
        with pytest.raises(InputError, match=words) as refused:
            here.start(expert=expert, m=40)
        assert refused.value.where == "expert"
    with pytest.raises(InputError, match="cannot annotate in it") as refused:
        here.start(expert={one: None, two: None}, roster={annotator: None, two: None}, m=40)
    assert refused.value.where == "roster"
    assert not Run.objects.exists()


def test_the_page_the_api_and_the_command_take_several(here, client, capsys) -> None:
    project = here.world.project
    one, two = (user.username for user in here.experts)
    client.force_login(here.world.manager)
    plan = {"epsilon": "0.1", "alpha": "0.1", "m": "60", "reference": "expert"}
    page = reverse("plan_outlook", args=[project.slug])
    seen = client.get(
        page,
        plan
        | {
            "epsilon": "10",
            "alpha": "10",
            "expert": [one, two],
            "expert_shares": f"{one} = 3/4\n{two} = 25 %",
        },
    )
    assert f"{min(one, two)} or {max(one, two)} labels 30 in any case" in seen.content.decode()
    assert "among themselves is not known" in seen.content.decode()
    twice = client.get(
        page,
        plan
        | {
            "epsilon": "10",
            "alpha": "10",
            "expert": [one, two],
            "expert_shares": f"{one} = 0.5\n{one} = 0.5",
        },
    )
    assert f"{one} is given twice" in twice.content.decode()
    short = client.get(
        page,
        plan
        | {
            "epsilon": "10",
            "alpha": "10",
            "expert": [one, two],
            "expert_shares": f"{one} = 0.5\n{two} = 0.4",
        },
    )
    assert "add up to 0.9" in short.content.decode()

    address = f"/api/v1/projects/{project.slug}/plan/"
    for expert, words in (
        (one, f"{one} labels 30 in any case"),
        ({one: None, two: None}, f"{min(one, two)} or {max(one, two)} labels 30"),
        ({one: "0.7", two: "0.2"}, "add up to 0.9"),
        ({one: "much", two: None}, "cannot be read"),
        ([one], "expert"),
    ):
        answer = client.post(address, plan | {"expert": expert}, content_type="application/json")
        assert words in answer.content.decode()

    given = [
        "plan",
        project.slug,
        "--user",
        here.world.manager.username,
        "--epsilon",
        "0.1",
        "--alpha",
        "0.1",
    ]
    given += ["--m", "60", "--reference", "expert"]
    call_command(*given, "--expert", one, "--expert", two)
    assert f"{min(one, two)} or {max(one, two)} labels 30" in capsys.readouterr().out
    with pytest.raises(CommandError, match="named twice"):
        call_command(*given, "--expert", one, "--expert", one)
    with pytest.raises(CommandError, match=r"add up to 0\.9"):
        call_command(*given, "--expert", f"{one}=0.5", "--expert", f"{two}=0.4")


def test_what_a_removed_expert_leaves_in_the_calibration_set_counts_as_errors(here) -> None:
    run = here.asked(here.start(**shared(here)))
    stays, gone = here.experts
    here.label(gone, limit=3)
    Membership.objects.filter(project=run.project, user=gone).update(is_active=False)
    here.label(stays)
    row = next(row for row in open_work_of(run) if row.user == gone)
    assert row.expert
    assert not row.may_label
    left = set(hers(run, gone).filter(state__in=OPEN).values_list("item__external_id", flat=True))
    assert row.open == len(left) > 3
    with pytest.raises(ConflictError, match="no open item"):
        give_up_open_items(run=run, user=stays, actor=here.world.manager)

    assert give_up_open_items(run=run, user=gone, actor=here.world.manager) == len(left)
    assert AuditEvent.objects.filter(action="run.work_handed_over", data__items=len(left)).exists()
    assert queue.claim(project=run.project, user=stays) is None, "nobody else is asked"
    here.experts.remove(gone)
    run = here.finish(here.routed_from(run))
    document = json.loads(run.certificate.document)
    sentence = document["result"]["sentence"]
    assert f"could not label: {len(left)}. Each counted as an error" in sentence
    files = here.delivered(run)
    assert verify(files["certificate.json"], files["draw.jsonl"]) == []
    assert not [row for row in rows_of(run) if row.external_id in left and row.source == "expert"]
    # What came to her later waited for her, and nobody else was asked about it, either.
    assert not Label.objects.filter(work_item__in=hers(run, gone)).exclude(annotator=gone).exists()


def test_later_items_of_an_absent_expert_stay_blank_and_no_other_expert_labels_them(here) -> None:
    run = here.routed(here.start(**shared(here)))
    give_up_open_items(run=run, user=_with_most_open(run, here.world.annotators), actor=here.world.manager)
    here.label(*here.world.annotators)
    stays, gone = here.experts
    here.label(stays)
    work = hers(run, gone).filter(state__in=OPEN)
    audits = ExpertRequest.objects.filter(run=run, why="audit").values("item")
    left = set(work.exclude(item__in=audits).values_list("item__external_id", flat=True))
    audited = set(work.filter(item__in=audits).values_list("item__external_id", flat=True))
    run.refresh_from_db()
    assert run.state == Run.State.LABELLING
    assert left
    assert give_up_open_items(run=run, user=gone, actor=here.world.manager) == len(left | audited)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE, "nothing else was open"
    rows = {row.external_id: row for row in rows_of(run)}
    assert {name for name, row in rows.items() if row.label is None} == left
    assert all(rows[name].source == "person" for name in audited)
    assert RosterEntry.objects.get(run=run, user=gone).left_at is None, "she may come back"


def test_the_page_of_the_run_lets_a_manager_wait_no_longer_for_an_expert(here, client) -> None:
    run = here.asked(here.start(**shared(here)))
    gone = here.experts[1]
    count = hers(run, gone).filter(state__in=OPEN).count()
    client.force_login(here.world.manager)
    page = client.get(reverse("run", args=[run.project.slug, run.number])).content.decode()
    assert "nobody else, no other expert either" in page
    answer = client.post(
        reverse("run_hand_over", args=[run.project.slug, run.number]), {"user": gone.username}, follow=True
    )
    assert f"{count} items stay without" in answer.content.decode()
    api = client.post(
        f"/api/v1/projects/{run.project.slug}/runs/{run.number}/hand-over/",
        {"user": here.experts[0].username},
        content_type="application/json",
    )
    assert api.json()["items"] > 0
