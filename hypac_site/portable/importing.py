"""A checked project file brought into this installation: all of it or nothing."""

import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import DatabaseError, IntegrityError, connection, transaction

from annotation.common import audit
from annotation.common.bulk import copy_rows
from annotation.common.files import Content, put_content
from annotation.errors import HypacError, InputError
from annotation.models import Item, Membership, Project, StoredFile, User
from annotation.people.members import audit_name, join
from annotation.people.own_passwords import note_belonging, require_chosen
from annotation.projects.guidelines import RENDERED, prepare_guidelines
from annotation.projects.manage import RESERVED_SLUGS
from annotation.projects.removal import remove_folder
from hypac_site.portable.archive import Archive, opened, part_of
from hypac_site.portable.checking import Checked, Table, check
from hypac_site.portable.ids import NOWHERE
from hypac_site.portable.manifest import Manifest
from hypac_site.portable.maps import Maps, People, active_account, resolved, store
from hypac_site.portable.slow_losses import MissingLossesError, SlowLosses
from hypac_site.portable.tables import Row, travelling
from hypac_site.portable.verifying import verified_certificates, verify_rest, verify_runs
from routing.delivery.parts import READ, RECORD
from routing.models import Certificate
from routing.runs.waiting_for_losses import resume_runs

log = logging.getLogger(__name__)

IN_MEMORY = 8 * 2**20


@dataclass(frozen=True)
class Imported:
    """`matched`: names in the file -> accounts here; `made`: names in the file -> accounts that stand for
    them.
    """

    project: Project
    manifest: Manifest
    matched: dict[str, str]
    made: dict[str, str]
    rows: int


def import_project(
    *,
    path: Path,
    owner: str = "",
    slug: str = "",
    match_people: bool = False,
    same: Mapping[str, str] | None = None,
) -> Imported:
    """Read a project file into this installation.

    All of it is checked first, then the stored files are written, then the rows in one transaction, within
    which no slow loss is computed: where that fails, nothing is left. `owner` is the username here of whoever
    is to own the project; `slug` its short name here, if not that in the file. `match_people` and `same` are
    as `maps.resolved` has them.

    Raises InputError for a file that cannot be used, or a name that is nobody's or taken; NotAllowedError
    where whoever made the account of the owner, or of somebody matched, may still know its password; OSError
    where the file cannot be read; HypacError where the database refuses a row.
    """
    with opened(path) as archive:
        owning = active_account(owner, where="--owner") if owner else None
        checked = check(archive)
        new_slug = _free_slug(slug, checked.slug)
        maps = checked.maps
        maps.slugs = (checked.slug, new_slug)
        maps.people = resolved(checked.people, match=match_people, same=same or {}, slug=new_slug)
        if owning is None and not checked.owners & maps.people.found.keys():
            raise InputError(
                "Nobody here would own the project: name the account that is to be its owner.",
                where="--owner",
            )
        maps.reserve(travelling())
        (project,) = maps.all_new(Project)
        for user in {*maps.people.found.values(), *([] if owning is None else [owning])}:
            require_chosen(user=user, project=Project(pk=project))
        try:
            files = _Files(archive, checked, project)
            return _stored(archive, checked, files, owning)
        except BaseException as error:
            _empty(f"projects/{project}")
            if isinstance(error, IntegrityError):
                _free_slug(new_slug, new_slug)  # somebody may have taken it meanwhile
            if isinstance(error, DatabaseError):
                raise HypacError(f"Nothing was imported: {error}") from error
            raise


def _empty(folder: str) -> None:
    """Whatever hinders that, a connection that broke say, is not to hide why nothing was imported."""
    try:
        remove_folder(folder)
    except Exception:
        log.warning("What an import left in %s could not be removed.", folder, exc_info=True)


def _free_slug(wanted: str, old: str) -> str:
    slug = wanted or old
    try:
        validate_slug(slug)
    except ValidationError:
        raise InputError("A short name has letters, digits, - and _ only.", where="--slug") from None
    if len(slug) > 80 or slug in RESERVED_SLUGS:
        raise InputError(f"No project can have the short name {slug[:100]!r}.", where="--slug")
    if Project.objects.filter(slug__iexact=slug).exists():
        raise InputError(
            f"There is a project {slug!r} here already: say with --slug what this one is to be called in "
            "addresses."
        )
    return slug


def _stored(archive: Archive, checked: Checked, files: "_Files", owner: User | None) -> Imported:
    with closing(SlowLosses()) as losses:
        while True:
            try:
                return _stored_at_once(archive, checked, files, owner, losses)
            except MissingLossesError:
                losses.compute()


