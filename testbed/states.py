"""States of the database that many tests reach by the same steps: reached once, then put back as rows.

A way begins where none of our tables holds a row, and ends for good when anything but its own steps writes:
what a test finds is what the steps would leave behind, or they are taken. Where a test may have changed what
steps do, none is put back (tests/conftest.py).
"""
# ruff: noqa: S608 - the names of tables and columns are our own

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, Final

from django.apps import apps
from django.conf import Settings, settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management.color import no_style
from django.db import connection, models

from annotation.models import StoredFile

Row = tuple[Any, ...]
Rows = Mapping[str, Mapping[Any, Row]]
"""Of each table its rows by their keys, as the database has them."""

KEPT: Final = 60
"""States that one process keeps, some megabytes each at most. Tests that share one are neighbours."""
FILLED: Final = {"auth", "contenttypes", "sites"}
"""Apps whose tables an installation without people holds rows in."""

draw_for: Callable[[str], None] | None = None
"""Has what is drawn from now on depend on a text alone. Set while states may be put back."""
test = ""
"""Names the test that goes now."""
_states: OrderedDict[str, _State] = OrderedDict()


@dataclass(frozen=True)
class _State:
    """Where a step led, and what it did to the tables on the way there."""

    before: str
    rows: Rows
    changes: Sequence[tuple[str, Sequence[Row]]]
    models: Sequence[type[models.Model]]
    """Those that rows were added of."""
    files: Mapping[str, bytes]
    result: Any


@dataclass
class Way:
    """Steps from an empty database, as long as nothing else has written to it."""

    to: str = ""
    """Names the state that they have led to."""
    written: int = field(default_factory=lambda: _written())

    def go(self, step: str, argument: object, take: Callable[[], Any]) -> tuple[Any, bool]:
        """What `take` gives, which has to be keys of rows, and whether it was put back instead of taken."""
        if draw_for is None or not _can_go() or self.written != _written():
            return take(), False
        try:
            to = hashlib.sha256(f"{self.to} {step} {_told(argument)}".encode()).hexdigest()
        except (CannotTellError, RecursionError):
            return take(), False
        state = _states.get(to)
        if state is None:
            draw_for(to)
            before = _states[self.to].rows if self.to else {}
            _states[to] = _state_after(self.to, before, take())
        else:
            _put_back(state)
        draw_for(f"{test} after {to}")  # as if it had not been put back, and otherwise than in other tests
        self.to, self.written = to, _written()
        self._keep()
        return _states[to].result, state is not None

    def _keep(self) -> None:
        """Nothing goes before what was reached from it: the same steps might come to other keys and times."""
        to = self.to
        while to:
            _states.move_to_end(to)
            to = _states[to].before
        if len(_states) > KEPT:
            _states.popitem(last=False)


def begin() -> Way | None:
    """A way, where one can begin: nothing is stored, and what will be is undone with the test."""
    return Way() if draw_for and _can_go() and _is_empty() else None


class CannotTellError(Exception):
    """Whether two arguments of a step are the same."""


def _told(value: object) -> str:
    """The same for the same argument, in another test, too."""
    match value:
        case models.Model():
            return f"{value._meta.label} {value.pk}"
        case Mapping():
            return repr(sorted((repr(key), _told(entry)) for key, entry in value.items()))
        case None | str() | int() | float() | Decimal() | date() | Enum():
            return repr(value)
        case list() | tuple():
            return repr([_told(entry) for entry in value])
    raise CannotTellError


def _can_go() -> bool:
    return connection.in_atomic_block and isinstance(settings._wrapped, Settings)


def _written() -> int:
    """Rows that this connection has written so far."""
    if connection.vendor == "sqlite":
        return int(connection.connection.total_changes)
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_xact_user_tables")
        return int(cursor.fetchone()[0] or 0)


@dataclass(frozen=True)
class _Table:
    model: type[models.Model]
    name: str
    columns: tuple[str, ...]
    key: int
    """Place of its key among the columns."""

    @property
    def select(self) -> str:
        # SQLite's columns are read as they are stored, not as what their declarations say they mean.
        sign = "+" if connection.vendor == "sqlite" else ""
        return f"SELECT {', '.join(sign + _quoted(one) for one in self.columns)} FROM {_quoted(self.name)}"

    @property
    def insert(self) -> str:
        columns, places = ", ".join(map(_quoted, self.columns)), ", ".join(["%s"] * len(self.columns))
        return f"INSERT INTO {_quoted(self.name)} ({columns}) VALUES ({places})"

    @property
    def delete(self) -> str:
        return f"DELETE FROM {_quoted(self.name)} WHERE {_quoted(self.columns[self.key])} = %s"

    def update(self, old: Row, new: Row) -> tuple[str, list[Row]]:
        """Of what differs alone: a column that is a fact may not even be named."""
        places = [place for place, value in enumerate(new) if value != old[place]]
        named = ", ".join(f"{_quoted(self.columns[place])} = %s" for place in places)
        sql = f"UPDATE {_quoted(self.name)} SET {named} WHERE {_quoted(self.columns[self.key])} = %s"
        return sql, [(*(new[place] for place in places), new[self.key])]


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)


@cache
def _tables() -> list[_Table]:
    found = []
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and model._meta.app_label not in FILLED:
            columns = tuple(one.column for one in model._meta.concrete_fields)
            found.append(_Table(model, model._meta.db_table, columns, columns.index(model._meta.pk.column)))
    return found


def _is_empty() -> bool:
    any_row = " OR ".join(f"EXISTS (SELECT 1 FROM {_quoted(table.name)})" for table in _tables())
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {any_row}")
        return not cursor.fetchone()[0]


def _all_rows() -> Rows:
    rows = {}
    with connection.cursor() as cursor:
        for table in _tables():
            cursor.execute(table.select)
            rows[table.name] = {row[table.key]: tuple(row) for row in cursor.fetchall()}
    return rows


def _state_after(named: str, before: Rows, result: Any) -> _State:
    rows, inserts, others = {}, list[tuple[str, list[Row]]](), list[tuple[str, list[Row]]]()
    now, grown = _all_rows(), []
    for table in _tables():
        old, new = before.get(table.name, {}), now[table.name]
        rows[table.name] = {key: old[key] if row == old.get(key) else row for key, row in new.items()}
        if added := [row for key, row in new.items() if key not in old]:
            inserts.append((table.insert, added))
            grown.append(table.model)
        others += [table.update(old[key], row) for key, row in new.items() if key in old and row != old[key]]
        if gone := [(key,) for key in old if key not in new]:
            others.append((table.delete, gone))
    files = {}
    for stored in StoredFile.objects.all():
        with default_storage.open(stored.storage_name, "rb") as content:
            files[stored.storage_name] = content.read()
    return _State(named, rows, inserts + others, grown, files, result)


def _put_back(state: _State) -> None:
    with connection.cursor() as cursor:
        for sql, rows in state.changes:
            cursor.executemany(sql, rows)
        # A flush has numbers begin again: they would come to those that are put back.
        for sql in connection.ops.sequence_reset_sql(no_style(), state.models):
            cursor.execute(sql)
    for name, content in state.files.items():
        if not default_storage.exists(name):
            default_storage.save(name, ContentFile(content))
