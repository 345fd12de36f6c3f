"""A project file read through before anything is stored: every row, every reference, every hash."""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import models

from annotation.errors import InputError
from annotation.imports.bucket_sync import HowToImport
from annotation.imports.columns import IMPORT
from annotation.jobs.jobs import UNFINISHED
from annotation.jobs.kinds import KINDS
from annotation.models import Job, Membership, Project, StoredFile
from annotation.task_types import TASK_TYPES
from hypac_site.portable.archive import Archive, part_of
from hypac_site.portable.ids import rewritten
from hypac_site.portable.manifest import PEOPLE
from hypac_site.portable.maps import AS_IT_IS, LONGEST_NAME, Maps, Person
from hypac_site.portable.sentences import check_sentences
from hypac_site.portable.shapes import check_shapes
from hypac_site.portable.tables import (
    Model,
    Row,
    cleaned,
    fields_of,
    is_person,
    refers_to,
    travelling,
    ways_of,
)
from hypac_site.portable.values import Read, Wrong, reader_of
from routing.core.ledger import DRAW, FINAL_AUDIT, broken_links
from routing.core.losses import imported_paths
from routing.delivery.downloads import is_delivered_name
from routing.models import (
    Certificate,
    Commitment,
    Delivery,
    DeliveryFile,
    Draw,
    FinalAudit,
    FinalCertificate,
    LedgerEntry,
    Run,
    RunSource,
)

SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass
class Checked:
    """What the file holds. `given` are stored files that name items by number, `owners` whoever owns the
    project there.
    """

    maps: Maps
    people: list[Person] = field(default_factory=list)
    slug: str = ""
    given: set[int] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)


def check(archive: Archive) -> Checked:
    """Raises InputError, whose `where` names the place, for whatever no export would have written."""
    checked = Checked(Maps())
    checked.people = list(_people(archive))
    names = {person.name for person in checked.people}
    looks = _Looks(archive, checked)
    for model in travelling():
        table = Table(model, names)
        look = looks.of.get(model)
        for where, row in archive.rows(part_of(model)):
            try:
                table.note(row, checked.maps)
                read = checked_row(table, row, checked.maps)
                if look is not None:
                    look(read)
            except Wrong as wrong:
                raise InputError(f"The row cannot be used: {wrong}.", where=where) from None
    looks.end()
    for sha256 in archive.files:
        archive.check_file(sha256)
    return checked


def checked_row(table: "Table", row: Row, maps: Maps) -> Row:
    """As `Table.checked` has it. Raises Wrong also for what pages could not show."""
    read = table.checked(row, maps)
    rewritten(table.model, row, AS_IT_IS)
    check_shapes(table.model, read)
    check_sentences(table.model, read)
    return read


class Table:
    """Rows of one table, from the file's to the database's."""

    def __init__(self, model: Model, people: set[str]) -> None:
        self.model, self.people = model, people
        self.names = [one.name for one in fields_of(model)]
        self._known = set(self.names)
        self._ways = ways_of(model)
        self._plain: list[tuple[str, Read]] = []
        self._persons: list[tuple[str, bool]] = []
        self._references: list[tuple[str, bool, Model]] = []
        for one in fields_of(model):
            if one.primary_key:
                continue
            if is_person(one):
                self._persons.append((one.name, one.null))
            elif (other := refers_to(one)) is not None:
                self._references.append((one.name, one.null, other))
            else:
                self._plain.append((one.name, reader_of(one)))

    def note(self, row: Row, maps: Maps) -> None:
        """Note that the row is there. Raises Wrong."""
        if row.keys() != self._known:
            unknown = sorted(row.keys() - self._known)
            words = f"there is no column {unknown[0][:100]!r}" if unknown else "a column is missing"
            raise Wrong(words)
        try:
            maps.add(self.model, _key(row["id"]))
        except ValueError:
            raise Wrong("its number does not follow those before it") from None

    def checked(self, row: Row, maps: Maps) -> Row:
        """The row, which is noted, with values of the database, and references as they are in the file.
        Raises Wrong.
        """
        made = dict(row)
        for name, null in self._persons:
            if (row[name] is None and not null) or (row[name] is not None and not self._knows(row[name])):
                raise Wrong(f"{name} is nobody of {PEOPLE}")
        if self._ways and all(row[name] is None for name in self._ways):
            raise Wrong("it belongs to no project")
        for name, null, other in self._references:
            value = row[name]
            if value is None and null:
                continue
            if type(value) is not int or not maps.has(other, value):
                raise Wrong(f"{name} refers to a row that is not there")
        for name, read in self._plain:
            made[name] = _read(name, read, row[name])
        return cleaned(self.model, made)

    def rows(self, archive: Archive, maps: Maps) -> Iterator[Row]:
        """All rows with the values that they have in this database. For a file that was checked."""
        for _where, row in archive.rows(part_of(self.model)):
            made = dict(row)
            for name, read in self._plain:
                made[name] = read(row[name])
            made = cleaned(self.model, made)
            made = rewritten(self.model, made, maps)
            for name, _null in self._persons:
                made[name] = None if made[name] is None else maps.people.number(made[name])
            for name, _null, other in self._references:
                made[name] = None if made[name] is None else maps.new(other, made[name])
            made["id"] = maps.new(self.model, row["id"])
            yield made

    def _knows(self, name: Any) -> bool:
        return isinstance(name, str) and name in self.people


