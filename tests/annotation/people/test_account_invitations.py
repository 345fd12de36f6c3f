"""Invitations of people who have an account: their answers, and that nobody floods them."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.models import AuditEvent, Invitation, Membership, Project, User
from annotation.people import invitations, invite_by_name, members
from annotation.people.invitations import accept, create_invitation, revoke_invitation, state_of
from annotation.people.own_passwords import OwnPasswordError
from annotation.projects.lifecycle import archive_project, duplicate_project
from annotation.projects.manage import create_project
from testbed.factories import add_member, invited_unchosen, made_account, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def ben(project) -> User:
    return make_user("ben")


def invite(project: Project, username: str = "ben", role: str = "annotator") -> Invitation:
    return invite_by_name.invite_person(
        project=project, actor=project.created_by, username=username, role=role
    )


def later(days: int) -> None:
    """As if so much time had passed since everything that was invited and declined."""
    back = timedelta(days=days)
    for row in Invitation.objects.all():
        ends = {"created_at": row.created_at - back, "expires_at": row.expires_at - back}
        declined = {"declined_at": row.declined_at - back} if row.declined_at else {}
        Invitation.objects.filter(pk=row.pk).update(**ends, **declined)


class TestAnswers:
    def test_nobody_is_a_member_before_they_accept(self, project, ben) -> None:
        invitation = invite(project, " ben ", "reviewer")
        assert not project.memberships.filter(user=ben).exists()
        assert list(invitations.invitations_to(ben)) == [invitation]
        membership = accept(invitation=invitation, user=ben)
        assert (membership.user, membership.role) == (ben, "reviewer")
        assert list(invitations.invitations_to(ben)) == []
        with pytest.raises(ConflictError):
            accept(invitation=invitation, user=ben)
        actions = AuditEvent.objects.filter(project=project).order_by("id").values_list("action", "actor")
        owner = project.created_by_id
        assert list(actions)[1:] == [
            ("invitation.made", owner), ("member.added", ben.pk), ("invitation.used", ben.pk)
        ]  # fmt: skip

    def test_the_owner_sees_that_it_was_accepted_whatever_comes_afterwards(self, project, ben) -> None:
        invitation = invite(project)
        accept(invitation=invitation, user=ben)
        assert state_of(Invitation.objects.get()) == "accepted"
        with pytest.raises(ConflictError, match="take part in this project already"):
            accept(invitation=Invitation.objects.get(), user=ben)
        revoke_invitation(invitation=invitation, actor=project.created_by)
        later(31)
        assert state_of(Invitation.objects.get()) == "accepted"

    def test_only_the_person_to_whom_it_is_addressed_accepts(self, project, ben) -> None:
        invitation = invite(project)
        with pytest.raises(NotAllowedError, match="somebody else"):
            accept(invitation=invitation, user=make_user("mallory"))
        with pytest.raises(ConflictError):
            invitations.decline(invitation=invitation, user=User.objects.get(username="mallory"))
        assert project.memberships.count() == 1
        assert state_of(Invitation.objects.get()) == "open"

    def test_who_declines_is_no_member_and_the_owner_sees_it(self, project, ben) -> None:
        invitation = invite(project)
        for _ in range(2):
            invitations.decline(invitation=invitation, user=ben)
        assert state_of(Invitation.objects.get()) == "declined"
        assert AuditEvent.objects.filter(action="invitation.declined", actor=ben).count() == 1
        for copy in (invitation, Invitation.objects.get()):
            with pytest.raises(ConflictError, match="declined"):
                accept(invitation=copy, user=ben)
        assert list(invitations.invitations_to(ben)) == []

    def test_what_was_accepted_is_not_declined_any_more(self, project, ben) -> None:
        invitation = invite(project)
        accept(invitation=invitation, user=ben)
        with pytest.raises(ConflictError):
            invitations.decline(invitation=invitation, user=ben)
        assert project.memberships.filter(user=ben).exists()

    @pytest.mark.parametrize("end", ["revoke", "expire", "archive", "sender", "joined"])
    def test_what_holds_no_longer_is_not_shown_and_lets_nobody_in(self, project, ben, end) -> None:
        invitation, owner = invite(project), project.created_by
        if end == "revoke":
            revoke_invitation(invitation=invitation, actor=owner)
        elif end == "expire":
            later(30)
        elif end == "archive":
            archive_project(project=project, actor=owner)
        elif end == "sender":
            members.remove_member(project=project, actor=add_member(project, "owner"), user=owner)
        else:
            members.add_member(project=project, actor=owner, username="ben", role="viewer")
        assert list(invitations.invitations_to(ben)) == []
        with pytest.raises(ConflictError):
            accept(invitation=Invitation.objects.select_related("project").get(), user=ben)
        assert project.memberships.filter(user=ben).exists() == (end == "joined")


class TestNobodyIsFlooded:
    def test_one_waits_in_a_project(self, project, ben) -> None:
        invite(project)
        with pytest.raises(InputError, match="invited already"):
            invite(project, role="viewer")
        later(30)
        assert invite(project)
        assert invitations.invitations_to(ben).count() == 1

    @pytest.mark.parametrize(("name", "role"), [("nobody", "viewer"), ("gone", "viewer"), ("ben", "boss")])
    def test_bad_input_names_the_field(self, project, ben, name, role) -> None:
        make_user("gone", is_active=False)
        with pytest.raises(InputError) as raised:
            invite(project, name, role)
        assert raised.value.where == ("role" if role == "boss" else "username")
        with pytest.raises(InputError, match="member already"):
            invite(project, project.created_by.username)

    def test_who_declined_is_left_alone_for_a_while(self, project, ben) -> None:
        invitations.decline(invitation=invite(project), user=ben)
        with pytest.raises(InputError, match="has declined"):
            invite(project)
        later(31)
        assert invite(project)

    def test_nobody_asks_one_person_again_and_again_by_more_projects_or_taking_back(
        self, project, ben
    ) -> None:
        owner = project.created_by
        for number in range(invite_by_name.MOST_TO_ONE):
            other = make_project(owner) if number % 2 else project
            revoke_invitation(invitation=invite(other), actor=owner)
        for where in (project, make_project(owner)):
            with pytest.raises(InputError, match="too often"):
                invite(where)
        source = make_project(owner)
        add_member(source, "annotator", ben)
        copy = duplicate_project(project=source, actor=owner, name="Copy", with_members=True)
        assert not copy.invitations.exists()
        assert invite(make_project())  # somebody else may ask
        later(31)
        assert invite(project)

    def test_one_person_has_a_limit_of_invitations_that_wait(self, project, ben, monkeypatch) -> None:
        monkeypatch.setattr(invite_by_name, "MOST_WAITING", 2)
        for name in ("cy", "di"):
            make_user(name)
            invite(project, name)
        with pytest.raises(InputError, match="wait for an answer"):
            invite(project)

    def test_copies_of_projects_keep_to_it_too(self, project, monkeypatch) -> None:
        source = make_project(project.created_by)
        people = [add_member(source, "annotator", make_user(f"person{number}")) for number in range(4)]
        make_user("cy")
        invite(project, "cy")
        monkeypatch.setattr(invite_by_name, "MOST_WAITING", 3)
        copy = duplicate_project(project=source, actor=source.created_by, name="Copy", with_members=True)
        assert copy.invitations.count() == 2
        assert AuditEvent.objects.get(action="project.duplicated").data["invited"] == 2
        assert AuditEvent.objects.filter(project=copy, action="invitation.made").count() == 2
        assert set(copy.invitations.values_list("user", flat=True)) < {person.pk for person in people}

    def test_many_members_are_invited_by_few_statements(self, project) -> None:
        source = make_project(project.created_by)
        for number in range(20):
            add_member(source, "annotator", make_user(f"person{number}"))
        with CaptureQueriesContext(connection) as asked:
            copy = duplicate_project(project=source, actor=source.created_by, name="C", with_members=True)
        assert copy.invitations.count() == 20
        stored = [query["sql"] for query in asked if 'INSERT INTO "annotation_invitation"' in query["sql"]]
        assert len(stored) == 1


class TestOwnPassword:
    """Whoever made an account knows its first password; what it takes part in later is not theirs to see."""

    def chosen(self, user: User) -> None:
        User.objects.filter(pk=user.pk).update(password_chosen_at=timezone.now())

    def test_who_made_an_account_answers_no_invitation_in_its_place(self, project) -> None:
        """They chose a password as its holder, accepted, and were manager of somebody else's project."""
        made, _ = made_account(make_project(name="Secret place"))
        with pytest.raises(InputError, match="has not chosen a password yet") as raised:
            invite(project, made.username, "manager")
        assert raised.value.where == "username"
        assert "Secret" not in str(raised.value)
        assert not made.invitations.exists()
        self.chosen(made)
        assert invite(project, made.username, "manager")

    def test_nor_one_to_a_copy_of_a_project(self, project) -> None:
        made, _ = made_account(project)
        add_member(project, "annotator", make_user("cy"))
        copy = duplicate_project(project=project, actor=project.created_by, name="Copy", with_members=True)
        assert [one.user.username for one in copy.invitations.all()] == ["cy"]
        self.chosen(made)
        again = duplicate_project(project=project, actor=project.created_by, name="Again", with_members=True)
        assert {one.user.username for one in again.invitations.all()} == {"cy", made.username}

    def test_a_first_password_opens_no_other_project(self, project) -> None:
        made, _ = made_account(make_project())
        named = invited_unchosen(project, made, role="annotator")
        link, _token = create_invitation(
            project=project, actor=project.created_by, role="viewer", max_uses=9, days=9
        )
        for invitation in (named, link):
            with pytest.raises(OwnPasswordError):
                accept(invitation=invitation, user=made)
        assert not project.memberships.filter(user=made).exists()
        self.chosen(made)
        assert accept(invitation=named, user=made)

    def test_nor_does_one_that_was_chosen_before_somebody_invited(self, project) -> None:
        """It may have been chosen by whoever made the account, in its holder's place."""
        made, _ = made_account(make_project())
        self.chosen(made)
        invitation = invite(project, made.username)
        with pytest.raises(OwnPasswordError):
            accept(invitation=invitation, user=made)
        self.chosen(made)
        accept(invitation=invitation, user=made)
        # From then on the account is known to be its holder's.
        third = make_project()
        assert accept(invitation=invite(third, made.username), user=made)

    def test_in_the_project_where_it_was_made_it_is_enough(self, project) -> None:
        made, _ = made_account(project)
        members.remove_member(project=project, actor=project.created_by, user=made)
        assert accept(invitation=invite(project, made.username), user=made)
        made.refresh_from_db()
        assert not made.belonged_elsewhere

    def test_projects_of_its_own_need_one_too(self, project) -> None:
        made, _ = made_account(project)
        with pytest.raises(OwnPasswordError):
            create_project(user=made, name="Mine", choices=())
        self.chosen(made)
        made.refresh_from_db()
        make_project(made)
        made.refresh_from_db()
        assert made.belonged_elsewhere

    def test_an_administrator_adds_nobody_elsewhere_whose_maker_may_know_the_password(self, project) -> None:
        made, _ = made_account(make_project())
        arguments = {"project": project, "actor": project.created_by, "username": made.username}
        with pytest.raises(OwnPasswordError, match="choose a new one"):
            members.add_member(role="viewer", **arguments)
        self.chosen(made)
        assert members.add_member(role="viewer", **arguments)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("second", ["accept", "decline", "revoke"])
