"""Deliveries of a part of all items: what is new since another one, or what filters find.

What a delivery gave out of each item is kept beside its files, in records of 24 bytes in the order of import:
the item's key, and a digest of its label, its source and its certificate. Whatever formats either of two
deliveries has, equal digests mean that nothing of that has changed. The key is given once, unlike the
position, which a later item gets where an import was taken back.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from struct import Struct
from typing import IO, Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common.files import open_file
from annotation.errors import InputError, NotAllowedError
from annotation.models import Project, User
from annotation.permissions import access_to
from routing.items.filters import HiddenError, conditions
from routing.labels.page import Page
from routing.models import Delivery, Run
from routing.visibility import view_permission

TOLD = ("label", "source", "certificate_id")
RECORD = Struct(">Q16s")
READ = RECORD.size * 50_000
KIND = b"by key"
"""Part of each digest: records of another kind, such as those that began with the position, equal none."""


class _Digests(dict[tuple[Any, ...], bytes]):
    """Most labels are one of a few: each is looked at once for a page."""

    def __missing__(self, told: tuple[Any, ...]) -> bytes:
        text = json.dumps(told, separators=(",", ":"))
        digest = self[told] = hashlib.blake2b(text.encode(), digest_size=16, person=KIND).digest()
        return digest


def digests_of(page: Page) -> list[bytes]:
    """Of what a delivery tells of each item."""
    known = _Digests()
    labels, sources, certificates = (page.columns[name] for name in TOLD)
    # A list cannot be looked up; as JSON a tuple is the same.
    labels = [tuple(label) if type(label) is list else label for label in labels]
    return [known[told] for told in zip(labels, sources, certificates, strict=True)]


def records(page: Page, digests: list[bytes]) -> bytes:
    return b"".join(map(RECORD.pack, page.keys, digests))


class GivenBefore:
    """What another delivery gave out, read once along with the items: it takes no memory, however much it is.
    That keys rise with the order of import is needed for that alone: where they did not, more would count as
    new, never less. `gone`: how many of its items no longer were there, known once all of it is read.

    Raises JobFailedError where the record is no longer what was written.
    """

    def __init__(self, content: IO[bytes], *, sha256: str) -> None:
        self._sha256 = sha256
        self._records = self._read(content)
        self._next = next(self._records, None)
        self.gone = 0

    def differs(self, page: Page, digests: list[bytes]) -> list[bool]:
        """Of each item whether it was not given out like this, or not at all; pages come in their order."""
        found = []
        for key, digest in zip(page.keys, digests, strict=True):
            while self._next is not None and self._next[0] < key:
                self.gone += 1
                self._next = next(self._records, None)
            found.append(self._next != (key, digest))
            if self._next is not None and self._next[0] == key:
                self._next = next(self._records, None)
        return found

    def check(self) -> None:
        """Read to the end, behind the last item: only then the whole of it is known to be right."""
        self.gone += self._next is not None
        self.gone += sum(1 for _record in self._records)

    def _read(self, content: IO[bytes]) -> Iterator[tuple[int, bytes]]:
        sha256, rest = hashlib.sha256(), b""
        while block := content.read(READ):
            sha256.update(block)
            block = rest + block
            whole = len(block) - len(block) % RECORD.size
            rest = block[whole:]
            yield from RECORD.iter_unpack(block[:whole])
        if sha256.hexdigest() != self._sha256:
            raise RECORD_DAMAGED.error()


@dataclass(frozen=True)
class Part:
    """Neither of both: all items. `user` is who asked for it: filters find what that person may see."""

    since: Delivery | None
    filters: Mapping[str, str]
    user: User | None

    @property
    def params(self) -> dict[str, Any]:
        """As a job keeps it."""
        since = {} if self.since is None else {"since": self.since.pk}
        return since | ({"filters": dict(self.filters)} if self.filters else {})

    def conditions(self, run: Run) -> Sequence[Q]:
        """Raises NotAllowedError where the person has left, HiddenError while models' output is hidden."""
        access = access_to(self.user, run.project.slug) if self.user else None
        if access is None:
            raise NotAllowedError(_("Whoever asked for this is no longer in the project."))
        permission = view_permission(run.project, access, run=run.number)
        if run.by_people:
            # Without what the models of another run said of the items.
            return list(conditions(replace(permission, run=None, run_sources=()), self.filters).values())
        # Some filters would do, and find too little: of the labels only those by people.
        if permission.run is None or permission.run.pk != run.pk:
            raise HiddenError(
                _(
                    "While a run is between its draw and its analysis, nothing is filtered. Deliver all "
                    "items, or what is new since another delivery."
                ),
                where="filters",
            )
        return list(conditions(permission, self.filters).values())


