"""Links with which somebody sets a password: whose password an owner may have set, and who is told."""

import json

import pytest
from django.utils import timezone
from django.utils.http import urlsafe_base64_decode

from annotation.errors import NotAllowedError
from annotation.models import AuditEvent, Membership, Project, User
from annotation.people import password_links
from annotation.people.members import join, remove_member
from annotation.projects.lifecycle import delete_project
from testbed.factories import add_member, made_account, make_project, make_user, remove_deleted

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def made(project) -> User:
    return made_account(project)[0]


def link(project: Project, user: User, actor: User | None = None) -> tuple[str, str]:
    return password_links.reset_link(project=project, actor=actor or project.created_by, user=user)


def refused(project: Project, user: User) -> bool:
    """By the page's words and by the service."""
    told = password_links.why_no_link(actor=project.created_by, user=User.objects.get(pk=user.pk))
    with pytest.raises(NotAllowedError) as raised:
        link(project, user)
    return raised.value.message == told


def test_it_is_for_this_person_and_leaves_a_trace_without_the_token(project, made) -> None:
    uid, token = link(project, made)
    assert urlsafe_base64_decode(uid).decode() == str(made.pk)
    assert password_links.tokens.check_token(made, token)
    assert not password_links.tokens.check_token(project.created_by, token)
    event = AuditEvent.objects.get(action="account.reset_link_made")
    assert (event.actor, event.data) == (project.created_by, {"user": made.pk})
    assert token not in json.dumps(list(AuditEvent.objects.values()), default=str)
    made.refresh_from_db()
    assert made.reset_link_by == project.created_by
    assert made.reset_link_at is not None


def test_it_ends_with_the_password_a_login_and_any_change_of_what_the_account_may_do(project, made) -> None:
    changes = [
        lambda: made.set_password("another-one-0815"),
        lambda: setattr(made, "last_login", timezone.now()),
        lambda: setattr(made, "is_staff", True),
        lambda: setattr(made, "is_active", False),
        lambda: setattr(made, "password_chosen_at", timezone.now()),
        lambda: setattr(made, "belonged_elsewhere", True),
        lambda: Membership.objects.filter(user=made).update(role="manager"),
        lambda: add_member(make_project(), "viewer", made),
    ]
    for change in changes:
        token = password_links.tokens.make_token(made)
        assert password_links.tokens.check_token(made, token)
        change()
        assert not password_links.tokens.check_token(made, token)


class TestWhoseItIsNot:
    def test_an_account_that_others_made(self, project) -> None:
        """Also where all of its projects are the owner's."""
        by_herself, elsewhere = make_user("ann"), make_project()
        theirs, _ = made_account(elsewhere, "theirs")
        for user in (by_herself, theirs):
            add_member(project, "annotator", user)
            assert refused(project, user)
        elsewhere.memberships.filter(user=theirs).delete()
        assert refused(project, theirs)

    def test_an_account_whose_holder_chose_a_password(self, project, made) -> None:
        User.objects.filter(pk=made.pk).update(password_chosen_at=timezone.now())
        assert refused(project, made)

    @pytest.mark.parametrize("end", ["left", "deleted"])
    def test_an_account_that_once_belonged_elsewhere(self, project, made, end) -> None:
        other = make_project()
        User.objects.filter(pk=made.pk).update(password_chosen_at=timezone.now())
        made.refresh_from_db()
        join(project=other, actor=other.created_by, user=made, role="viewer")
        User.objects.filter(pk=made.pk).update(password_chosen_at=None)  # only what is asked for here
        if end == "left":
            remove_member(project=other, actor=other.created_by, user=made)
        else:
            delete_project(project=other, actor=other.created_by, name=other.name)
            remove_deleted(other)
        assert list(made.memberships.values_list("project", flat=True)) == [project.pk]
        assert refused(project, made)

    def test_an_account_of_a_project_that_the_owner_owns_no_more(self, project, made) -> None:
        owner, other = project.created_by, make_project()
        add_member(other, "owner", owner)
        add_member(project, "owner")
        project.memberships.filter(user=owner).update(role="manager")
        other.memberships.create(user=made, role="viewer")
        with pytest.raises(NotAllowedError):
            link(other, made, owner)

    def test_who_helps_to_run_the_server_who_is_switched_off_and_oneself(self, project) -> None:
        for fields in ({"is_superuser": True}, {"is_staff": True}, {"is_active": False}):
            name = next(iter(fields))
            user, _ = made_account(project, name.replace("_", "-"))
            User.objects.filter(pk=user.pk).update(**fields)
            assert refused(project, user)
        assert refused(project, project.created_by)


def test_an_administrator_who_owns_the_project_may(project) -> None:
    root = add_member(project, "owner", make_user("root", is_superuser=True))
    ann = add_member(project, "annotator", make_user("ann"))
    assert link(project, ann, root)
    assert password_links.why_no_link(actor=root, user=make_user("staff", is_staff=True))
