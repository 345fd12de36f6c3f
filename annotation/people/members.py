"""Who belongs to a project, and as what."""

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from annotation.common import audit, limits
from annotation.common.locks import locked_project
from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.models import ApiToken, Membership, Project, User
from annotation.people.log_in import has_passwords
from annotation.people.own_passwords import note_belonging, require_chosen
from annotation.permissions import ROLES_BY_ACTION

LARGEST_LIMIT = 1_000_000_000


def add_member(*, project: Project, actor: User, username: str, role: str) -> Membership:
    """Let somebody who has an account take part without being asked: for whoever runs the server alone, in
    the administration and by commands. Owners invite (`annotation.people.invite_by_name`).

    Raises InputError whose `where` names the field, and NotAllowedError where whoever made the account may
    still know its password.
    """
    check_role(role)
    user = account_named(username)
    require_chosen(user=user, project=project)
    return join(project=project, actor=actor, user=user, role=role)


def create_account(
    *, project: Project, actor: User, username: str, role: str, email: str = "", password: str = ""
) -> tuple[Membership, str]:
    """Make an account that takes part in the project. Raises what `new_account` raises.

    Returns the membership and the password: where none is given a random one, which is stored nowhere and
    cannot be shown again. The account counts as its maker's until its holder chooses another one.
    """
    check_role(role)
    password = password or secrets.token_urlsafe(12)
    user = checked_user(username=username, email=email, password=password)
    with transaction.atomic():
        _save_account(user, project=project, actor=actor)
        membership = join(project=project, actor=actor, user=user, role=role)
    return membership, password


def new_account(
    *, project: Project | None, actor: User | None, username: str, email: str = "", password: str = ""
) -> tuple[User, str]:
    """Make an account, and tell its password. It takes part in nothing yet; `project` is where it was made,
    whose owners may set its password as long as its holder has chosen none.

    Raises InputError whose `where` names the field: also for a password that is given and too weak.
    """
    password = password or secrets.token_urlsafe(12)
    user = checked_user(username=username, email=email, password=password)
    with transaction.atomic():
        _save_account(user, project=project, actor=actor)
    return user, password


def change_role(*, project: Project, actor: User | None, user: User, role: str) -> Membership:
    """Give a member another role. What they hold goes back to the queue where they may not label any more.

    Raises ConflictError for the last owner.
    """
    check_role(role)
    with transaction.atomic():
        membership = _locked_membership(project, user)
        before = membership.role
        if before == role:
            return membership
        if before == Membership.Role.OWNER:
            _refuse_last_owner(project, user)
        membership.role = role
        membership.save(update_fields=["role"])
        if role not in ROLES_BY_ACTION["label"]:
            queue.release_all(project=project, user=user)
        audit.record(
            project=project,
            actor=actor,
            action="member.role_changed",
            target=audit_name(user),
            data={"from": before, "to": role, "user": user.pk},
        )
    return membership


def remove_member(*, project: Project, actor: User, user: User) -> None:
    """End a membership. Items the person holds go back to the queue; labels stay, under their name.

    Raises ConflictError for the last owner.
    """
    with transaction.atomic():
        membership = _locked_membership(project, user)
        if membership.role == Membership.Role.OWNER:
            _refuse_last_owner(project, user)
        membership.delete()
        ApiToken.objects.filter(user=user, project=project).delete()  # they opened nothing else
        queue.release_all(project=project, user=user)
        audit.record(
            project=project,
            actor=actor,
            action="member.removed",
            target=audit_name(user),
            data={"role": membership.role, "user": user.pk},
        )


def set_active(*, project: Project, actor: User | None, user: User, active: bool) -> Membership:
    """Let a member do nothing here for a while, or let them go on. Items they hold go back to the queue;
    labels, role and limits stay, and so does what stands against their labelling blind.

    Raises ConflictError for the last owner.
    """
    with transaction.atomic():
        membership = _locked_membership(project, user)
        if membership.is_active == active:
            return membership
        if not active and membership.role == Membership.Role.OWNER:
            _refuse_last_owner(project, user)
        membership.is_active = active
        membership.save(update_fields=["is_active"])
        if not active:
            queue.release_all(project=project, user=user)
        audit.record(
            project=project,
            actor=actor,
            action="member.activated" if active else "member.deactivated",
            target=audit_name(user),
            data={"role": membership.role, "user": user.pk},
        )
    return membership


def set_limits(
    *, project: Project, actor: User, user: User, max_labels: int | None, max_per_day: int | None
) -> Membership:
    """Say how many items a member may label, in all and in a day; None: no limit. The queue asks for it.

    Raises InputError whose `where` names the field.
    """
    limits = {"max_labels": max_labels, "max_per_day": max_per_day}
    for name, limit in limits.items():
        if limit is not None and not 0 <= limit <= LARGEST_LIMIT:
            raise InputError(
                _("A limit is a whole number from 0 to %(most)s, or nothing.")
                % {"most": f"{LARGEST_LIMIT:,}"},
                where=name,
            )
    with transaction.atomic():
        membership = _locked_membership(project, user)
        before = {name: getattr(membership, name) for name in limits}
        if before == limits:
            return membership
        membership.max_labels, membership.max_per_day = max_labels, max_per_day
        membership.save(update_fields=list(limits))
        audit.record(
            project=project,
            actor=actor,
            action="member.limits_changed",
            target=audit_name(user),
            data={name: [before[name], limits[name]] for name in limits if before[name] != limits[name]},
        )
    return membership


