"""A project of many items with two recorded sources and people, for benchmarks/bulk_route.py.

Items are written with COPY on PostgreSQL, with executemany on SQLite: the import has a benchmark of its
own. What a model said, how sure it was and what is true come from one seed, whatever the size.
"""

import hashlib
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

LABELS = ("cat", "dog", "emu", "fox")
COLUMNS = ["text", "model_1", "confidence_1", "model_2", "confidence_2"]
FILLER = "It goes on for a while, as texts do that people are asked about. " * 2
# Items are made in groups of so many, each from a seed of its own, so that the truth needs no memory.
GROUP = 50_000


class World(NamedTuple):
    project: Any
    manager: Any
    annotator: Any


class Facts(NamedTuple):
    """Of one group: indices into LABELS, and uncertainties."""

    true: Any
    answers: tuple[Any, Any]
    u: tuple[Any, Any]


def facts(group: int) -> Facts:
    """The first source errs at u with 0.4 u, the second with 0.1 u; two digits make ties."""
    random = np.random.default_rng(group)
    u = np.round(random.random(GROUP) ** 2, 4)
    true = random.integers(0, len(LABELS), GROUP)
    answers = []
    for share in (0.4, 0.1):
        wrong = random.random(GROUP) < share * u
        answers.append(np.where(wrong, (true + 1) % len(LABELS), true))
    return Facts(true, (answers[0], answers[1]), (u, np.round(u / 4, 4)))


def make(size: int) -> World:
    from annotation.models import Membership, User
    from annotation.projects.manage import ChoiceSpec, create_project
    from routing.sources.manage import save_source

    manager = User.objects.create_user(username="manager", password="long enough for this", is_active=True)
    annotator = User.objects.create_user(username="annotator")
    project = create_project(
        user=manager,
        name="At size",
        choices=[ChoiceSpec(name) for name in LABELS],
        human_cost=Decimal("0.1"),
        currency="USD",
    )
    Membership.objects.create(project=project, user=annotator, role="annotator")
    project.columns = COLUMNS
    project.save(update_fields=["columns"])
    for number, cost in enumerate(("0.0001", "0.001"), start=1):
        save_source(
            project=project,
            user=manager,
            name=f"Model {number}",
            backend="recorded",
            params={"label_column": f"model_{number}", "confidence_column": f"confidence_{number}"},
            cost_per_label=Decimal(cost),
        )
    _store(project, size)
    return World(project, manager, annotator)


def truth(positions: list[int]) -> dict[int, str]:
    """The true label of the items at these positions."""
    found = {}
    groups: dict[int, Facts] = {}
    for position in positions:
        group = position // GROUP
        if group not in groups:
            groups = {group: facts(group)}
        found[position] = LABELS[groups[group].true[position % GROUP]]
    return found


def _rows(project: Any, size: int) -> Iterator[tuple[Any, ...]]:
    from django.utils import timezone

    now = timezone.now()
    for start in range(0, size, GROUP):
        group = facts(start // GROUP)
        lists = [values.tolist() for values in (*group.answers, *group.u)]
        for row, (one, two, u_one, u_two) in enumerate(zip(*lists, strict=True)):
            position = start + row
            if position >= size:
                return
            text = f"Item {position} has a text of some length. {FILLER}"
            data = {
                "text": text,
                "model_1": LABELS[one],
                "confidence_1": f"{1 - u_one:.4f}",
                "model_2": LABELS[two],
                "confidence_2": f"{1 - u_two:.4f}",
            }
            digest = hashlib.sha256(text.encode()).hexdigest()
            yield project.pk, f"t{position}", position, text, "[]", json.dumps(data), digest, now


def _store(project: Any, size: int) -> None:
    from django.db import connection, transaction

    columns = "project_id, external_id, position, text, fields, data, content_hash, created_at"
    rows = _rows(project, size)
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY annotation_item ({columns}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            places = ", ".join(["%s"] * 8)
            cursor.executemany(
                f"INSERT INTO annotation_item ({columns}) VALUES ({places})",  # noqa: S608
                rows,
            )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE annotation_item" if connection.vendor == "postgresql" else "ANALYZE")
