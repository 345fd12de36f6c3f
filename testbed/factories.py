"""Rows for tests, made through the services where there is one."""

import io
import itertools
from collections.abc import Sequence
from typing import Any

from django.utils import timezone
from PIL import Image

from annotation.common.files import store_file
from annotation.imports.rows import text_hash
from annotation.jobs import jobs
from annotation.models import Invitation, Item, Job, Membership, Project, User
from annotation.people.invite_by_name import invite_person
from annotation.people.members import create_account
from annotation.projects.manage import ChoiceSpec, create_project
from annotation.projects.removal import KIND

PASSWORD = "correct horse battery"
_numbers = itertools.count(1)


def make_user(username: str = "ann", *, password: str = PASSWORD, **fields: Any) -> User:
    return User.objects.create_user(username=username, password=password, **fields)


def make_project(
    user: User | None = None, choices: Sequence[str | ChoiceSpec] = ("cat", "dog"), **fields: Any
) -> Project:
    """A project whose owner is `user` (a new person where none is given)."""
    fields.setdefault("name", f"Project {next(_numbers)}")
    specs = [choice if isinstance(choice, ChoiceSpec) else ChoiceSpec(choice) for choice in choices]
    return create_project(user=user or make_user(f"owner{next(_numbers)}"), choices=specs, **fields)


def add_member(project: Project, role: str = "annotator", user: User | None = None) -> User:
    """A person with this role in the project (a new one where none is given)."""
    user = user or make_user(f"{role}{next(_numbers)}")
    Membership.objects.create(project=project, user=user, role=role)
    return user


def made_account(project: Project, username: str = "made", role: str = "annotator") -> tuple[User, str]:
    """An account that an owner made in the project, and its first password."""
    membership, password = create_account(
        project=project, actor=project.created_by, username=username, role=role
    )
    return membership.user, password


def invited_unchosen(project: Project, made: User, *, role: str) -> Invitation:
    """Invited by name before somebody else set the password, which its holder has not chosen anew yet."""
    stored = User.objects.filter(pk=made.pk)
    stored.update(password_chosen_at=timezone.now())
    invitation = invite_person(project=project, actor=project.created_by, username=made.username, role=role)
    stored.update(password_chosen_at=None)
    return invitation


def make_items(project: Project, texts: int | Sequence[str] = 3, **fields: Any) -> list[Item]:
    """Text items at the end of the project, named t0, t1, ... by their position."""
    start = _next_position(project)
    if isinstance(texts, int):
        texts = [f"text {start + index}" for index in range(texts)]
    return Item.objects.bulk_create(
        Item(
            project=project,
            external_id=f"t{start + index}",
            position=start + index,
            text=text,
            content_hash=text_hash(text),
            **{"data": {"text": text}, **fields},
        )
        for index, text in enumerate(texts)
    )


def make_image(number: int = 0, *, size: tuple[int, int] = (8, 8), format: str = "PNG") -> bytes:
    """The bytes of a small image; another number is another image."""
    image = Image.new("RGB", size, (number % 256, number // 256 % 256, (128 + number // 65536) % 256))
    buffer = io.BytesIO()
    image.save(buffer, format=format)
    return buffer.getvalue()


def make_image_items(project: Project, images: int | Sequence[bytes] = 3, **fields: Any) -> list[Item]:
    """Image items at the end of the project, named i0.png, i1.png, ... by their position."""
    start = _next_position(project)
    if isinstance(images, int):
        images = [make_image(start + index) for index in range(images)]
    items = []
    for position, content in enumerate(images, start):
        name = f"i{position}.png"
        stored = store_file(
            project=project, content=io.BytesIO(content), original_name=name, media_type="image/png"
        )
        items.append(
            Item(
                project=project,
                external_id=name,
                position=position,
                image=stored,
                content_hash=stored.sha256,
                **{"data": {"file_name": name}, **fields},
            )
        )
    return Item.objects.bulk_create(items)


def _next_position(project: Project) -> int:
    last = project.items.order_by("-position").values_list("position", flat=True).first()
    return 0 if last is None else last + 1


def remove_deleted(project: Project) -> None:
    """Do the job that removes a deleted project, as a worker would."""
    jobs.run(Job.objects.get(project=project, kind=KIND).pk)
    assert not Project.objects.filter(pk=project.pk).exists()
