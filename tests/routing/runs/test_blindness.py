"""Who sees what, and when; who may label blind."""

import pytest
from django.contrib.auth.models import Permission

from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import User
from annotation.people.members import add_member as service_add, change_role, remove_member, set_active
from annotation.permissions import access_to
from annotation.ports import routing_port
from annotation.projects.manage import ChoiceSpec, set_choices
from routing.items.history import item_history
from routing.items.table import item_rows
from routing.models import DrawItem
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from routing.runs.queries import run_report
from testbed.factories import add_member, make_user
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_nobody_sees_predictions_scores_draw_or_labels_before_the_analysis():
    world = make_world(100)
    run = world.calibrated(m=40)
    for user in (world.manager, add_member(world.project, "viewer"), add_member(world.project, "reviewer")):
        access = access_to(user, world.project.slug)
        page = item_rows(world.project, access, size=100)
        assert page.blind
        assert all(
            (row.label, row.annotator, row.uncertainty, row.routed_to) == (None,) * 4 for row in page.rows
        )
        assert item_rows(world.project, access, filters={"stage": "labelled"}).total.count == 0
        assert item_rows(world.project, access, filters={"label": "cat"}).total.count == 0
        asked = DrawItem.objects.filter(draw__run=run, asked=True)[0].item_id
        history = item_history(world.project, access, asked)
        assert not history.predictions
        assert not history.labels
        assert not history.routes
        assert set(dict(history.data)) == {"text"}  # the columns that hold predictions are not shown
    report = run_report(run)
    assert report.certificate is None
    assert report.thresholds == []
    assert report.observed_errors is None
    assert report.region is None
    assert routing_port().hidden_batches(project=world.project) == {run.calibration_batch_id}


def test_after_the_analysis_those_who_may_see_predictions_do():
    world = make_world(100)
    world.routed(m=40)
    manager = access_to(world.manager, world.project.slug)
    page = item_rows(world.project, manager, size=100)
    assert not page.blind
    assert all(row.uncertainty is not None and row.routed_to is not None for row in page.rows)
    history = item_history(world.project, manager, page.rows[0].id)
    assert history.predictions
    assert "model1" in dict(history.data)
    reviewer = access_to(add_member(world.project, "reviewer"), world.project.slug)
    assert item_rows(world.project, reviewer).blind
    assert not item_history(world.project, reviewer, page.rows[0].id).predictions


def test_whoever_may_have_seen_predictions_cannot_label_the_next_blind_batch():
    world = make_world(200)
    add_member(world.project, "reviewer")
    world.complete(m=40)
    world.start(m=40)
    world.do("prepare_run")
    assert "annotators and reviewers" in _objection(world, world.manager)
    assert queue.claim(project=world.project, user=world.manager) is None
    assert queue.claim(project=world.project, user=world.annotators[0]) is not None


def _objection(world, user):
    return routing_port().blind_objection(project=world.project, user=user)


def _next_run(world):
    world.start(m=40)
    world.do("prepare_run")


def test_whoever_lost_the_role_after_the_analysis_cannot_either():
    world = make_world(200)
    before, after, removed = (add_member(world.project, "manager") for _ in range(3))
    demote = {"project": world.project, "actor": world.manager, "role": "annotator"}
    change_role(user=before, **demote)
    world.complete(m=40)
    change_role(user=after, **demote)
    remove_member(project=world.project, actor=world.manager, user=removed)
    service_add(project=world.project, actor=world.manager, username=removed.username, role="annotator")
    _next_run(world)
    assert queue.claim(project=world.project, user=before) is not None
    for user in (after, removed):
        assert f"a role that {user.username} had then" in _objection(world, user)
        assert queue.claim(project=world.project, user=user) is None


def test_neither_another_name_nor_a_pause_makes_anybody_forget_what_they_saw():
    world = make_world(200)
    seer = add_member(world.project, "manager")
    world.complete(m=40)
    people = {"project": world.project, "actor": world.manager, "user": seer}
    set_active(active=False, **people)
    change_role(role="annotator", **people)
    set_active(active=True, **people)
    User.objects.filter(pk=seer.pk).update(username="somebody-else")
    seer.refresh_from_db()
    _next_run(world)
    assert f"a role that {seer.username} had then" in _objection(world, seer)


def test_whoever_can_see_predictions_in_the_administration_cannot_either():
    world = make_world(200)
    chief = add_member(world.project, "annotator", make_user("chief", is_staff=True, is_superuser=True))
    clerk = add_member(world.project, "annotator", make_user("clerk", is_staff=True))
    looker = add_member(world.project, "annotator", make_user("looker", is_staff=True))
    looker.user_permissions.add(Permission.objects.get(codename="view_prediction"))
    _next_run(world)
    # Nothing has been analysed yet.
    assert _objection(world, chief) == ""
    world.finish()
    analyse(run=world.project.runs.get(), user=world.manager)
    world.do("analyse_run")
    cancel_run(run=world.project.runs.get(), user=world.manager)
    _next_run(world)
    for user in (chief, looker):
        assert f"administration of this server shows {user.username}" in _objection(world, user)
        assert queue.claim(project=world.project, user=user) is None
    assert queue.claim(project=world.project, user=clerk) is not None


def test_the_manager_may_label_in_the_first_run():
    world = make_world(100)
    world.start(m=40)
    world.do("prepare_run")
    assert queue.claim(project=world.project, user=world.manager) is not None


def test_choices_stay_while_a_run_is_open():
    world = make_world(100)
    run = world.start(m=40)
    with pytest.raises(ConflictError, match="Run 1"):
        set_choices(project=world.project, user=world.manager, choices=[ChoiceSpec("yes"), ChoiceSpec("no")])
    cancel_run(run=run, user=world.manager)
    assert routing_port().schema_objection(project=world.project) == ""


def test_the_column_of_probabilities_is_not_shown_to_whoever_labels():
    def ask(index, row):
        # Asked more often where the first model is unsure: the column tells how sure it is.
        row["ask"] = "0.4" if float(row["confidence1"]) > 0.5 else "0.9"

    world = make_world(100, change=ask)
    access = access_to(add_member(world.project, "reviewer"), world.project.slug)
    item = world.project.items.first()
    assert "ask" in dict(item_history(world.project, access, item.pk).data)
    world.start(m=40, p=None, p_column="ask", target="pool", bound="hoeffding")
    assert "ask" in routing_port().hidden_columns(project=world.project)
    assert set(dict(item_history(world.project, access, item.pk).data)) == {"text"}
