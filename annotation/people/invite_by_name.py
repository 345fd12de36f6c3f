"""Inviting people who have an account: nobody becomes a member of anything without wanting it.

They find it on their list of projects, and accept or decline it (`annotation.people.invitations`). Whoever
invites sees what became of it, and cannot flood anybody.
"""

from collections.abc import Iterable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Count, F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import attempts, audit
from annotation.errors import InputError
from annotation.models import Invitation, Membership, Project, User
from annotation.people.invitations import UNANSWERED
from annotation.people.members import account_named, check_role, is_member_already
from annotation.people.own_passwords import answers_for_themselves

HOLDS = timedelta(days=30)
# After somebody declined, their project does not ask them by name for so long.
QUIET = timedelta(days=30)
# Invitations of one person by another one in that time which were not accepted, whatever became of them.
MOST_TO_ONE = 5
# Of one person that wait for anybody's answer.
MOST_WAITING = 1000
# Names that nobody has, by one person: whoever tries more looks for accounts.
UNKNOWN_NAMES = "30/hour"


def invite_person(*, project: Project, actor: User, username: str, role: str) -> Invitation:
    """Ask somebody who has an account to take part. Raises InputError whose `where` names the field, and
    TooManyAttemptsError after too many names that nobody has.
    """
    check_role(role)
    person = _found(actor, username)
    if Membership.objects.filter(project=project, user=person).exists():
        raise is_member_already(person)
    if not answers_for_themselves(user=person, project=project):
        raise InputError(
            _(
                "The account %(name)s was made in another project and its holder has not chosen a password "
                "yet, so whoever made it could answer. Send them a link instead, or ask again once they have."
            )
            % {"name": person.username},
            where="username",
        )
    try:
        with transaction.atomic():
            _lock(actor)
            _close_expired(project, person)
            if reason := _too_many(project, actor, person):
                raise InputError(reason, where="username")
            (invitation,) = _store([Invitation(project=project, user=person, role=role, created_by=actor)])
    except IntegrityError:
        raise InputError(
            _("%(name)s is invited already. Take that invitation back first.") % {"name": person.username},
            where="username",
        ) from None
    return invitation


def invite_members(*, project: Project, actor: User, members: Iterable[Membership]) -> int:
    """Ask the members of another project of the actor's to take part here as they do there. Left out are
    those whom the actor has asked too often, those in whose place the maker of their account could answer,
    and the last ones where too many of the actor's invitations would wait. Returns how many are asked. Call
    it inside a transaction.
    """
    _lock(actor)
    often = _of_late(actor).values("user").annotate(n=Count("pk")).filter(n__gte=MOST_TO_ONE)
    left_out = set(often.order_by().values_list("user", flat=True))
    asked = [
        member
        for member in members
        if member.user_id not in left_out and answers_for_themselves(user=member.user, project=project)
    ]
    invitations = [
        Invitation(
            project=project,
            user_id=member.user_id,
            role=member.role,
            max_labels=member.max_labels,
            max_per_day=member.max_per_day,
            created_by=actor,
        )
        for member in asked[: max(0, MOST_WAITING - _waiting(actor))]
    ]
    return len(_store(invitations))


def _found(actor: User, username: str) -> User:
    limits = [attempts.Limit(f"names:{actor.pk}", UNKNOWN_NAMES)]
    attempts.take(limits)
    person = account_named(username)
    attempts.give_back(limits)
    return person


def _lock(actor: User) -> None:
    """The inviter's row is the lock: two requests at once are not one invitation too many."""
    User.objects.select_for_update(no_key=True).get(pk=actor.pk)


def _store(invitations: list[Invitation]) -> list[Invitation]:
    ends = timezone.now() + HOLDS
    for invitation in invitations:
        invitation.expires_at = ends
    Invitation.objects.bulk_create(invitations, batch_size=500)
    audit.record_all(
        audit.new_event(
            project=invitation.project,
            actor=invitation.created_by,
            action="invitation.made",
            target=f"invitation:{invitation.pk}",
            data={"role": invitation.role, "user": invitation.user_id},
        )
        for invitation in invitations
    )
    return invitations


def _close_expired(project: Project, person: User) -> None:
    """One that nobody can accept any more is not in the way of another one."""
    ended = Invitation.objects.filter(UNANSWERED, project=project, user=person)
    ended.filter(expires_at__lte=timezone.now()).update(revoked_at=F("expires_at"))


def _too_many(project: Project, actor: User, person: User) -> str:
    """Why this person is not to be asked once more, in words."""
    declined = Invitation.objects.filter(project=project, user=person, declined_at__gt=timezone.now() - QUIET)
    if declined.exists():
        return _(
            "%(name)s has declined. They can be invited by name again after %(days)s days; until then send "
            "them a link if they want one."
        ) % {"name": person.username, "days": QUIET.days}
    if _of_late(actor).filter(user=person).count() >= MOST_TO_ONE:
        return _("You have invited %(name)s too often of late. Send them a link if they want one.") % {
            "name": person.username
        }
    if _waiting(actor) >= MOST_WAITING:
        return _("So many of your invitations wait for an answer: %(most)s. Take some back first.") % {
            "most": MOST_WAITING
        }
    return ""


def _waiting(actor: User) -> int:
    """How many invitations by name of the actor's nobody has answered yet."""
    return Invitation.objects.filter(UNANSWERED, created_by=actor, expires_at__gt=timezone.now()).count()


def _of_late(actor: User) -> QuerySet[Invitation]:
    """Invitations by name that the actor made not long ago and nobody accepted."""
    return Invitation.objects.filter(
        created_by=actor, user__isnull=False, uses=0, created_at__gt=timezone.now() - QUIET
    )
