"""Who belongs to a project."""

import pytest

from annotation.errors import ConflictError, InputError
from annotation.models import AuditEvent, Membership, Project, User
from annotation.permissions import EVERYBODY, ROLES_BY_ACTION, access_to
from annotation.services import members
from tests.factories import add_member, make_project, make_user

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
    assert AuditEvent.objects.get(action="member.role_changed").data == {"from": "annotator", "to": "manager"}
    members.remove_member(project=project, actor=project.created_by, user=user)
    assert access_to(user, project.slug) is None
    with pytest.raises(ConflictError, match="no member"):
        members.remove_member(project=project, actor=project.created_by, user=user)


class TestAccess:
    def test_the_table_in_words(self, project) -> None:
        access = access_to(project.created_by, project.slug)
        assert all(access.allows(action) for action in ROLES_BY_ACTION)
        annotator = access_to(add_member(project, "annotator"), project.slug)
        allowed = {action for action in ROLES_BY_ACTION if annotator.allows(action)}
        assert allowed == {"project.view", "label"}
        assert annotator.actions["runs_edit"] is False

    def test_only_known_roles_stand_in_the_table(self) -> None:
        assert set().union(*ROLES_BY_ACTION.values()) == EVERYBODY == set(Membership.Role.values)

    def test_who_labels_blind_sees_no_predictions_by_role_alone(self) -> None:
        assert "reviewer" not in ROLES_BY_ACTION["predictions.view"]
        assert "annotator" not in ROLES_BY_ACTION["predictions.view"]

    def test_a_switched_off_account_has_no_access(self, project) -> None:
        user = add_member(project)
        User.objects.filter(pk=user.pk).update(is_active=False)
        assert access_to(user, project.slug) is None
