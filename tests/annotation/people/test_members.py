"""Who belongs to a project."""

import pytest
from django.utils import timezone

from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.labelling import queue
from annotation.models import AuditEvent, Label, Membership, Project, User, WorkItem
from annotation.people import members
from annotation.permissions import EVERYBODY, ROLES_BY_ACTION, access_to
from testbed.factories import add_member, make_project, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


def test_somebody_with_an_account_joins(project) -> None:
    make_user("ben")
    arguments = {"project": project, "actor": project.created_by, "username": " ben "}
    membership = members.add_member(role="annotator", **arguments)
    assert (membership.user.username, membership.role) == ("ben", "annotator")
    assert AuditEvent.objects.get(action="member.added").target == "user:ben"
    with pytest.raises(InputError, match="member already"):
        members.add_member(role="viewer", **arguments)


@pytest.mark.parametrize(
    ("username", "role", "where"), [("nobody", "viewer", "username"), ("gone", "viewer", "username"),
                                    ("ben", "boss", "role")]
)  # fmt: skip
def test_bad_input_names_the_field(project, username, role, where) -> None:
    make_user("ben")
    make_user("gone", is_active=False)
    with pytest.raises(InputError) as raised:
        members.add_member(project=project, actor=project.created_by, username=username, role=role)
    assert raised.value.where == where


def test_a_new_account_gets_a_password_that_works_and_is_nowhere_stored(project) -> None:
    membership, password = members.create_account(
        project=project, actor=project.created_by, username="carl", role="annotator", email="c@example.org"
    )
    user = User.objects.get(username="carl")
    assert membership.user == user
    assert user.check_password(password)
    assert len(password) >= 16
    assert not user.is_staff
    assert not user.is_superuser
    assert password not in str(list(AuditEvent.objects.values()))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"username": "ben"}, "username"),
        ({"username": "two words"}, "username"),
        ({"username": ""}, "username"),
        ({"email": "no address"}, "email"),
        ({"role": "boss"}, "role"),
    ],
)
def test_a_bad_account_is_not_made(project, fields, where) -> None:
    make_user("ben")
    before = User.objects.count()
    arguments = {"username": "carl", "role": "viewer", **fields}
    with pytest.raises(InputError) as raised:
        members.create_account(project=project, actor=project.created_by, **arguments)
    assert raised.value.where == where
    assert User.objects.count() == before


def test_the_last_owner_stays(project) -> None:
    owner = project.created_by
    with pytest.raises(ConflictError, match="only owner"):
        members.remove_member(project=project, actor=owner, user=owner)
    with pytest.raises(ConflictError, match="only owner"):
        members.change_role(project=project, actor=owner, user=owner, role="viewer")
    second = add_member(project, "owner")
    User.objects.filter(pk=second.pk).update(is_active=False)
    with pytest.raises(ConflictError, match="only owner"):
        members.remove_member(project=project, actor=owner, user=owner)
    User.objects.filter(pk=second.pk).update(is_active=True)
    members.remove_member(project=project, actor=owner, user=owner)
    assert Membership.objects.get().user == second


def test_roles_change_and_members_go_with_a_trace(project) -> None:
    user = add_member(project, "annotator")
    members.change_role(project=project, actor=project.created_by, user=user, role="manager")
    assert access_to(user, project.slug).role == "manager"
    changed = AuditEvent.objects.get(action="member.role_changed")
    assert changed.data == {"from": "annotator", "to": "manager", "user": user.pk}
    members.remove_member(project=project, actor=project.created_by, user=user)
    assert access_to(user, project.slug) is None
    with pytest.raises(ConflictError, match="no member"):
        members.remove_member(project=project, actor=project.created_by, user=user)


