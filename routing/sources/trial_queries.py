"""The newest try of a source, as far as it may be seen."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from annotation.labelling.label_queries import in_words
from annotation.models import Item, Job, Project
from annotation.task_types import TASK_TYPES
from routing.models import Source, SourceTry
from routing.sources.prompt_versions import prompt_in_force
from routing.sources.trials import KIND, any_hidden, mean_cost, usable, way_of_asking


@dataclass(frozen=True)
class ShownTry:
    """`job` is the newest one, `tried` the newest that is done; None where there is none or, if `hidden`,
    where it must not be seen now because a run has begun with its items. `names` are those of choices by key.
    `changed` says that the source would be asked otherwise now, or its answers read otherwise; `prompt` is
    the number of the version that is in force, 0 for the default.
    """

    job: Job | None
    tried: SourceTry | None
    hidden: bool
    task_type: str
    names: Mapping[str, str]
    changed: bool = False
    prompt: int = 0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Those of the try, with the label in words, choices by their names, and the text or image of the
        item as far as that is still there.
        """
        rows = self.tried.rows if self.tried else []
        items = Item.objects.select_related("image").in_bulk([row["item"] for row in rows])
        return [
            {**row, "label": self._label(row["value"]), "content": items.get(row["item"])} for row in rows
        ]

    def _label(self, text: str) -> str:
        return in_words(TASK_TYPES[self.task_type].from_text(text), self.names) if text else ""

    @property
    def asked_with(self) -> int:
        """The number of the version of the prompt that the answers were asked for with."""
        return next((row.get("prompt", 0) for row in (self.tried.rows if self.tried else [])), 0)

    @property
    def mean_cost(self) -> Decimal | None:
        return mean_cost(self.tried) if self.tried else None

    @property
    def usable(self) -> int:
        return usable(self.tried) if self.tried else 0

    @property
    def mean_tokens_in(self) -> float | None:
        return self._mean("tokens_in")

    @property
    def mean_tokens_out(self) -> float | None:
        return self._mean("tokens_out")

    @property
    def mean_seconds(self) -> float | None:
        mean = self._mean("latency_ms")
        return None if mean is None else mean / 1000

    def _mean(self, name: str) -> float | None:
        """Of the answers that tell it; None where none does."""
        known = [row[name] for row in self.tried.rows if row[name] is not None] if self.tried else []
        return sum(known) / len(known) if known else None


def newest_try(source: Source) -> ShownTry:
    jobs = Job.objects.filter(project=source.project_id, kind=KIND, unique_key=f"try:{source.pk}")
    tried = SourceTry.objects.filter(source=source).order_by("-job_id").first()
    hidden = tried is not None and any_hidden([row["item"] for row in tried.rows])
    names = dict(source.project.choices.values_list("key", "name"))
    asked_as = {row["asked_as"] for row in tried.rows if "asked_as" in row} if tried else set()
    return ShownTry(
        jobs.order_by("-id").first(),
        None if hidden else tried,
        hidden,
        source.project.task_type,
        names,
        changed=bool(asked_as - {way_of_asking(source)}),
        prompt=prompt_in_force(source).number,
    )


def cost_of_tries(project: Project) -> Decimal:
    """What all tries of the project that have ended cost, those of sources since removed included. They
    belong to no run and stand in no ledger.
    """
    done = Job.objects.filter(project=project, kind=KIND, state=Job.State.DONE)
    return sum((Decimal(said.get("cost", 0)) for said in done.values_list("result", flat=True)), Decimal(0))