def _stored_at_once(
    archive: Archive, checked: Checked, files: "_Files", owner: User | None, losses: SlowLosses
) -> Imported:
    """Raises MissingLossesError, and stores nothing, where losses have to be computed first."""
    maps, rows = checked.maps, 0
    names = {person.name for person in checked.people}
    (number,) = maps.all_new(Project)
    with transaction.atomic():
        _no_limits()
        _lock_accounts(maps.people, owner, Project(pk=number))
        store(maps.people)
        tables = {model: Table(model, names) for model in travelling()}
        last = tables.pop(Certificate)  # nothing refers to it
        for table in tables.values():
            rows += _copied(table, files.placed(table, table.rows(archive, maps)))
        project = Project.objects.get(pk=number)
        verify_runs(project, losses)
        rows += _copied(last, list(verified_certificates(project, last.rows(archive, maps), losses)))
        verify_rest(project, losses)
        losses.require_all()
        prepare_guidelines(project, before=project.guidelines)
        project.save(update_fields=RENDERED)
        resume_runs(project)
        _own(project, owner)
        for user in maps.people.found.values():
            note_belonging(user=user, project=project)
        manifest = archive.manifest
        matched = {name: user.username for name, user in maps.people.found.items()}
        made = {name: user.username for name, user in maps.people.made.items()}
        audit.record(
            project=project,
            actor=owner,
            action="project.imported",
            target=f"project:{project.slug}"[:120],
            data={
                "from": checked.slug,
                "version": manifest.hypac,
                "exported_at": manifest.made_at,
                "rows": rows,
                "files": manifest.files,
                "people": len(matched) + len(made),
                "people_matched": len(matched),
            },
        )
    return Imported(project, manifest, matched, made, rows)


def _lock_accounts(people: People, owner: User | None, project: Project) -> None:
    """Read the accounts here again, as they are until the transaction ends: hours may have passed, for slow
    losses, since they were found. Raises what refuses them there.

    In the order in which others lock people, and before rows refer to them: whoever is erased waits.
    """
    users = [*people.found.values(), *([] if owner is None else [owner])]
    for user in sorted(users, key=lambda user: user.pk):
        name, active = user.username, User.objects.select_for_update(no_key=True).filter(is_active=True)
        try:
            user.refresh_from_db(from_queryset=active)
        except User.DoesNotExist:
            raise InputError(
                f"Nothing was imported: the account {name!r} was switched off or erased meanwhile.",
                where="--owner" if user is owner else "--person",
            ) from None
        require_chosen(user=user, project=project)


def _copied(table: Table, rows: Iterable[Row]) -> int:
    # Their number is known beforehand, so that nothing is left behind a row that is not there.
    return copy_rows(table.model, table.names, ([row[name] for name in table.names] for row in rows))


def _no_limits() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            # Of a project that came a moment ago PostgreSQL expects one row, and would go through all
            # answers for each route: 1,000 items took 50 s. ANALYZE would help as much, but nobody else
            # could look at these tables so until the end.
            cursor.execute("SET LOCAL enable_nestloop = off")
            # Tables come behind those that they refer to: what is checked need not be kept for the end.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _own(project: Project, owner: User | None) -> None:
    if owner is None:
        return
    member = Membership.objects.filter(project=project, user=owner).first()
    if member is None:
        join(project=project, actor=owner, user=owner, role=Membership.Role.OWNER)
        return
    if member.role != Membership.Role.OWNER or not member.is_active:
        before, member.role, member.is_active = member.role, Membership.Role.OWNER, True
        member.save(update_fields=["role", "is_active"])
        audit.record(
            project=project,
            actor=owner,
            action="member.role_changed",
            target=audit_name(owner),
            data={"from": before, "to": member.role, "user": owner.pk},
        )


class _Files:
    """The stored files, written under the number that the project will have. One that names items by their
    numbers is written anew with those that they have here.
    """

    def __init__(self, archive: Archive, checked: Checked, project: int) -> None:
        self._archive, self._maps = archive, checked.maps
        self._given: dict[int, Content] = {}
        self._project = Project(pk=project)
        for _where, row in archive.rows(part_of(StoredFile)):
            sha256 = row["sha256"]
            if sha256 not in archive.files:
                continue  # lost before the export, too
            with archive.file(sha256) as content:
                if row["id"] in checked.given:
                    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as anew:
                        _with_new_items(content, anew, self._maps)
                        self._given[self._maps.new(StoredFile, row["id"])] = self._put(anew)
                elif self._put(content).sha256 != sha256:
                    raise InputError("It was changed while it was read.", where=f"files/{sha256}")

    def placed(self, table: Table, rows: Iterator[Row]) -> Iterator[Row]:
        """Rows of the table, those of files with what the storage calls them."""
        if table.model is not StoredFile:
            yield from rows
            return
        for row in rows:
            if (anew := self._given.get(row["id"])) is not None:
                row |= {"sha256": anew.sha256, "size": anew.size}
            sha256 = row["sha256"]
            yield row | {"storage_name": f"projects/{self._project.pk}/{sha256[:2]}/{sha256}"}

    def _put(self, content: IO[bytes] | Any) -> Content:
        return put_content(project=self._project, content=content)


def _with_new_items(old: IO[bytes], new: IO[bytes] | Any, maps: Maps) -> None:
    """What a delivery gave out, item by item (routing.delivery.parts), under the numbers of the items here.

    Those of items that are gone come first, under a number that none has: they count as gone, as they did.
    """
    for gone in (True, False):
        old.seek(0)
        while block := old.read(READ):
            if len(block) % RECORD.size:
                raise InputError("What a delivery gave out is not whole.", where=part_of(StoredFile))
            for number, digest in RECORD.iter_unpack(block):
                item = maps.new(Item, number)
                if (item == NOWHERE) is gone:
                    new.write(RECORD.pack(item, digest))