def checked_part(run: Run, *, user: User | None, since: Delivery | None, filters: Mapping[str, str]) -> Part:
    """Raises InputError whose `where` names what cannot be used, and as `Part.conditions` does."""
    if since is not None and filters:
        raise InputError(
            _("Choose either what is new since another delivery or what filters find, not both."),
            where="since",
        )
    part = Part(since, filters, user)
    if since is not None:
        if since.run.project_id != run.project_id:
            raise _no_delivery()
        if since.given_id is None:
            raise InputError(
                _(
                    "An earlier version of HyPAC made that delivery and did not keep what it gave out. "
                    "Deliver all items once; what is new since then can be told."
                ),
                where="since",
            )
        if not can_build_on(run, since):
            raise InputError(
                _(
                    "Run %(run)s is for everything from the same source and covers nothing that an earlier "
                    "run used: the labels by models of delivery %(number)s of run %(base)s would be told as "
                    "gone. Deliver all items, or what is new since a delivery of run %(run)s."
                )
                % {"run": run.number, "number": since.number, "base": since.run.number},
                where="since",
            )
    if filters:
        part.conditions(run)
    return part


OTHER_GONE = failures.register(
    "other_delivery_gone", gettext_noop("The other delivery was deleted meanwhile.")
)
RECORD_DAMAGED = failures.register(
    "delivery_record_damaged",
    gettext_noop(
        "What is kept of the other delivery, to tell what is new since then, is damaged. Make a whole "
        "delivery."
    ),
)
RECORD_GONE = failures.register(
    "delivery_record_gone",
    gettext_noop(
        "What is kept of the other delivery, to tell what is new since then, is no longer in the storage. "
        "Deliver all items."
    ),
)


def part_of(run: Run, *, user: User | None, params: Mapping[str, Any]) -> Part:
    """What a job has kept."""
    since = None
    if "since" in params:
        rows = Delivery.objects.select_related("run", "given")
        since = rows.filter(run__project=run.project_id, pk=params["since"]).first()
        if since is None:
            raise OTHER_GONE.error()
    return Part(since, params.get("filters", {}), user)


def can_build_on(run: Run, base: Delivery) -> bool:
    """Whether what is new in a delivery of `run` can be told against a delivery of the same project.

    The pool of a run for a population leaves out what earlier runs used: their models' labels have no place
    in its deliveries.
    """
    return base.run_id == run.pk or run.target != Run.Target.POPULATION


def bases_of(run: Run) -> QuerySet[Delivery]:
    """Deliveries that one of this run can build on; the newest first."""
    rows = Delivery.objects.filter(run__project=run.project_id, given__isnull=False)
    if run.target == Run.Target.POPULATION:
        rows = rows.filter(run=run)
    return rows.select_related("run").order_by("-id")


def find_base(project: Project, delivery_id: int) -> Delivery:
    """The delivery that another one is to build on. Raises InputError where the project has no such one."""
    found = Delivery.objects.select_related("run").filter(run__project=project, pk=delivery_id).first()
    if found is None:
        raise _no_delivery()
    return found


def newest_base(run: Run) -> Delivery | None:
    """The last one from which all items can be put together, by itself or with those that it builds on."""
    return bases_of(run).filter(filters={}).first()


def _no_delivery() -> InputError:
    return InputError(_("There is no such delivery in this project."), where="since")


class PartSelection:
    """Takes from each page what is new, and writes down into `given` what is given out now.

    What was given out before and is so still counts as given out: a delivery may build on one that is itself
    only what was new.
    """

    def __init__(self, given: IO[bytes], base: GivenBefore | None) -> None:
        self._given = given
        self._base = base

    def of(self, page: Page) -> Page:
        digests = digests_of(page)
        self._given.write(records(page, digests))
        return page if self._base is None else page.only(self._base.differs(page, digests))

    @property
    def gone(self) -> int:
        """Items that the other delivery had and that are no longer in the project; once closed."""
        return 0 if self._base is None else self._base.gone

    def close(self) -> None:
        if self._base is not None:
            self._base.check()


@contextmanager
def selecting(part: Part, given: IO[bytes]) -> Iterator[PartSelection]:
    with ExitStack() as stack:
        base = None
        if part.since is not None:
            stored = part.since.given
            assert stored is not None  # noqa: S101 - asked for in `checked_part`
            try:
                content = stack.enter_context(open_file(stored))
            except InputError as error:
                raise RECORD_GONE.error() from error
            base = GivenBefore(content, sha256=stored.sha256)
        picked = PartSelection(given, base)
        yield picked
        picked.close()