def test_of_two_answers_at_once_one_holds(second) -> None:
    project, ben = make_project(), make_user("ben")
    invitation = invite(project)
    start, told = threading.Barrier(2, timeout=300), []

    def answer(how: str) -> None:
        copy = Invitation.objects.select_related("project").get(pk=invitation.pk)
        try:
            start.wait()
            if how == "accept":
                accept(invitation=copy, user=ben)
            elif how == "decline":
                invitations.decline(invitation=copy, user=ben)
            else:
                revoke_invitation(invitation=copy, actor=project.created_by)
            told.append("done")
        except ConflictError:
            told.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=answer, args=(how,)) for how in ("accept", second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored, joined = Invitation.objects.get(), Membership.objects.filter(project=project, user=ben).count()
    assert stored.uses == joined
    if second == "accept":
        assert (sorted(told), joined) == (["done", "refused"], 1)
    elif second == "decline":
        assert sorted(told) == ["done", "refused"]
        assert (stored.declined_at is None) == bool(joined)


@pytest.mark.django_db(transaction=True)
def test_of_two_invitations_at_once_one_is_made() -> None:
    project, _ben = make_project(), make_user("ben")
    start, told = threading.Barrier(2, timeout=300), []

    def ask() -> None:
        try:
            start.wait()
            invite(project)
            told.append("done")
        except InputError:
            told.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["done", "refused"]
    assert Invitation.objects.count() == 1