def change_member(*, project: Project, actor: User, user: User, **changes: Any) -> Membership:
    """Change what is given of role, active, max_labels and max_per_day: all of it or nothing. Raises what
    `change_role`, `set_active` and `set_limits` raise.
    """
    with transaction.atomic():
        membership = _locked_membership(project, user)
        who: dict[str, Any] = {"project": project, "actor": actor, "user": user}
        if "role" in changes:
            membership = change_role(**who, role=changes["role"])
        if "active" in changes:
            membership = set_active(**who, active=changes["active"])
        limits = {"max_labels": membership.max_labels, "max_per_day": membership.max_per_day}
        wanted = limits | {name: changes[name] for name in limits if name in changes}
        if wanted != limits:
            membership = set_limits(**who, **wanted)
    return membership


# --- What the other services about people build on ----------------------------------------------------------


def account_named(username: str) -> User:
    """Somebody who can log in. Raises InputError."""
    name = User.normalize_username(username.strip())  # as it is stored
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise InputError(
            _(
                "There is no account %(name)r. Correct the name, or create an account: on the page People, "
                "or on the server with manage.py person."
            )
            % {"name": name},
            where="username",
        )
    return user


def is_member_already(user: User) -> InputError:
    return InputError(_("%(name)s is a member already.") % {"name": user.username}, where="username")


def audit_name(user: User) -> str:
    """How the audit trail names a person. Names can change: what is to be found again is in `data`, by id."""
    return f"user:{user.username}"[:120]


def checked_user(*, username: str, email: str, password: str) -> User:
    """An account that is not stored yet. Raises InputError whose `where` names the field: also for a password
    that somebody could guess.

    Call it outside of a transaction: it hashes the password, which takes long, once all else is found good.
    """
    if not has_passwords():
        raise InputError(
            _(
                "People log in by %(provider)s here: there, an account is made at the first log-in. Send an "
                "invitation."
            )
            % {"provider": settings.HYPAC_OIDC_NAME},
            where="username",
        )
    user = User(username=username.strip(), email=email.strip())
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InputError(" ".join(messages), where=field) from None
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InputError(" ".join(error.messages), where="password") from None
    user.set_password(password)
    return user


def save_new(user: User) -> None:
    """Raises InputError where somebody took the name at the same moment."""
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError:
        raise InputError(_("A user with that username already exists."), where="username") from None


def join(
    *,
    project: Project,
    actor: User | None,
    user: User,
    role: str,
    max_labels: int | None = None,
    max_per_day: int | None = None,
) -> Membership:
    """Raises InputError where the person is a member, active or not; ConflictError where the project was
    deleted.
    """
    try:
        with transaction.atomic():
            # The person first, then the project, as whoever accepts an invitation: `note_belonging` writes.
            list(User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk"))
            # Before the project is deleted or after it, never beside it: what is deleted has no members.
            locked_project(project.pk)
            limits.refuse_more(
                Membership.objects.filter(project=project),
                limits.MEMBERS,
                _("A project has at most %(most)s members. Remove one who has left."),
                code="too_many_members",
            )
            membership = Membership.objects.create(
                project=project, user=user, role=role, max_labels=max_labels, max_per_day=max_per_day
            )
            note_belonging(user=user, project=project)
            audit.record(
                project=project,
                actor=actor,
                action="member.added",
                target=audit_name(user),
                data={"role": role, "user": user.pk},
            )
    except IntegrityError:
        raise is_member_already(user) from None
    return membership


def check_role(role: str) -> None:
    if role not in Membership.Role.values:
        raise InputError(
            _("There is no role %(role)r; choose one of %(roles)s.")
            % {"role": role, "roles": ", ".join(Membership.Role.values)},
            where="role",
        )


def _save_account(user: User, *, project: Project | None, actor: User | None) -> None:
    """Inside a transaction. Whoever makes an account may know its password."""
    user.password_chosen_at, user.made_in = None, project.pk if project else None
    save_new(user)
    audit.record(project=project, actor=actor, action="account.created", target=audit_name(user))


def _locked_membership(project: Project, user: User) -> Membership:
    # The project's row is the lock: of two owners who remove each other at once, one has to stay.
    locked_project(project.pk)
    membership = Membership.objects.filter(project=project, user=user).first()
    if membership is None:
        raise ConflictError(
            _("%(name)s is no member of this project any more.") % {"name": user.username}, code="no_member"
        )
    return membership


def _refuse_last_owner(project: Project, user: User) -> None:
    others = Membership.objects.filter(
        project=project, role=Membership.Role.OWNER, is_active=True, user__is_active=True
    ).exclude(user=user)
    if not others.exists():
        raise ConflictError(
            _("%(name)s is the only owner. Make somebody else an owner first.") % {"name": user.username},
            code="only_owner",
        )