def _read(name: str, read: Read, value: Any) -> Any:
    try:
        return read(value)
    except Wrong as wrong:
        raise Wrong(f"{name}: {wrong}") from None


def _key(value: Any) -> int:
    if type(value) is not int or not 0 < value < 2**63:
        raise ValueError
    return value


def _people(archive: Archive) -> Iterator[Person]:
    read = reader_of(models.DateTimeField(null=True))
    names, numbers = set[str](), set[int]()
    for where, row in archive.rows(PEOPLE):
        try:
            if row.keys() != {"number", "name", "erased_at"}:
                raise Wrong("it is nobody")
            person = Person(_key(row["number"]), row["name"], read(row["erased_at"]))
        except ValueError as error:
            words = str(error) or "it has no number"
            raise InputError(f"The row cannot be used: {words}.", where=where) from None
        known = person.name in names or person.number in numbers
        if not isinstance(person.name, str) or not 0 < len(person.name) <= LONGEST_NAME or known:
            raise InputError("The row cannot be used: it has no name of its own.", where=where)
        if not person.name.isprintable():  # it is told in a terminal, and becomes a username here
            raise InputError("The row cannot be used: its name has control characters.", where=where)
        names.add(person.name)
        numbers.add(person.number)
        yield person


def _check_import(params: Row) -> None:
    """Pages offer what an import says of its columns for the next one."""
    try:
        if type(params["file"]) is not int:
            raise TypeError
        HowToImport.of(params)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise Wrong("params: it is an import that names no file, or no columns") from None


# --- What single tables are asked ---------------------------------------------------------------------------


