"""Runs whose roster says who labels: the queue follows it, nobody inherits, a manager sees who is absent."""

import io
import json
from decimal import Decimal
from fractions import Fraction

import pytest
from django.core.management import call_command
from django.db.models import F
from django.urls import reverse

from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import Label, WorkItem
from annotation.people.members import change_role, remove_member
from annotation.ports import routing_port
from annotation.projects.manage import update_project
from routing.models import Run
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from routing.runs.route import route
from testbed.experts import ExpertWorld
from testbed.factories import add_member
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


@pytest.fixture
def world() -> World:
    return make_world(120)


def by_roster(world: World) -> Run:
    """A run of the reference `person`: the first annotator labels three quarters, the second the rest."""
    first, second = (user.username for user in world.annotators)
    run = world.start(m=80, roster={first: Fraction(3, 4), second: Fraction(1, 4)})
    world.do("prepare_run")
    run.refresh_from_db()
    return run


def test_the_queue_follows_the_roster_of_a_run_by_one_persons_word(world) -> None:
    run = by_roster(world)
    newcomer = add_member(world.project)
    first, second = world.annotators
    assert run.reference == Run.Reference.PERSON
    assert queue.claim(project=world.project, user=newcomer) is None
    world.label()
    assert queue.batch_progress(run.calibration_batch).finished
    run.refresh_from_db()
    for user in (first, second):
        assert Label.objects.filter(annotator=user).exists()
    assert not Label.objects.exclude(annotator=F("work_item__assigned_to")).exists()
    shares = [Label.objects.filter(annotator=user).count() for user in (first, second)]
    assert shares[0] > 2 * shares[1]

    world.annotators.append(newcomer)
    run = routed(world, run)
    left = WorkItem.objects.filter(batch=run.routed_batch)
    assert set(left.values_list("assigned_to", flat=True)) == {first.pk, second.pk}
    world.label()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert not Label.objects.filter(annotator=newcomer).exists()


def routed(world: World, run: Run) -> Run:
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    run.refresh_from_db()
    return run


def test_what_a_removed_member_leaves_open_is_nobodys_and_seen_by_the_manager(world, client) -> None:
    run = by_roster(world)
    gone, other = world.annotators
    world.annotators.append(add_member(world.project))
    open_items = WorkItem.objects.filter(batch=run.calibration_batch, assigned_to=gone)
    assert not queue.stuck_items(run.project).exists()
    remove_member(project=run.project, actor=world.manager, user=gone)
    world.annotators.remove(gone)
    world.label()
    assert set(queue.stuck_items(run.project)) == set(open_items.filter(state="open"))
    assert open_items.filter(state="open").count() == open_items.count() > 0
    assert {label.annotator for label in Label.objects.all()} == {other}

    client.force_login(world.manager)
    name, slug = gone.username, run.project.slug
    overview = client.get(reverse("overview", args=[slug])).content.decode()
    assert f"Nobody is left to label {open_items.count()} items" in overview
    page = client.get(reverse("run", args=[slug, run.number])).content.decode()
    assert "may not label any more" in page
    entries = client.get(reverse("api_run_roster", args=[slug, run.number])).json()["entries"]
    absent = next(entry for entry in entries if entry["user"] == name)
    assert (absent["open"], absent["done"], absent["may_label"]) == (open_items.count(), 0, False)


@pytest.fixture
def here() -> ExpertWorld:
    return ExpertWorld(120)


def test_the_roster_and_what_is_handed_over_by_programs(here, client) -> None:
    run = here.start(m=80, recheck_share=Decimal(1))
    client.force_login(here.world.manager)
    address = [run.project.slug, run.number]
    absent, *others = here.world.annotators
    here.label(*others)
    work = WorkItem.objects.filter(batch=run.calibration_batch)

    entries = client.get(reverse("api_run_roster", args=address)).json()["entries"]
    told = {entry["user"]: entry for entry in entries}
    assert set(told) == {user.username for user in (*here.world.annotators, here.expert)}
    for user in here.world.annotators:
        entry, own = told[user.username], work.filter(assigned_to=user)
        assert (entry["role"], entry["share"], entry["may_label"]) == ("annotator", "1/3", True)
        assert entry["open"] + entry["done"] == own.count()
        assert entry["done"] == own.filter(state="done").count()
        assert (entry["last_label_at"] is None) == (user == absent)
        assert entry["left_at"] is None
    hers = told[here.expert.username]
    assert (hers["role"], hers["share"], hers["open"], hers["done"]) == ("expert", "1/1", 0, 0)
    assert len({entry["name"] for entry in entries}) == 4
    names = {entry["name"] for entry in entries if entry["role"] == "annotator"}
    assert not names & set(told)  # certificates hold no username of annotators

    def hand_over(name: str) -> tuple[int, dict]:
        answer = client.post(
            reverse("api_run_hand_over", args=address), {"user": name}, content_type="application/json"
        )
        return answer.status_code, answer.json()

    assert hand_over("nobody")[0] == 404
    waiting = work.filter(assigned_to=absent, state="open").count()
    assert hand_over(absent.username) == (200, {"items": waiting})
    assert waiting > 0
    assert hand_over(absent.username)[0] == 409
    assert hand_over(here.expert.username)[0] == 409
    entries = client.get(reverse("api_run_roster", args=address)).json()["entries"]
    assert [entry["user"] for entry in entries if entry["left_at"]] == [absent.username]
    client.force_login(others[0])
    assert hand_over(others[0].username)[0] in (403, 404)


