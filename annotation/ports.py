"""Where annotation tells and asks routing, of which it knows nothing but this.

`RoutingPort` says what there is to tell and to ask; routing sets its implementation in AppConfig.ready, and
until then, and where there is no routing, `NoRouting` answers.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from django.db.models import Q

from annotation.errors import NotAllowedError
from annotation.models import Job, Label, Project, Settlement, User, WorkBatch, WorkItem
from annotation.permissions import Access


@dataclass(frozen=True)
class WordingChange:
    """What other words would mean to work that has begun, in sentences, and whether it could go on."""

    sentences: Sequence[str]
    may_go_on: bool


class RoutingPort(Protocol):
    # --- What is told, each time inside the transaction that does it ---

    def label_stored(self, *, label: Label, replaced: Label | None) -> None:
        """A label was stored; `replaced` is the one whose newer version it is, if any."""

    def settled(self, *, batch: WorkBatch, settlements: Sequence[Settlement]) -> None:
        """The labels of record of items that several people answered have changed."""

    def work_item_ended(self, *, work_item: WorkItem) -> None:
        """A work item has ended without a label."""

    def work_item_skipped(self, *, work_item: WorkItem, user: User) -> None:
        """Somebody could not or would not label a work item, which is open again."""

    def project_duplicated(self, *, project: Project, copy: Project, actor: User) -> None:
        """A project was copied: what is not annotation's own is to be copied, too."""

    # --- What the roster says ---

    def decider(self, *, batch: WorkBatch, item_id: int) -> int | None:
        """Id of the user who decides where two people differ about an item; None where a reviewer does."""

    def locked_together(self, *, batch: WorkBatch) -> Collection[int]:
        """Ids of batches of which work may end or begin as work of this one, blind or with a roster, ends."""

    # --- What stands against something, in words; "" where nothing does ---

    def blind_objection(self, *, project: Project, user: User) -> str:
        """Why this person may not label blind batches of the project."""

    def schema_objection(self, *, project: Project) -> str:
        """Why the project's choices may not be changed now."""

    def wording_objection(
        self,
        *,
        project: Project,
        question: str | None = None,
        guidelines: str | None = None,
        choices: Sequence[tuple[str, str]] | None = None,
        text_format: str | None = None,
    ) -> str:
        """Why guidelines, choices ((key, name) in their order) or the format in which texts are shown may not
        become these; None: as they are.
        """

    def wording_change(self, *, project: Project, guidelines: str | None) -> WordingChange | None:
        """What it means to work that has begun if people are told something else from now on, `guidelines`
        where these change; None: nothing.
        """

    def begin_again(self, *, project: Project, user: User) -> str:
        """Give up that work. Returns the address where it begins again; raises ConflictError where there is
        none any more.
        """

    # --- What may not be shown ---

    def hidden_batches(self, *, project: Project) -> set[int]:
        """Ids of batches of which nothing may be shown to anybody yet: not their items, not their labels."""

    def hidden_items(self, *, project: Project, item_path: str) -> Q:
        """Rows, by their path to an item, about items that are asked about anew: hidden in any batch."""

    def hidden_columns(self, *, project: Project) -> frozenset[str]:
        """Imported columns whose values may not be shown now, to nobody."""

    def model_columns(self, *, project: Project) -> frozenset[str]:
        """Imported columns that hold model output: whoever labels must never see them, at no time."""

    # --- What pages show ---

    def job_page(self, *, job: Job, access: Access) -> tuple[str, str] | None:
        """The page of what a job was for, as (title, address), where this person may open it."""

    def project_contents(self, *, project: Project) -> list[tuple[str, int]]:
        """What else goes with a project that is deleted, as (words, how many)."""

    def task_type_needs(self, *, task_type: str) -> tuple[bool, str] | None:
        """What runs with this task type need on the server, as (whether it has that, words)."""

    def next_step(self, *, access: Access) -> tuple[str, str] | None:
        """What is to be done next in the project, as (words, address)."""

    def two_people(self, *, access: Access) -> tuple[Sequence[str], str, str] | None:
        """On which share of all items two people would differ, and not only of those with two answers, as
        (sentences, title of the page that they are from, its address); nothing of batches that are hidden.
        """

    # --- What is kept about a person ---

    def own_data(self, *, user: User) -> Iterator[tuple[str, Iterable[Mapping[str, object]]]]:
        """Kinds of data and their rows: what the person gave, and what says of their part in runs; nothing of
        models, and nothing that anybody else gave.
        """


class NoRouting:
    """Nothing is heard, nothing stands against anything, nothing is hidden."""

    def label_stored(self, *, label: Label, replaced: Label | None) -> None:
        return

    def settled(self, *, batch: WorkBatch, settlements: Sequence[Settlement]) -> None:
        return

    def work_item_ended(self, *, work_item: WorkItem) -> None:
        return

    def work_item_skipped(self, *, work_item: WorkItem, user: User) -> None:
        return

    def decider(self, *, batch: WorkBatch, item_id: int) -> int | None:
        return None

    def locked_together(self, *, batch: WorkBatch) -> Collection[int]:
        return ()

    def project_duplicated(self, *, project: Project, copy: Project, actor: User) -> None:
        return

    def blind_objection(self, *, project: Project, user: User) -> str:
        return ""

    def schema_objection(self, *, project: Project) -> str:
        return ""

    def wording_objection(
        self,
        *,
        project: Project,
        question: str | None = None,
        guidelines: str | None = None,
        choices: Sequence[tuple[str, str]] | None = None,
        text_format: str | None = None,
    ) -> str:
        return ""

    def wording_change(self, *, project: Project, guidelines: str | None) -> WordingChange | None:
        return None

    def begin_again(self, *, project: Project, user: User) -> str:
        raise NotAllowedError("Nothing has begun.")

    def hidden_batches(self, *, project: Project) -> set[int]:
        return set()

    def hidden_items(self, *, project: Project, item_path: str) -> Q:
        return Q(pk__in=[])

    def hidden_columns(self, *, project: Project) -> frozenset[str]:
        return frozenset()

    def model_columns(self, *, project: Project) -> frozenset[str]:
        return frozenset()

    def job_page(self, *, job: Job, access: Access) -> tuple[str, str] | None:
        return None

    def project_contents(self, *, project: Project) -> list[tuple[str, int]]:
        return []

    def task_type_needs(self, *, task_type: str) -> tuple[bool, str] | None:
        return None

    def next_step(self, *, access: Access) -> tuple[str, str] | None:
        return None

    def two_people(self, *, access: Access) -> tuple[Sequence[str], str, str] | None:
        return None

    def own_data(self, *, user: User) -> Iterator[tuple[str, Iterable[Mapping[str, object]]]]:
        yield from ()


_connected: RoutingPort = NoRouting()


def connect_routing(implementation: RoutingPort) -> None:
    global _connected
    _connected = implementation


def routing_port() -> RoutingPort:
    return _connected


def task_type_lacks(task_type: str) -> str:
    """What this server lacks for runs of projects with this task type, in a sentence; "" for nothing."""
    there, words = routing_port().task_type_needs(task_type=task_type) or (True, "")
    return "" if there else words
