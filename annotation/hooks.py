"""Where annotation has to tell or ask whoever builds on it.

Others fill these lists in AppConfig.ready; annotation imports none of them, and everything that happens
can be read from the list of callables.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from django.db.models import Q

from annotation.models import Job, Label, Project, Settlement, User, WorkBatch, WorkItem
from annotation.permissions import Access

# Called inside the transaction that stores the label. The second argument is the label it replaces, if any.
LabelStored = Callable[[Label, Label | None], None]
# Called inside the transaction that changes the labels of record of items that several people answered.
Settled = Callable[[WorkBatch, Sequence[Settlement]], None]
# Called inside the transaction that ends a work item without a label.
WorkItemEnded = Callable[[WorkItem], None]
# Why this person may not label blind batches of the project, in words; "" where nothing stands against it.
BlindObjection = Callable[[Project, User], str]
# Why the project's choices may not be changed now, in words; "" where nothing stands against it.
SchemaObjection = Callable[[Project], str]
# Why guidelines or choices ((key, name) in their order; None: as they are) may not become these now.
WordingObjection = Callable[[Project, str | None, Sequence[tuple[str, str]] | None], str]
# Ids of batches of which nothing may be shown to anybody yet: not their items, not their labels.
HiddenBatches = Callable[[Project], list[int]]
# Which rows, by their path to an item, are about one that is asked about anew: nothing of what people said
# of it before may be shown yet, whichever batch that was for.
HiddenItems = Callable[[Project, str], Q]
# Names of imported columns that hold model output which may not be shown now.
HiddenColumns = Callable[[Project], Collection[str]]
# Names of imported columns that hold model output, whether it may be shown now or not.
ModelColumns = Callable[[Project], Collection[str]]
# The page of what a job was for, as (title, address), where this person may open it; None where it has none.
JobPage = Callable[[Job, Access], tuple[str, str] | None]

# Copies what is not annotation's own from a project into its duplicate, inside the transaction of the copy.
ProjectDuplicated = Callable[[Project, Project, User], None]
# What else goes with a project that is deleted, as (words, how many).
ProjectContents = Callable[[Project], list[tuple[str, int]]]
# What runs of projects with this task type need on the server, as (whether it has that, words); None where
# they need nothing.
TaskTypeNeeds = Callable[[str], tuple[bool, str] | None]
# What is to be done next in the project, as (words, address); None where there is nothing to tell.
NextStep = Callable[[Access], tuple[str, str] | None]


@dataclass
class Hooks:
    label_stored: list[LabelStored] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    work_item_ended: list[WorkItemEnded] = field(default_factory=list)
    blind_objection: list[BlindObjection] = field(default_factory=list)
    schema_objection: list[SchemaObjection] = field(default_factory=list)
    wording_objection: list[WordingObjection] = field(default_factory=list)
    hidden_batches: list[HiddenBatches] = field(default_factory=list)
    hidden_items: list[HiddenItems] = field(default_factory=list)
    hidden_columns: list[HiddenColumns] = field(default_factory=list)
    model_columns: list[ModelColumns] = field(default_factory=list)
    job_page: list[JobPage] = field(default_factory=list)
    project_duplicated: list[ProjectDuplicated] = field(default_factory=list)
    project_contents: list[ProjectContents] = field(default_factory=list)
    task_type_needs: list[TaskTypeNeeds] = field(default_factory=list)
    next_step: list[NextStep] = field(default_factory=list)


hooks = Hooks()


def blind_objection(project: Project, user: User) -> str:
    return next((reason for ask in hooks.blind_objection if (reason := ask(project, user))), "")


def schema_objection(project: Project) -> str:
    return next((reason for ask in hooks.schema_objection if (reason := ask(project))), "")


def wording_objection(
    project: Project, *, guidelines: str | None = None, choices: Sequence[tuple[str, str]] | None = None
) -> str:
    asked = (ask(project, guidelines, choices) for ask in hooks.wording_objection)
    return next((reason for reason in asked if reason), "")


def hidden_batches(project: Project) -> set[int]:
    """Ids of batches of which nothing may be shown before their labels are locked."""
    return {batch for ask in hooks.hidden_batches for batch in ask(project)}


def hidden_items(project: Project, item: str) -> Q:
    """Of rows that lead to an item by `item` those that may not be shown, whichever batch they are of: what
    people said about items that are asked about anew.
    """
    return reduce(or_, (ask(project, item) for ask in hooks.hidden_items), Q(pk__in=[]))


def hidden_columns(project: Project) -> set[str]:
    """Imported columns whose values may not be shown now, to nobody."""
    return {column for ask in hooks.hidden_columns for column in ask(project)}


def model_columns(project: Project) -> set[str]:
    """Imported columns that whoever labels must never see, at no time."""
    return {column for ask in hooks.model_columns for column in ask(project)}


def job_page(job: Job, access: Access) -> tuple[str, str] | None:
    return next((page for ask in hooks.job_page if (page := ask(job, access))), None)


def project_duplicated(project: Project, copy: Project, actor: User) -> None:
    for tell in hooks.project_duplicated:
        tell(project, copy, actor)


def project_contents(project: Project) -> list[tuple[str, int]]:
    return [entry for ask in hooks.project_contents for entry in ask(project)]


def task_type_needs(task_type: str) -> tuple[bool, str] | None:
    return next((needs for ask in hooks.task_type_needs if (needs := ask(task_type))), None)


def task_type_lacks(task_type: str) -> str:
    """What this server lacks for runs of projects with this task type, in a sentence; "" for nothing."""
    there, words = task_type_needs(task_type) or (True, "")
    return "" if there else words


def next_step(access: Access) -> tuple[str, str] | None:
    return next((step for ask in hooks.next_step if (step := ask(access))), None)
