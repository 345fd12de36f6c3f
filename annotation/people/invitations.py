"""Links with which people join a project by themselves, and get an account if they have none; and the answers
to all invitations, those of one person by name (`annotation.people.invite_by_name`) included.

Whoever has the link may use it, as often as it says. The token is in the link alone: the database has its
SHA-256, the audit trail has the number of the invitation.
"""

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common import audit, mail
from annotation.common.one_line import checked_line
from annotation.errors import ConflictError, InputError, NotAllowedError, Refusal
from annotation.models import AuditEvent, Invitation, Mail, Membership, Project, User
from annotation.models.projects import LONG_COLUMNS
from annotation.outside.secrets import encrypt
from annotation.people.members import check_role, checked_user, join, save_new
from annotation.people.own_passwords import require_own
from annotation.permissions import ROLES_BY_ACTION

MAX_USES = 1000
MAX_DAYS = 90
OPEN, ACCEPTED, USED_UP, EXPIRED, REVOKED, DECLINED, SENDER_GONE, ARCHIVED = (
    "open",
    "accepted",
    "used_up",
    "expired",
    "revoked",
    "declined",
    "sender_gone",
    "archived",
)
STATES_IN_WORDS = {
    OPEN: gettext_lazy("Open"),
    ACCEPTED: gettext_lazy("Accepted"),
    USED_UP: gettext_lazy("Used up"),
    EXPIRED: gettext_lazy("Expired"),
    REVOKED: gettext_lazy("Revoked"),
    DECLINED: gettext_lazy("Declined"),
    SENDER_GONE: gettext_lazy("Its sender may no longer invite"),
    ARCHIVED: gettext_lazy("The project is archived"),
}
_REFUSALS = {
    ACCEPTED: gettext_lazy("You have accepted this invitation already."),
    USED_UP: gettext_lazy("This invitation has been used up. Ask whoever sent it for a new one."),
    EXPIRED: gettext_lazy("This invitation has expired. Ask whoever sent it for a new one."),
    REVOKED: gettext_lazy("This invitation has been taken back. Ask whoever sent it for a new one."),
    DECLINED: gettext_lazy("You have declined this invitation. Ask whoever sent it for a new one."),
    SENDER_GONE: gettext_lazy(
        "Whoever sent this invitation may no longer invite people to this project. Ask another owner for "
        "a new one."
    ),
    ARCHIVED: gettext_lazy("This project is archived, and nobody joins it any more."),
}
CODES = {
    ACCEPTED: "invitation_accepted",
    USED_UP: "invitation_used_up",
    EXPIRED: "invitation_expired",
    REVOKED: "invitation_revoked",
    DECLINED: "invitation_declined",
    SENDER_GONE: "invitation_sender_gone",
    ARCHIVED: "archived_meanwhile",
}
# By name, and nobody has said anything yet.
UNANSWERED = Q(user__isnull=False, uses=0, revoked_at__isnull=True, declined_at__isnull=True)


MOST_TO_ONE = 5
"""Letters that invite one address, as long as letters are kept (a month)."""
MOST_LETTERS = 100
"""Letters of one person in a day."""


def create_invitation(
    *, project: Project, actor: User, role: str, max_uses: int, days: int, note: str = "", email: str = ""
) -> tuple[Invitation, str]:
    """A link for `max_uses` people that holds for `days` days. Returns the token, which is stored nowhere
    but, encrypted, in the letter to `email`, if one is given, until that has been sent.

    Only owners get here (`members.edit`); so nobody hands out a role that they could not give otherwise.
    Raises InputError whose `where` names the field.
    """
    check_role(role)
    if not 1 <= max_uses <= MAX_USES:
        raise InputError(
            _("An invitation is for 1 to %(most)s people.") % {"most": MAX_USES}, where="max_uses"
        )
    if not 1 <= days <= MAX_DAYS:
        raise InputError(_("An invitation holds for 1 to %(most)s days.") % {"most": MAX_DAYS}, where="days")
    if len(note) > 200:
        raise InputError(_("A note has at most 200 characters."), where="note")
    note = checked_line(note, where="note")
    if email and not mail.is_on():
        raise InputError(_("This server sends no mail. Pass the link on yourself."), where="email")
    if email and max_uses != 1:
        raise InputError(_("A link that is sent to one person is for one person."), where="max_uses")
    if email:
        _refuse_too_many(actor, email)
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        invitation = Invitation.objects.create(
            project=project,
            role=role,
            token_hash=digest(token),
            note=note,
            max_uses=max_uses,
            expires_at=timezone.now() + timedelta(days=days),
            created_by=actor,
        )
        audit.record(
            project=project,
            actor=actor,
            action="invitation.made",
            target=f"invitation:{invitation.pk}",
            data={"role": role, "max_uses": max_uses, "days": days} | ({"mailed": True} if email else {}),
        )
        if email:
            said = {"invitation": invitation.pk, "name": project.name, "who": actor.username, "role": role}
            mail.store_mail(kind=mail.INVITATION, to=email, data=said, secret=encrypt(token))
    return invitation, token


