"""Where annotation tells and asks routing, of which it knows nothing but this.

`RoutingPort` says what there is to tell and to ask; routing sets its implementation in AppConfig.ready, and
until then, and where there is no routing, `NoRouting` answers.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.db.models import Q

from annotation.errors import NotAllowedError
from annotation.models import BucketSync, Job, Label, Project, Settlement, User, WorkBatch, WorkItem
from annotation.permissions import Access


@dataclass(frozen=True)
class WordingChange:
    """What other words would mean to work that has begun, in sentences, and whether it could go on."""

    sentences: Sequence[str]
    may_go_on: bool


@dataclass(frozen=True)
class LossOffer:
    """A loss that suits a task type, in words, and what it lacks on this server; "" for nothing."""

    name: str
    title: str
    summary: str
    lacks: str


@dataclass(frozen=True)
class Suggestion:
    """What a model answered about an item, in the canonical form of labels, and its name."""

    value: Any
    source: str


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

    def write_deliveries(self, *, sync: BucketSync, user: User | None, again: bool) -> int:
        """A bucket is looked at: deliveries that are to be in it and that nobody writes are to be written;
        `again`: those whose writing failed, too. Returns how many that is.
        """

    def unwritten_deliveries(self, *, sync: BucketSync) -> tuple[int, str]:
        """How many deliveries are to be in a bucket and are written by no job, and what to do, in words."""

    # --- What the roster says ---

    def decider(self, *, batch: WorkBatch, item_id: int) -> int | None:
        """Id of the user who decides where two people differ about an item; None where a reviewer does."""

    def locked_together(self, *, batch: WorkBatch) -> Collection[int]:
        """Ids of batches of which work may end or begin as work of this one, blind or with a roster, ends."""

    def suggestion(self, *, work_item: WorkItem) -> Suggestion | None:
        """What whoever labels this item may be shown of the models' answers, of a batch that suggests."""

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

    def cancel_to_replan(self, *, project: Project, user: User) -> str:
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

    def models_in(
        self, *, project: Project, columns: Sequence[str], rows: Sequence[Mapping[str, str]]
    ) -> list[tuple[str, str]]:
        """Pairs of columns (answers, how sure, or "") of a file that read like models of which sources can
        be made; `rows` are its first ones.
        """

    def models_to_add(self, *, access: Access) -> tuple[Sequence[str], str] | None:
        """The columns with answers of models that are no sources yet, and the address of the page that adds
        them; None where there are none, or this person may not.
        """

    # --- What pages show ---

    def job_page(self, *, job: Job, access: Access) -> tuple[str, str] | None:
        """The page of what a job was for, as (title, address), where this person may open it."""

    def project_contents(self, *, project: Project) -> list[tuple[str, int]]:
        """What else goes with a project that is deleted, as (words, how many)."""

    def losses_offered(self, *, task_type: str) -> Sequence[LossOffer]:
        """What may count as an error in projects with this task type; first what works at once."""

    def same_answers(self, *, project: Project, batch: int | None) -> Callable[[str, str], bool]:
        """What says whether two stored answers are the same: by the loss of the run that the batch was made
        for, or by the project's.
        """

    def check_loss(self, *, project: Project) -> None:
        """Raise InputError, at "loss" or "loss_params", where the project's own loss cannot be one."""

    def loss_lacks(self, *, project: Project) -> str:
        """What this server lacks for runs with the project's own loss, in a sentence; "" for nothing."""

    def next_step(self, *, access: Access) -> tuple[str, str, str] | None:
        """What is to be done next in the project, as (words, what the link says that leads to it, address);
        the address is that of the overview where there is nothing to press, and the link says "", and where
        it is pressed there.
        """

    def two_people(self, *, access: Access) -> tuple[Sequence[str], str, str] | None:
        """On which share of all items two people would differ, and not only of those with two answers, as
        (sentences, title of the page that they are from, its address); nothing of batches that are hidden.
        """

    # --- What is kept about a person ---

    def own_data(self, *, user: User) -> Iterator[tuple[str, Iterable[Mapping[str, object]]]]:
        """Kinds of data and their rows: what the person gave, and what says of their part in runs; nothing of
        models, and nothing that anybody else gave.
        """

    def erasure_objection(self, *, user: User) -> str:
        """Why this person may not be erased now, in words; "" where nothing stands against it."""

    def forget_person(self, *, user: User) -> None:
        """Remove what somebody who is erased kept for themselves alone."""

    def files_naming(self, *, user: User) -> int:
        """How many deliveries were written that may have the person's name in their files."""

    # --- What is kept for a while alone ---

    def forget_raw_output(self, *, before: datetime, most: int) -> bool:
        """Remove what models wrote word by word, where it is older and nothing under way needs it: of so many
        answers at most. Returns whether there may be more.
        """

    # --- What is looked after every few seconds ---

    def maintain_losses(self) -> None:
        """Go on with what waits for losses that no job computes, and remove computed ones that are old."""


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

    def write_deliveries(self, *, sync: BucketSync, user: User | None, again: bool) -> int:
        return 0

    def unwritten_deliveries(self, *, sync: BucketSync) -> tuple[int, str]:
        return 0, ""

    def decider(self, *, batch: WorkBatch, item_id: int) -> int | None:
        return None

    def locked_together(self, *, batch: WorkBatch) -> Collection[int]:
        return ()

    def suggestion(self, *, work_item: WorkItem) -> Suggestion | None:
        return None

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

    def cancel_to_replan(self, *, project: Project, user: User) -> str:
        raise NotAllowedError("Nothing has begun.")

    def hidden_batches(self, *, project: Project) -> set[int]:
        return set()

    def hidden_items(self, *, project: Project, item_path: str) -> Q:
        return Q(pk__in=[])

    def hidden_columns(self, *, project: Project) -> frozenset[str]:
        return frozenset()

    def model_columns(self, *, project: Project) -> frozenset[str]:
        return frozenset()

    def models_in(
        self, *, project: Project, columns: Sequence[str], rows: Sequence[Mapping[str, str]]
    ) -> list[tuple[str, str]]:
        return []

    def models_to_add(self, *, access: Access) -> tuple[Sequence[str], str] | None:
        return None

    def job_page(self, *, job: Job, access: Access) -> tuple[str, str] | None:
        return None

    def project_contents(self, *, project: Project) -> list[tuple[str, int]]:
        return []

    def losses_offered(self, *, task_type: str) -> Sequence[LossOffer]:
        return ()

    def same_answers(self, *, project: Project, batch: int | None) -> Callable[[str, str], bool]:
        return str.__eq__

    def check_loss(self, *, project: Project) -> None:
        return

    def loss_lacks(self, *, project: Project) -> str:
        return ""

    def next_step(self, *, access: Access) -> tuple[str, str, str] | None:
        return None

    def two_people(self, *, access: Access) -> tuple[Sequence[str], str, str] | None:
        return None

    def own_data(self, *, user: User) -> Iterator[tuple[str, Iterable[Mapping[str, object]]]]:
        yield from ()

    def erasure_objection(self, *, user: User) -> str:
        return ""

    def forget_person(self, *, user: User) -> None:
        return None

    def files_naming(self, *, user: User) -> int:
        return 0

    def forget_raw_output(self, *, before: datetime, most: int) -> bool:
        return False

    def maintain_losses(self) -> None:
        return None


_connected: RoutingPort = NoRouting()


def connect_routing(implementation: RoutingPort) -> None:
    global _connected
    _connected = implementation


def routing_port() -> RoutingPort:
    return _connected
