"""Old numbers of rows and new ones, eight bytes each; and who the people of a project file are here."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.contrib.auth.hashers import make_password
from django.db import connection, transaction

from annotation.errors import InputError
from annotation.models import User
from annotation.models.usernames import is_typed
from annotation.people.erase import number_of
from hypac_site.portable.ids import NOWHERE, Ids
from hypac_site.portable.tables import Model

LONGEST_NAME = 150
AT_ONCE = 100_000


class AsItIs:
    """`Ids` that leave all as it is."""

    def new(self, model: Model, old: int) -> int:
        return old

    def near(self, model: Model, old: int, *, up: bool) -> int:
        return old

    def person(self, name: str) -> str:
        return name

    def slug(self, slug: str) -> str:
        return slug


AS_IT_IS: Ids = AsItIs()


@dataclass(frozen=True)
class Person:
    """Somebody as the file names them."""

    number: int
    name: str
    erased_at: datetime | None


@dataclass
class People:
    """`found`: accounts that are somebody of the file, by the name there; `made`: those that stand for the
    others.
    """

    found: dict[str, User] = field(default_factory=dict)
    made: dict[str, User] = field(default_factory=dict)
    _numbers: dict[int, str] = field(default_factory=dict)

    def number(self, name: str) -> int:
        return (self.found.get(name) or self.made[name]).pk

    def name(self, name: str) -> str:
        user = self.found.get(name) or self.made.get(name)
        return name if user is None else user.username

    def new(self, old: int) -> int:
        return self.number(self._numbers[old]) if old in self._numbers else NOWHERE

    def noted(self, people: Iterable[Person]) -> "People":
        self._numbers = {person.number: person.name for person in people}
        return self


class Maps:
    """`Ids` of an import, and which rows there are in the file."""

    def __init__(self) -> None:
        self.people = People()
        self.slugs = ("", "")
        self._old: dict[Model, array[int]] = {}
        self._new: dict[Model, array[int]] = {}

    def add(self, model: Model, old: int) -> None:
        """Note a row. Raises ValueError unless each has a larger number than the one before."""
        rows = self._old.setdefault(model, array("q"))
        if old <= (rows[-1] if rows else 0):
            raise ValueError
        rows.append(old)

    def has(self, model: Model, old: int) -> bool:
        return self._place(model, old) is not None

    def reserve(self, models: Iterable[Model]) -> None:
        """Take new numbers for all rows that were noted; nobody else gets them, whatever comes."""
        for model in models:
            self._new[model] = reserved(model, len(self._old.get(model, ())))

    def new(self, model: Model, old: int) -> int:
        if model is User:
            return self.people.new(old)
        place = self._place(model, old)
        return NOWHERE if place is None else self._new[model][place]

    def all_new(self, model: Model) -> Sequence[int]:
        """The new numbers of all rows of a table."""
        return self._new[model]

    def near(self, model: Model, old: int, *, up: bool) -> int:
        rows = self._old.get(model, array("q"))
        place = bisect_left(rows, old) if up else bisect_left(rows, old + 1) - 1
        return self._new[model][place] if 0 <= place < len(rows) else NOWHERE

    def person(self, name: str) -> str:
        return self.people.name(name)

    def slug(self, slug: str) -> str:
        old, new = self.slugs
        return new if slug == old else slug

    def _place(self, model: Model, old: int) -> int | None:
        rows = self._old.get(model)
        if rows is None:
            return None
        place = bisect_left(rows, old)
        return place if place < len(rows) and rows[place] == old else None


def reserved(model: Model, count: int) -> "array[int]":
    """So many numbers for rows of a table, rising, which nobody else gets."""
    numbers: array[int] = array("q")
    table, column = model._meta.db_table, model._meta.pk.column
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            statement = "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)"
            while left := min(count - len(numbers), AT_ONCE):
                cursor.execute(statement, [connection.ops.quote_name(table), column, left])
                numbers.extend(number for (number,) in cursor.fetchall())
            return numbers
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        known = cursor.fetchone()
        if known is None:
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, 0)", [table])
        last = 0 if known is None else known[0]
        cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last + count, table])
    numbers.extend(range(last + 1, last + count + 1))
    return numbers


def resolved(people: Sequence[Person], *, match: bool, same: Mapping[str, str], slug: str) -> People:
    """Who is who. Without `match` nobody is taken to be an account that is here already: the same name may be
    another person's. `same` says of names in the file whose they are here. The others get accounts with which
    nobody can log in, made by `store`; their names have a blank, which no name that is typed has.

    Raises InputError where `same` names nobody, or two are one.
    """
    found: dict[str, User] = {}
    known = {person.name for person in people if person.erased_at is None}
    for theirs, here in same.items():
        if theirs not in known:
            raise InputError(f"The file names nobody {theirs!r}.", where="--person")
        found[theirs] = active_account(here, where="--person")
    if match:
        typed = [name for name in known - found.keys() if is_typed(name)]
        for start in range(0, len(typed), 500):
            users = User.objects.filter(username__in=typed[start : start + 500], is_active=True)
            found |= {user.username: user for user in users}
    if len({user.pk for user in found.values()}) < len(found):
        raise InputError("Two people of the file would be one account here.", where="--person")
    result = People(found).noted(people)
    others = [person for person in people if person.name not in found]
    numbers = reserved(User, len(others))
    taken: set[str] = set()
    for person, number in zip(others, numbers, strict=True):
        user = User(
            pk=number, is_active=False, password=make_password(None), erased_at=person.erased_at,
            mail_notices=False, mail_work=False, password_chosen_at=None,
        )  # fmt: skip
        user.username = number_of(user) if person.erased_at else _free_name(person.name, slug, taken)
        taken.add(user.username)
        result.made[person.name] = user
    return result


def store(people: People) -> None:
    """Add the accounts that were made. Call it in the transaction of the import."""
    User.objects.bulk_create(people.made.values(), batch_size=500)


def active_account(name: str, *, where: str) -> User:
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise InputError(f"There is no active account {name!r}.", where=where)
    return user


def _free_name(name: str, slug: str, taken: set[str]) -> str:
    number = 1
    while True:
        end = f" ({slug})" if number == 1 else f" ({slug} {number})"
        found = f"{name[: LONGEST_NAME - len(end)]}{end}"
        if found not in taken and not User.objects.filter(username=found).exists():
            return found
        number += 1
