"""Links with which people join."""

import json
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from annotation.errors import ConflictError, InputError
from annotation.models import AuditEvent, Invitation, Membership, Project, User
from annotation.people import invitations, members
from annotation.permissions import access_to
from annotation.projects.lifecycle import archive_project
from testbed.factories import add_member, make_project, make_user

pytestmark = pytest.mark.django_db
GOOD = "a-long-enough-4711"


@pytest.fixture
def project() -> Project:
    return make_project()


def invite(project: Project, **fields) -> tuple[Invitation, str]:
    fields = {"role": "annotator", "max_uses": 1, "days": 7, **fields}
    return invitations.create_invitation(project=project, actor=project.created_by, **fields)


class TestInvitations:
    def test_the_token_is_in_the_link_alone(self, project) -> None:
        invitation, token = invite(project, note="for Ben")
        assert len(token) >= 43
        assert invitations.find_invitation(token) == invitation
        assert invitations.find_invitation(token[:-1]) is None
        invitations.accept(invitation=invitation, user=make_user("ben"))
        invitations.revoke_invitation(invitation=invitation, actor=project.created_by)
        stored = json.dumps([*Invitation.objects.values(), *AuditEvent.objects.values()], default=str)
        assert token not in stored
        assert invitations.digest(token) in stored
        actions = AuditEvent.objects.filter(action__startswith="invitation.").order_by("id")
        assert [event.action for event in actions] == [
            "invitation.made",
            "invitation.used",
            "invitation.revoked",
        ]

    def test_somebody_joins_once(self, project) -> None:
        invitation, _ = invite(project, role="reviewer", max_uses=2)
        ben = make_user("ben")
        membership = invitations.accept(invitation=invitation, user=ben)
        assert (membership.user, membership.role) == (ben, "reviewer")
        invitation.refresh_from_db()
        with pytest.raises(ConflictError, match="take part in this project already"):
            invitations.accept(invitation=invitation, user=ben)
        invitation.refresh_from_db()
        assert invitation.uses == 1

    @pytest.mark.parametrize(
        ("change", "state", "words"),
        [
            ({"uses": 1}, "used_up", "used up"),
            ({"expires_at": timezone.now() - timedelta(seconds=1)}, "expired", "expired"),
            ({"revoked_at": timezone.now()}, "revoked", "taken back"),
        ],
    )
    def test_what_holds_no_longer_lets_nobody_in(self, project, change, state, words) -> None:
        invitation, token = invite(project)
        # The copy in hand is an old one, as in a request that came a moment before.
        Invitation.objects.filter(pk=invitation.pk).update(**change)
        for copy in (invitation, invitations.find_invitation(token)):
            with pytest.raises(ConflictError, match=words):
                invitations.accept(invitation=copy, user=make_user(f"ben{id(copy)}"))
            with pytest.raises(ConflictError, match=words):
                invitations.accept_with_new_account(invitation=copy, username="carl", password=GOOD)
        assert invitations.state_of(invitations.find_invitation(token)) == state
        assert project.memberships.count() == 1
        assert not User.objects.filter(username="carl").exists()

    @pytest.mark.parametrize("end", ["remove", "deactivate", "demote", "switch off"])
    def test_an_owner_who_was_sent_away_does_not_come_back_by_a_link_of_theirs(self, project, end) -> None:
        owner, second = project.created_by, add_member(project, "owner")
        invitation, token = invite(project, role="owner")
        arguments = {"project": project, "actor": second, "user": owner}
        if end == "remove":
            members.remove_member(**arguments)
        elif end == "deactivate":
            members.set_active(active=False, **arguments)
        elif end == "demote":
            members.change_role(role="manager", **arguments)
        else:
            User.objects.filter(pk=owner.pk).update(is_active=False)
        with pytest.raises(ConflictError, match="may no longer invite"):
            invitations.accept(invitation=invitations.find_invitation(token), user=make_user("friend"))
        assert invitations.state_of(invitation) == invitations.SENDER_GONE

    def test_somebody_who_was_removed_or_paused_does_not_come_back_by_it(self, project) -> None:
        invitation, _ = invite(project, max_uses=9)
        ben, carl = make_user("ben"), make_user("carl")
        for user in (ben, carl):
            invitations.accept(invitation=invitation, user=user)
        members.remove_member(project=project, actor=project.created_by, user=ben)
        members.set_active(project=project, actor=project.created_by, user=carl, active=False)
        with pytest.raises(ConflictError, match="You were removed"):
            invitations.accept(invitation=invitation, user=ben)
        with pytest.raises(ConflictError, match="switched that off"):
            invitations.accept(invitation=invitation, user=carl)
        assert access_to(carl, project.slug) is None
        later, _ = invite(project)
        assert invitations.accept(invitation=later, user=ben)

    def test_nobody_joins_an_archived_project(self, project) -> None:
        _, token = invite(project)
        archive_project(project=project, actor=project.created_by)
        with pytest.raises(ConflictError, match="archived"):
            invitations.accept(invitation=invitations.find_invitation(token), user=make_user("ben"))

    def test_an_account_and_a_membership_or_neither(self, project) -> None:
        invitation, _ = invite(project)
        make_user("ben")
        for username, password, where in (
            ("ben", GOOD, "username"),
            ("two words", GOOD, "username"),
            ("carl", "short", "password"),
            ("carl", "12345678901", "password"),
            ("carl-the-great", "carl-the-great", "password"),
        ):
            with pytest.raises(InputError) as raised:
                invitations.accept_with_new_account(
                    invitation=invitation, username=username, password=password
                )
            assert raised.value.where == where
        invitation.refresh_from_db()
        assert invitation.uses == 0
        membership = invitations.accept_with_new_account(
            invitation=invitation, username=" carl ", password=GOOD, email="c@example.org"
        )
        user = membership.user
        assert (user.username, user.check_password(GOOD), user.is_staff) == ("carl", True, False)
        assert (membership.role, access_to(user, project.slug).role) == ("annotator", "annotator")

    @pytest.mark.parametrize(
        ("fields", "where"),
        [({"role": "boss"}, "role"), ({"max_uses": 0}, "max_uses"), ({"max_uses": 1001}, "max_uses"),
         ({"days": 0}, "days"), ({"days": 91}, "days"), ({"note": "x" * 201}, "note")],
    )  # fmt: skip
    def test_bad_ones_are_not_made(self, project, fields, where) -> None:
        with pytest.raises(InputError) as raised:
            invite(project, **fields)
        assert raised.value.where == where
        assert not Invitation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_many_people_at_the_last_place_one_gets_it() -> None:
    project = make_project()
    invitation, token = invite(project, max_uses=2)
    people = [make_user(f"p{number}") for number in range(6)]
    start, outcomes = threading.Barrier(len(people), timeout=300), []

    def join(user: User) -> None:
        try:
            copy = invitations.find_invitation(token)
            start.wait()
            invitations.accept(invitation=copy, user=user)
            outcomes.append("in")
        except ConflictError as error:
            outcomes.append(error.message)
        finally:
            connection.close()

    threads = [threading.Thread(target=join, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes)[-2:] == ["in", "in"]
    assert all("used up" in outcome for outcome in sorted(outcomes)[:-2])
    invitation.refresh_from_db()
    assert invitation.uses == 2
    assert Membership.objects.filter(project=project).count() == 3
