"""Who belongs to a project, and as what."""

import secrets

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from annotation import queue
from annotation.errors import ConflictError, InputError
from annotation.models import Membership, Project, User
from annotation.permissions import ROLES_BY_ACTION
from annotation.services import audit


def add_member(*, project: Project, actor: User, username: str, role: str) -> Membership:
    """Let somebody who has an account take part. Raises InputError whose `where` names the field."""
    _check_role(role)
    user = User.objects.filter(username=username.strip(), is_active=True).first()
    if user is None:
        raise InputError(
            f"There is no account {username.strip()!r}. Create one, or correct the name.", where="username"
        )
    return _join(project, actor, user, role)


def create_account(
    *, project: Project, actor: User, username: str, role: str, email: str = ""
) -> tuple[Membership, str]:
    """Make an account that takes part in the project.

    Returns the membership and the random password, which is stored nowhere and cannot be shown again.
    """
    _check_role(role)
    user = User(username=username.strip(), email=email.strip())
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    try:
        user.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InputError(" ".join(messages), where=field) from None
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            audit.record(
                project=project, actor=actor, action="account.created", target=f"user:{user.username}"[:120]
            )
            membership = _join(project, actor, user, role)
    except IntegrityError:
        raise InputError("A user with that username already exists.", where="username") from None
    return membership, password


def change_role(*, project: Project, actor: User, user: User, role: str) -> Membership:
    """Give a member another role. What they hold goes back to the queue where they may not label any more.

    Raises ConflictError for the last owner.
    """
    _check_role(role)
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
            target=f"user:{user.username}"[:120],
            data={"from": before, "to": role},
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
        queue.release_all(project=project, user=user)
        audit.record(
            project=project,
            actor=actor,
            action="member.removed",
            target=f"user:{user.username}"[:120],
            data={"role": membership.role},
        )


def _join(project: Project, actor: User, user: User, role: str) -> Membership:
    try:
        with transaction.atomic():
            membership = Membership.objects.create(project=project, user=user, role=role)
            audit.record(
                project=project,
                actor=actor,
                action="member.added",
                target=f"user:{user.username}"[:120],
                data={"role": role},
            )
    except IntegrityError:
        raise InputError(f"{user.username} is a member already.", where="username") from None
    return membership


def _check_role(role: str) -> None:
    if role not in Membership.Role.values:
        raise InputError(
            f"There is no role {role!r}; choose one of {', '.join(Membership.Role.values)}.", where="role"
        )


def _locked_membership(project: Project, user: User) -> Membership:
    # The project's row is the lock: of two owners who remove each other at once, one has to stay.
    Project.objects.select_for_update().get(pk=project.pk)
    membership = Membership.objects.filter(project=project, user=user).first()
    if membership is None:
        raise ConflictError(f"{user.username} is no member of this project any more.")
    return membership


def _refuse_last_owner(project: Project, user: User) -> None:
    others = Membership.objects.filter(
        project=project, role=Membership.Role.OWNER, user__is_active=True
    ).exclude(user=user)
    if not others.exists():
        raise ConflictError(f"{user.username} is the only owner. Make somebody else an owner first.")
