"""Erasing a person: all that says who they are goes, and what they did stays, under a number.

Labels, answers and decisions name a row of the table of accounts, and that row stays, without a name: so that
agreement, counts and certificates are what they were. Names that stand elsewhere are found one by one below.
What cannot change, as its hash is known outside, says so where it is shown: files of deliveries, and what
certificates and plans call an expert.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from annotation.common import audit
from annotation.common.api.idempotency import forget_answers_naming
from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.models import (
    ApiToken,
    AuditEvent,
    Draft,
    Invitation,
    Job,
    KeyedRequest,
    Label,
    Mail,
    Membership,
    Project,
    SignOnSession,
    User,
)
from annotation.people.members import audit_name
from annotation.people.own_data import sessions_of
from annotation.people.second_factor.change import PASSKEY_ACTIONS, forget
from annotation.ports import routing_port

ERASED = "account.erased"
# In whose data people stand by their names, and under which key.
NAMING = {
    "round.started": ("people",),
    "run.started": ("roster", "expert"),
    "run.labelled_elsewhere": ("people", "by"),
}
_LISTED = 5
_AT_ONCE = 500


@dataclass(frozen=True)
class Erased:
    """`name` is the number under which their work stays; `labels` how many they had given, `files` how many
    deliveries were written before, which may have their name. `now`: nobody had erased them before.
    """

    name: str
    labels: int
    files: int
    now: bool


def number_of(user: User) -> str:
    """What an erased person is called. Nobody can have such a name: none that is typed has a blank."""
    return f"person {user.pk}"


def erasure_in_words(done: Erased) -> str:
    if not done.now:
        return _("%(name)s was erased before.") % {"name": done.name}
    said = ngettext(
        "Erased. %(count)s label stays, under “%(name)s”.",
        "Erased. %(count)s labels stay, under “%(name)s”.",
        done.labels,
    ) % {"count": f"{done.labels:,}", "name": done.name}
    if done.files:
        words = ngettext(
            "%(count)s delivery that was written before may have the name in its files: they are known by "
            "their hash and do not change.",
            "%(count)s deliveries that were written before may have the name in their files: they are known "
            "by their hash and do not change.",
            done.files,
        )
        said += " " + words % {"count": f"{done.files:,}"}
    return said


def erase_person(*, user: User, actor: User | None, typed: str) -> Erased:
    """Erase somebody, whose name has to be `typed`. Once more changes nothing.

    `actor` None: whoever runs the server. Raises InputError for another name, whose `where` is "typed", and
    ConflictError where something would be left without anybody: a project, the server, or the expert's work
    in a run that is under way.
    """
    if typed.strip() != user.username:
        raise InputError(
            _("Type the name of the account exactly as it is: %(name)s.") % {"name": user.username},
            where="typed",
        )
    sessions = [session.session_key for session in sessions_of(user)]  # all of them are read
    with transaction.atomic():
        # People before projects, as whoever joins one; of two administrators who erase themselves one stays.
        administrators = Q(is_superuser=True, is_active=True)
        people = (
            User.objects.select_for_update(no_key=True).filter(Q(pk=user.pk) | administrators).order_by("pk")
        )
        locked = {one.pk: one for one in people}
        user = locked.pop(user.pk)
        work = Label.objects.filter(annotator=user)
        if user.erased_at is not None:
            return Erased(user.username, work.count(), routing_port().files_naming(user=user), now=False)
        _refuse(user, has_others=bool(locked))
        erased = Erased(number_of(user), work.count(), routing_port().files_naming(user=user), now=True)
        before, address = audit_name(user), user.email
        _leave_projects(user, actor)
        _forget_elsewhere(user, sessions)
        _empty(user)
        _rename_in_audit(user, before, address)
        audit.record(
            project=None,
            actor=actor,
            action=ERASED,
            target=audit_name(user),
            data={"user": user.pk, "labels": erased.labels, "files": erased.files},
        )
    return erased


def _refuse(user: User, *, has_others: bool) -> None:
    """Raises ConflictError where others could not go on; `has_others`: whether there are other
    administrators. Locks the projects, so that no run begins meanwhile.
    """
    theirs = Project.objects.filter(memberships__user=user, deleting_at__isnull=True)
    locked = list(theirs.select_for_update(of=("self",), no_key=True).order_by("pk"))
    owners = Membership.objects.filter(role=Membership.Role.OWNER, is_active=True, user__is_active=True)
    owned = set(
        Membership.objects.filter(user=user, role=Membership.Role.OWNER).values_list("project", flat=True)
    )
    kept = set(owners.exclude(user=user).filter(project__in=owned).values_list("project", flat=True))
    alone = [project.name for project in locked if project.pk in owned - kept]
    if alone:
        raise ConflictError(
            _(
                "%(name)s is the only owner of %(projects)s. Make somebody else an owner there first, or "
                "delete the project."
            )
            % {"name": user.username, "projects": _listed(alone)},
            code="only_owner",
        )
    if user.is_superuser and user.is_active and not has_others:
        raise ConflictError(
            _("%(name)s is the only administrator. Make another one first.") % {"name": user.username},
            code="only_administrator",
        )
    if words := routing_port().erasure_objection(user=user):
        raise ConflictError(words, code="expert_of_open_run")


def _leave_projects(user: User, actor: User | None) -> None:
    for membership in Membership.objects.filter(user=user).select_related("project").order_by("project"):
        queue.release_all(project=membership.project, user=user)
        audit.record(
            project=membership.project,
            actor=actor,
            action="member.removed",
            target=audit_name(user),
            data={"role": membership.role, "user": user.pk},
        )
        membership.delete()


def _forget_elsewhere(user: User, sessions: Iterable[str]) -> None:
    """What opened something, what was written to them, and where their name stands beside what others did."""
    mine, number = Q(user=user), number_of(user)
    Session.objects.filter(session_key__in=sessions).delete()
    for model in (ApiToken, KeyedRequest, Draft, SignOnSession):
        model._default_manager.filter(mine).delete()
    forget(user)
    routing_port().forget_person(user=user)
    forget_answers_naming(user.username, user.email)
    for log in (AccessAttempt, AccessLog, AccessFailureLog):
        log.objects.filter(_typed_as(user)).delete()
    Mail.objects.filter(mine | (Q(to__iexact=user.email) if user.email else Q(pk__in=[]))).delete()
    for mail in Mail.objects.filter(data__who=user.username):
        mail.data["who"] = number
        mail.save(update_fields=["data"])
    for job in Job.objects.filter(error_params__name=user.username):  # done in their name
        error = job.error.replace(user.username, number)
        Job.objects.filter(pk=job.pk).update(error=error, error_params=job.error_params | {"name": number})
    _forget_invitations(user)
    of_user = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(User))
    of_user.filter(object_id=str(user.pk)).update(object_repr=number)
    of_members = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(Membership))
    begins = f"{user.username} in "  # as a membership calls itself
    for entry in of_members.filter(object_repr__startswith=begins):
        entry.object_repr = f"{number} in {entry.object_repr.removeprefix(begins)}"
        entry.save(update_fields=["object_repr"])


def _typed_as(user: User) -> Q:
    """What they may have typed to log in: in any case, and the address for the name, unless somebody else is
    called that.
    """
    typed = Q(username__iexact=user.username)
    if user.email and not User.objects.filter(username__iexact=user.email).exclude(pk=user.pk).exists():
        typed |= Q(username__iexact=user.email)
    return typed


def _forget_invitations(user: User) -> None:
    """Those that waited for them go. Of those with which they came the note may say for whom it was."""
    used = AuditEvent.objects.filter(action="invitation.used", actor=user).values_list("target", flat=True)
    ids = [int(target.removeprefix("invitation:")) for target in used]
    Invitation.objects.filter(Q(pk__in=ids) | Q(user=user)).update(note="")
    Invitation.objects.filter(user=user, uses=0).delete()


def _empty(user: User) -> None:
    """The row itself: nobody can log in with it any more, and it says of nobody who they are."""
    user.username = number_of(user)
    user.first_name = user.last_name = user.email = user.language = ""
    user.set_unusable_password()
    user.is_active = user.is_staff = user.is_superuser = False
    user.mail_notices = user.mail_work = False
    user.email_confirmed_at = user.sign_on = user.signed_on_at = user.last_login = None
    user.password_chosen_at = user.reset_link_at = user.reset_link_by = None
    user.erased_at = timezone.now()
    user.save()
    user.groups.clear()
    user.user_permissions.clear()


def _rename_in_audit(user: User, before: str, address: str) -> None:
    """What names them gets the number in place of the name: of what is about them, by id, older names too."""
    redacted = {"redactions": F("redactions") + 1}
    about = AuditEvent.objects.filter(Q(target=before) | Q(data__user=user.pk, target__startswith="user:"))
    targets = set(about.order_by().values_list("target", flat=True).distinct()) | {before}
    about.update(target=audit_name(user), **redacted)
    # What they called a passkey ("Ann's phone") is in the event of it.
    for event in AuditEvent.objects.filter(action__in=PASSKEY_ACTIONS, data__user=user.pk).order_by("pk"):
        left = {key: value for key, value in event.data.items() if key != "name"}
        AuditEvent.objects.filter(pk=event.pk).update(data=left, **redacted)
    gone = {target.removeprefix("user:") for target in targets} | ({address} if address else set())
    gone -= set(User.objects.filter(username__in=gone).values_list("username", flat=True))
    gone = {name.casefold() for name in gone}
    for event in AuditEvent.objects.filter(action__in=NAMING).order_by("pk").iterator(_AT_ONCE):
        told = {
            key: _renamed(event.data[key], gone, user.username)
            for key in NAMING[event.action]
            if key in event.data
        }
        if any(event.data[key] != people for key, people in told.items()):
            AuditEvent.objects.filter(pk=event.pk).update(data=event.data | told, **redacted)


def _renamed(people: Any, gone: set[str], name: str) -> Any:
    """Of a list of names, or of an object that has something under each, which may be a name, too. Names from
    elsewhere came as somebody wrote them.
    """

    def renamed(one: Any) -> Any:
        return name if isinstance(one, str) and one.casefold() in gone else one

    if isinstance(people, dict):
        return {renamed(one): renamed(value) for one, value in people.items()}
    return [renamed(one) for one in people]


def _listed(names: list[str]) -> str:
    more = _("%(count)s more") % {"count": len(names) - _LISTED}
    return ", ".join(names[:_LISTED] + ([more] if len(names) > _LISTED else []))