def _refuse_too_many(actor: User, email: str) -> None:
    """The server writes to strangers in its own name: not as often as somebody likes."""
    sent = Mail.objects.filter(kind=mail.INVITATION)
    of_today = sent.filter(created_at__gte=timezone.now() - timedelta(days=1), data__who=actor.username)
    if sent.filter(to__iexact=email).count() >= MOST_TO_ONE or of_today.count() >= MOST_LETTERS:
        raise InputError(
            _(
                "This server has sent enough invitations to this address, or from you today. Pass the link "
                "on yourself."
            ),
            where="email",
        )


def revoke_invitation(*, invitation: Invitation, actor: User) -> None:
    """Take a link back; who has joined with it stays. Twice has one effect."""
    with transaction.atomic():
        if Invitation.objects.filter(pk=invitation.pk, revoked_at__isnull=True).update(
            revoked_at=timezone.now()
        ):
            audit.record(
                project=invitation.project,
                actor=actor,
                action="invitation.revoked",
                target=f"invitation:{invitation.pk}",
            )


def find_invitation(token: str) -> Invitation | None:
    """The invitation of a link, in whatever state."""
    # Compared by the database as a digest: the time that takes says nothing about the token.
    return of_projects().filter(token_hash=digest(token)).first()


def of_projects() -> QuerySet[Invitation]:
    """Invitations, without those of deleted projects."""
    there = Invitation.objects.filter(project__deleting_at__isnull=True)
    return there.select_related("project", "created_by")


def state_of(invitation: Invitation) -> str:
    """Whether somebody can join with it now: OPEN, or what stands against it."""
    if invitation.user_id is not None and invitation.uses:
        return ACCEPTED  # whatever came afterwards
    if invitation.revoked_at is not None:
        return REVOKED
    if invitation.declined_at is not None:
        return DECLINED
    if invitation.uses >= invitation.max_uses:
        return USED_UP
    if invitation.expires_at <= timezone.now():
        return EXPIRED
    if invitation.project.archived_at is not None:
        return ARCHIVED
    # An owner who was sent away does not come back through a link that they made before.
    may_invite = Membership.objects.filter(
        project=invitation.project_id,
        user=invitation.created_by_id,
        user__is_active=True,
        is_active=True,
        role__in=ROLES_BY_ACTION["members.edit"],
    )
    return OPEN if may_invite.exists() else SENDER_GONE


def refusal(invitation: Invitation) -> Refusal:
    """Why nobody can join with it, in words; "" where somebody can."""
    return _refusal_of(state_of(invitation))


def _refusal_of(state: str) -> Refusal:
    return Refusal(str(_REFUSALS.get(state, "")), CODES.get(state, ""))


def accept(*, invitation: Invitation, user: User) -> Membership:
    """Join with an account. Raises ConflictError where the invitation does not hold, and for a member;
    NotAllowedError where it is addressed to somebody else, or where somebody else may know the password.
    """
    if invitation.user_id not in (None, user.pk):
        raise NotAllowedError(_("This invitation is addressed to somebody else."))
    with transaction.atomic():
        # Whoever sets this account's password at the same moment does so before or after it.
        user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if reason := objection(invitation, user):
            raise ConflictError(reason, code=reason.code)
        require_own(user=user, project=invitation.project, invited_at=invitation.created_at)
        _use(invitation)
        try:
            membership = _join(invitation, user)
        except InputError as error:
            raise ConflictError(error.message, code="member_already") from None
        _record(invitation, user)
    return membership