class _Looks:
    def __init__(self, archive: Archive, checked: Checked) -> None:
        self.of: dict[Model, Callable[[Row], None]] = {
            Certificate: self._document,
            Commitment: self._commitment,
            Delivery: self._delivery,
            DeliveryFile: self._delivered,
            Draw: self._draw,
            FinalAudit: self._final_audit,
            FinalCertificate: self._document,
            Job: self._job,
            LedgerEntry: self._ledger,
            Membership: self._member,
            Project: self._project,
            Run: self._run,
            RunSource: self._run_source,
            StoredFile: self._file,
        }
        self._archive, self._checked = archive, checked
        self._ledger_entries: list[Any] = []
        self._run_numbers: dict[int, int] = {}
        self._positions: dict[int, set[int]] = {}
        self._committed: set[int] = set()
        # (run, kind) of what spent alpha, and of what the ledger has.
        self._spent: set[tuple[int, str]] = set()
        self._charged: set[tuple[int, str]] = set()
        self._named: set[str] = set()
        self._missing = set(archive.manifest.missing)

    def end(self) -> None:
        if not self._checked.slug:
            raise InputError("It has no project.", where=part_of(Project))
        if broken := next(iter(broken_links(self._ledger_entries)), None):
            raise InputError(
                f"What was certified does not hold together: {broken}.", where=part_of(LedgerEntry)
            )
        # Draws from before there were commitments may have none: the next draw writes it.
        owed = {one for one in self._spent if one[1] == FINAL_AUDIT or one[0] in self._committed}
        if missing := sorted(self._run_numbers[run] for run, _kind in owed - self._charged):
            raise InputError(
                f"The ledger lacks an entry: run {missing[0]} has drawn, and spent alpha.",
                where=part_of(LedgerEntry),
            )
        for run, positions in sorted(self._positions.items()):
            # Pages count along them.
            if max(positions) != len(positions):
                raise InputError(
                    f"The sources of run {self._run_numbers[run]} have gaps between their positions.",
                    where=part_of(RunSource),
                )
        if self._archive.files.keys() - self._named:
            raise InputError("It has stored files that no row names.", where=part_of(StoredFile))

    def _project(self, row: Row) -> None:
        if self._checked.slug:
            raise Wrong("it is a second project")
        if row["task_type"] not in TASK_TYPES:
            raise Wrong(f"this version knows no labels of the kind {row['task_type'][:40]!r}")
        self._checked.slug = row["slug"]
        self._loss(row)

    def _loss(self, row: Row) -> None:
        """A loss may name Python code, which would be run here: only what this server's settings allow."""
        params = row["loss_params"]
        paths = imported_paths(row["loss"], params if isinstance(params, dict) else {})
        if unknown := set(paths) - set(settings.HYPAC_LOSSES):
            raise Wrong(
                f"its loss is the code {sorted(unknown)[0][:200]!r}; where you trust it, install it here and "
                "name it in HYPAC_LOSSES first"
            )

    def _job(self, row: Row) -> None:
        """No export has one that a worker would take up by itself."""
        if row["kind"] not in KINDS:
            raise Wrong(f"this version knows no work of the kind {row['kind'][:40]!r}")
        if row["state"] in UNFINISHED:
            raise Wrong(f"its work has not ended, it is {row['state']}")
        if row["kind"] == IMPORT:
            _check_import(row["params"])

    def _member(self, row: Row) -> None:
        if row["role"] == Membership.Role.OWNER and row["is_active"]:
            self._checked.owners.add(row["user"])

    def _file(self, row: Row) -> None:
        sha256 = row["sha256"]
        if not SHA256.fullmatch(sha256):
            raise Wrong("its file has no SHA-256")
        size = self._archive.files.get(sha256)
        if size is None and sha256 not in self._missing:
            raise Wrong("its file is not there")
        if size is not None and size != row["size"]:
            raise Wrong("its file is of another size")
        self._named.add(sha256)

    def _delivery(self, row: Row) -> None:
        if row["given"] is not None:
            self._checked.given.add(row["given"])

    def _delivered(self, row: Row) -> None:
        """Under its name it is unpacked by whoever loads the delivery down."""
        if not is_delivered_name(row["name"]):
            raise Wrong("no file of a delivery has such a name")

    def _document(self, row: Row) -> None:
        # That of a commitment is its document without the end of the line.
        texts = (row["document"], row["document"].removesuffix("\n"))
        if row["sha256"] not in {hashlib.sha256(text.encode()).hexdigest() for text in texts}:
            raise Wrong("its document does not have the hash that stands beside it")

    def _run(self, row: Row) -> None:
        self._run_numbers[row["id"]] = row["number"]
        self._loss(row)

    def _run_source(self, row: Row) -> None:
        # From 1 and each once, as the database holds them.
        self._positions.setdefault(row["run"], set()).add(row["position"])

    def _commitment(self, row: Row) -> None:
        self._committed.add(row["run"])
        self._document(row)

    def _draw(self, row: Row) -> None:
        self._spent.add((row["run"], DRAW))

    def _final_audit(self, row: Row) -> None:
        self._spent.add((row["run"], FINAL_AUDIT))

    def _ledger(self, row: Row) -> None:
        document = row["document"]
        if not isinstance(document, dict):
            raise Wrong("document: it is no object")
        told = {"run": self._run_numbers[row["run"]]} | {
            name: row[name] for name in ("number", "kind", "sha256")
        }
        if any(document.get(name) != value for name, value in told.items()):
            raise Wrong("its document is another entry's")
        self._charged.add((row["run"], row["kind"]))
        self._ledger_entries.append(document)