def test_a_run_with_an_expert_is_started_by_the_command(here) -> None:
    first, second, _ = (user.username for user in here.world.annotators)
    words = [
        *("plan", here.world.project.slug, "--user", here.world.manager.username),
        *("--epsilon", "0.1", "--alpha", "0.1", "--m", "80", "--reference", "expert"),
        *("--expert", here.expert.username, "--expert-cost", "30", "--recheck-share", "1"),
        *("--audit-share", "0.1", "--accepted-error", "0.08"),
        *("--annotator", f"{first}=2/3", "--annotator", f"{second}=1/3"),
    ]

    def told(*more: str) -> dict:
        out = io.StringIO()
        call_command(*words, *more, "--json", stdout=out)
        return json.loads(out.getvalue())

    seen = told()
    assert f"Of these {here.expert.username} labels 80 in any case" in seen["sentence"]
    assert any("nothing to do until annotators" in words for words in seen["warnings"])
    assert not Run.objects.exists()
    assert told("--start", "--here")["state"] == "calibrating"
    run = Run.objects.get()
    assert (run.reference, run.expert_name, run.expert_cost) == ("expert", here.expert.username, 30)
    assert (run.recheck_share, run.audit_share, run.accepted_error) == (1, Decimal("0.1"), Decimal("0.08"))
    shares = dict(run.roster.values_list("user__username", "share"))
    assert shares == {first: "2/3", second: "1/3", here.expert.username: "1/1"}


def test_without_an_expert_what_an_absent_person_leaves_open_stays_without_a_label(world, client) -> None:
    run = by_roster(world)
    absent, here = world.annotators
    while task := queue.claim(project=world.project, user=here):
        world.keys += 1
        queue.submit(
            user=here,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=world.truth[task.item.external_id],
            idempotency_key=f"only-{world.keys}",
        )
    client.force_login(world.manager)
    left = WorkItem.objects.filter(batch=run.calibration_batch, state=WorkItem.State.OPEN)
    page = client.get(reverse("run", args=[run.project.slug, run.number])).content.decode()
    assert "Let the open items of this person stay without a label?" in page
    waiting = left.count()
    assert waiting == left.filter(assigned_to=absent).count() > 0
    client.post(reverse("run_hand_over", args=[run.project.slug, run.number]), {"user": absent.username})
    assert not left.exists()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    assert json.loads(run.certificate.document)["draw"]["unanswered"] == waiting


def test_the_page_of_the_run_says_who_labels_which_share(here, client) -> None:
    one, other, *_rest = here.world.annotators
    run = here.start(m=60, roster={one.username: Fraction(2, 3), other.username: Fraction(1, 3)})
    client.force_login(here.world.manager)
    page = client.get(f"/projects/{run.project.slug}/runs/{run.number}/plan/").content.decode()
    assert f"{one.username} 66.7 %, {other.username} 33.3 %" in page


def test_texts_are_shown_as_they_are_until_people_have_labelled_the_last_item(here) -> None:
    here.start(m=60)
    project = here.world.project
    with pytest.raises(ConflictError, match="the format of texts") as error:
        update_project(project=project, user=here.world.manager, text_format="markdown")
    assert error.value.where == "text_format"
    assert project.text_format == "plain"


def test_who_was_a_reviewer_of_a_cancelled_run_settles_nothing_in_the_next(here) -> None:
    """Single answers of the first one are in the pool again: they settled nothing."""
    plan = {"reference": "settled", "expert": "", "m": 60}
    user = here.world.annotators[0]
    first = here.start(**plan)
    change_role(project=first.project, actor=here.world.manager, user=user, role="reviewer")
    cancel_run(run=first, user=here.world.manager)
    change_role(project=first.project, actor=here.world.manager, user=user, role="annotator")
    here.start(**plan, entropy=8)
    assert "one like it that was cancelled" in routing_port().blind_objection(
        project=first.project, user=user
    )
    other = here.world.annotators[1]
    assert not routing_port().blind_objection(project=first.project, user=other)