def invitations_to(user: User) -> QuerySet[Invitation]:
    """Those that the person can accept now, the newest first."""
    may_invite = Membership.objects.filter(
        project=OuterRef("project"),
        user=OuterRef("created_by"),
        user__is_active=True,
        is_active=True,
        role__in=ROLES_BY_ACTION["members.edit"],
    )
    open_ones = of_projects().filter(
        UNANSWERED,
        Exists(may_invite),
        user=user,
        expires_at__gt=timezone.now(),
        project__archived_at__isnull=True,
    )
    member = Membership.objects.filter(project=OuterRef("project"), user=user)
    listed = open_ones.exclude(Exists(member)).defer(*(f"project__{name}" for name in LONG_COLUMNS))
    return listed.order_by("-id")


def asked_by_name(project_id: int) -> set[str]:
    """Usernames, in small letters, of those who were invited by name and can still accept."""
    waiting = Invitation.objects.filter(UNANSWERED, project=project_id, expires_at__gt=timezone.now())
    return {name.lower() for name in waiting.values_list("user__username", flat=True)}


def decline(*, invitation: Invitation, user: User) -> None:
    """Say no; whoever invites is told so. Twice has one effect. Raises ConflictError where it is over."""
    with transaction.atomic():
        waiting = Invitation.objects.filter(UNANSWERED, pk=invitation.pk, user=user)
        if waiting.update(declined_at=timezone.now()):
            audit.record(
                project=invitation.project,
                actor=user,
                action="invitation.declined",
                target=f"invitation:{invitation.pk}",
                data={"role": invitation.role, "user": user.pk},
            )
            return
    invitation.refresh_from_db()
    if invitation.declined_at is None:
        reason = objection(invitation, user)
        raise ConflictError(reason, code=reason.code)


def accept_with_new_account(
    *, invitation: Invitation, username: str, password: str, email: str = ""
) -> Membership:
    """Make an account and join by a link, both or nothing. Raises InputError whose `where` names the field,
    and ConflictError where the invitation does not hold.
    """
    if reason := refusal(invitation):
        raise ConflictError(reason, code=reason.code)
    user = checked_user(username=username, email=email, password=password)
    with transaction.atomic():
        _use(invitation)
        save_new(user)
        membership = _join(invitation, user)
        _record(invitation, user)
        mail.ask_to_confirm(user)
    return membership


def digest(token: str) -> str:
    """What is stored of a token. It has 256 random bits, so that a plain SHA-256 cannot be guessed back."""
    return hashlib.sha256(token.encode()).hexdigest()


def _join(invitation: Invitation, user: User) -> Membership:
    return join(
        project=invitation.project,
        actor=user,
        user=user,
        role=invitation.role,
        max_labels=invitation.max_labels,
        max_per_day=invitation.max_per_day,
    )


def objection(invitation: Invitation, user: User) -> Refusal:
    """Why `user` cannot join with it, in words; "" where they can. A member is told that first: by their own
    answer, in another window perhaps, it is used up.
    """
    mine = Membership.objects.filter(project=invitation.project_id, user=user).first()
    if mine is not None and mine.is_active:
        return Refusal(_("You take part in this project already."), "member_already")
    if mine is not None:
        words = _(
            "You have taken part in this project already, and an owner has switched that off. Only an owner "
            "can switch it on again."
        )
        return Refusal(words, "member_switched_off")
    if reason := refusal(invitation):
        return reason
    removed = AuditEvent.objects.filter(
        project=invitation.project,
        action="member.removed",
        data__user=user.pk,
        created_at__gte=invitation.created_at,
    )
    if removed.exists():
        words = _(
            "You were removed from this project after this invitation was made. Ask an owner to add you."
        )
        return Refusal(words, "removed_after_invitation")
    return Refusal()


def _use(invitation: Invitation) -> None:
    """Count one use, unless there is none left by now: of two people at the last place, one is told so."""
    used = Invitation.objects.filter(
        pk=invitation.pk,
        uses__lt=F("max_uses"),
        revoked_at__isnull=True,
        declined_at__isnull=True,
        expires_at__gt=timezone.now(),
    ).update(uses=F("uses") + 1)
    if not used:
        invitation.refresh_from_db()
        reason = refusal(invitation) or _refusal_of(USED_UP)
        raise ConflictError(reason, code=reason.code)


def _record(invitation: Invitation, user: User) -> None:
    audit.record(
        project=invitation.project,
        actor=user,
        action="invitation.used",
        target=f"invitation:{invitation.pk}",
        data={"role": invitation.role, "user": user.pk},
    )