class TestActive:
    def test_somebody_who_is_not_active_labels_nothing_and_gives_back_what_they_hold(self, desk) -> None:
        ann, project = desk.ann, desk.project
        label = desk.submit(desk.claim())
        held = desk.claim()
        members.set_active(project=project, actor=project.created_by, user=ann, active=False)
        assert access_to(ann, project.slug) is None
        held.work_item.refresh_from_db()
        assert held.work_item.state == WorkItem.State.OPEN
        with pytest.raises(NotAllowedError):
            desk.claim()
        assert Label.objects.get() == label
        members.set_active(project=project, actor=project.created_by, user=ann, active=True)
        assert desk.claim().work_item == held.work_item
        events = AuditEvent.objects.filter(action__contains="activated").order_by("id")
        assert [event.action for event in events] == ["member.deactivated", "member.activated"]

    def test_nobody_waits_for_somebody_who_is_not_active(self, desk) -> None:
        desk.skip(desk.claim())
        assert not queue.stuck_items(desk.project).exists()
        members.set_active(project=desk.project, actor=desk.project.created_by, user=desk.ben, active=False)
        assert queue.stuck_items(desk.project).count() == 1

    def test_the_last_active_owner_stays(self, project) -> None:
        owner = project.created_by
        second = add_member(project, "owner")
        arguments = {"project": project, "actor": owner}
        members.set_active(user=second, active=False, **arguments)
        for end in (
            lambda: members.set_active(user=owner, active=False, **arguments),
            lambda: members.remove_member(user=owner, **arguments),
            lambda: members.change_role(user=owner, role="viewer", **arguments),
        ):
            with pytest.raises(ConflictError, match="only owner"):
                end()
        members.set_active(user=second, active=True, **arguments)
        members.set_active(user=owner, active=False, **arguments)
        assert access_to(owner, project.slug) is None


class TestLimits:
    def test_they_are_kept_and_told(self, project) -> None:
        user = add_member(project)
        arguments = {"project": project, "actor": project.created_by, "user": user}
        members.set_limits(max_labels=100, max_per_day=10, **arguments)
        members.set_limits(max_labels=100, max_per_day=None, **arguments)
        membership = Membership.objects.get(user=user)
        assert (membership.max_labels, membership.max_per_day) == (100, None)
        events = AuditEvent.objects.filter(action="member.limits_changed")
        assert [event.data for event in events] == [
            {"max_per_day": [10, None]}, {"max_labels": [None, 100], "max_per_day": [None, 10]}
        ]  # fmt: skip

    @pytest.mark.parametrize("limit", [-1, members.LARGEST_LIMIT + 1])
    def test_a_bad_one_is_refused(self, project, limit) -> None:
        with pytest.raises(InputError) as raised:
            members.set_limits(
                project=project, actor=project.created_by, user=project.created_by,
                max_labels=None, max_per_day=limit,
            )  # fmt: skip
        assert raised.value.where == "max_per_day"


class TestAccess:
    def test_the_table_in_words(self, project) -> None:
        access = access_to(project.created_by, project.slug)
        assert all(access.allows(action) for action in ROLES_BY_ACTION)
        annotator = access_to(add_member(project, "annotator"), project.slug)
        allowed = {action for action in ROLES_BY_ACTION if annotator.allows(action)}
        assert allowed == {"project.view", "label"}
        assert annotator.actions["runs_edit"] is False

    def test_nothing_changes_in_an_archived_project(self, project) -> None:
        project.archived_at = timezone.now()
        project.save()
        access = access_to(project.created_by, project.slug)
        possible = {action for action in ROLES_BY_ACTION if access.allows(action)}
        assert {action for action in possible if not action.endswith(".view")} == {
            "items.erase", "members.edit", "project.archive", "project.duplicate", "project.delete"
        }  # fmt: skip
        assert {"items.view", "runs.view", "deliveries.view"} <= possible

    def test_only_known_roles_stand_in_the_table(self) -> None:
        assert set().union(*ROLES_BY_ACTION.values()) == EVERYBODY == set(Membership.Role.values)

    def test_who_labels_blind_sees_no_predictions_by_role_alone(self) -> None:
        assert "reviewer" not in ROLES_BY_ACTION["predictions.view"]
        assert "annotator" not in ROLES_BY_ACTION["predictions.view"]

    def test_a_switched_off_account_has_no_access(self, project) -> None:
        user = add_member(project)
        User.objects.filter(pk=user.pk).update(is_active=False)
        assert access_to(user, project.slug) is None
