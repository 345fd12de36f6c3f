"""Trying a source on a few items before a run rests on it, and the newest try as far as it may be seen.

Nothing of it becomes a prediction of a run.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.value_reader import ValueReader, as_text
from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling.label_queries import label_in_words
from annotation.models import Item, Job, Label, Project, User
from annotation.task_types import TASK_TYPES
from annotation.words import Words
from routing.common.states import OPEN
from routing.core.scores import make_score
from routing.models import PoolItem, RunSource, Source, SourceTry
from routing.sources import storable
from routing.sources.backend_for import context_of, current_prompt, task_spec
from routing.sources.backends import Answer, Backend, Prompt, backend_class
from routing.sources.backends.base import BackendError, digest, other_number, shortened
from routing.sources.charging import Charge
from routing.sources.mends import mends_of, reader_for, with_mends
from routing.sources.prompt_versions import prompt_in_force, shown_to_model, takes_prompt
from routing.sources.prompts import prompt_digest
from routing.sources.score_fields import score_fields
from routing.sources.storable import stored_reason
from routing.visibility import hidden_batches

KIND = "try_source"
ITEMS = 5
MAX_CHARACTERS = 20_000
SMALLEST_PRICE = Decimal(1).scaleb(-6)


def start_try(*, source: Source, user: User) -> Job:
    """Have a worker ask the source about a few items, at most `ITEMS`.

    Raises InputError where the source has nothing to try, and ConflictError where every item belongs to a
    run of which no model's answer may be seen yet, or a try is under way.
    """
    project = source.project
    backend_of(source)
    items = _chosen(project)
    with transaction.atomic():
        job = jobs.enqueue(
            project=project,
            kind_name=KIND,
            params={"source": source.pk, "items": items},
            unique_key=f"try:{source.pk}",
            user=user,
            total=len(items),
        )
        audit.record(
            project=project,
            actor=user,
            action="source.tried",
            target=f"source:{source.pk}",
            data={"name": source.name, "items": len(items), "job": job.pk},
        )
    return job


SOURCE_GONE = failures.register("source_gone", gettext_noop("The source has been removed."))
RUN_HAS_BEGUN = failures.register(
    "run_has_begun",
    gettext_noop("A run has begun with these items. Try the source again when it is analysed."),
)


def try_source(context: JobContext) -> dict[str, Any]:
    """The handler of the job: asks, and stores what came."""
    sources = Source.objects.select_related("project").filter(project=context.job.project_id)
    source = sources.filter(pk=context.params["source"]).first()
    if source is None:
        raise SOURCE_GONE.error()
    # With their images: a backend may read items in threads of its own, which do not use the database.
    found = Item.objects.filter(project=source.project, pk__in=context.params["items"])
    items = list(found.select_related("image").order_by("pk"))
    if any_hidden([item.pk for item in items]):
        raise RUN_HAS_BEGUN.error()
    prompt, asked_as = prompt_in_force(source), way_of_asking(source)
    backend, reader, charge = backend_of(source), reader_for(source), charge_of(source)
    rows, reasons = [], []
    context.progress(done=0, total=len(items), stage=Words(gettext_noop("Asking the model")))
    try:
        for group in backend.predict(iter(items)):
            for item, answer in group:
                asked = {"prompt": prompt.number, "asked_as": asked_as, "asked": _asked(source, prompt, item)}
                row, why = row_of(backend, reader, charge, item, answer)
                rows.append(storable.document(row | asked))
                reasons.append(why)
            context.progress(done=len(rows))
    except BackendError as error:
        error.permanent = True  # somebody waits before the page, and tries again by a button
        raise
    if len(rows) != len(items):
        raise other_number(len(rows), len(items))
    stored = {"source": source, "rows": rows, "reasons": reasons}
    with context.chunk(done=len(rows)):
        SourceTry.objects.update_or_create(job=context.job, defaults=stored)
        # Only the newest is of use.
        SourceTry.objects.filter(source=source, job_id__lt=context.job.pk).delete()
    return {
        "items": len(rows),
        "usable": sum(row["reason"] == "" for row in rows),
        "cost": f"{sum((Decimal(row['cost']) for row in rows), Decimal(0)):f}",
    }


def use_as_price(*, tried: SourceTry, user: User) -> Decimal:
    """Make the mean cost of the tried items the price per label that plans reckon with.

    Raises ConflictError where the source's way of charging is that price itself, or none of the answers
    could be used: what refusals cost says nothing of labels.
    """
    with transaction.atomic():
        source = Source.objects.select_for_update(no_key=True).get(pk=tried.source_id)
        mean = mean_cost(tried)
        if source.cost_function == "flat" or mean is None:
            raise ConflictError(
                _("The labels of this source have one price, which is set by hand."), code="price_set_by_hand"
            )
        if not usable(tried):
            raise ConflictError(
                _("None of the answers could be used, so they tell no price of a label."),
                code="no_usable_answer",
            )
        before, source.cost_per_label = source.cost_per_label, mean.quantize(SMALLEST_PRICE, ROUND_UP)
        source.save(update_fields=["cost_per_label"])
        audit.record(
            project=source.project,
            actor=user,
            action="source.priced",
            target=f"source:{source.pk}",
            data={"name": source.name, "from": f"{before:f}", "to": f"{source.cost_per_label:f}"},
        )
    return source.cost_per_label


def usable(tried: SourceTry) -> int:
    """How many of the answers could be used."""
    return sum(row["reason"] == "" for row in tried.rows)


def mean_cost(tried: SourceTry) -> Decimal | None:
    """Of one label; None where there is none."""
    costs = [Decimal(row["cost"]) for row in tried.rows]
    return sum(costs, Decimal(0)) / len(costs) if costs else None


def backend_of(source: Source) -> Backend:
    """What is asked. Raises InputError where there is nothing to ask."""
    return backend_class(source.backend).for_a_try(source.params, context_of(source))


def way_of_asking(source: Source) -> str:
    """A fingerprint of all that the project says of how the source is asked and its answers are read."""
    prompt = current_prompt(source) if source.backend in takes_prompt() else None
    asked = digest(
        backend=source.backend,
        params=source.params,
        prompt=prompt_digest(prompt, task_spec(source.project)),
    )
    return with_mends(asked, mends_of(source))


def any_hidden(items: Sequence[int]) -> bool:
    """Whether one of the items is in the pool of a run of which nobody may see a model's answer yet."""
    return PoolItem.objects.filter(item__in=items, run__state__in=OPEN).exists()


def charge_of(source: Source) -> Charge:
    """The way in which a run that started now would pay the source."""
    return Charge(RunSource.of(source))


def row_of(
    backend: Backend, reader: ValueReader, charge: Charge, item: Item, answer: Answer
) -> tuple[dict[str, Any], list[list[str]]]:
    """What is kept of one answer, as JSON, and beside it the codes of why it and its score cannot be used."""
    value, reason = (None, answer.reason) if answer.value is None else reader(answer.value)
    cost, note = charge.cost(answer)
    row: dict[str, Any] = {
        "item": item.pk,
        "name": item.external_id,
        "text": str(answer.raw.get("text", ""))[:MAX_CHARACTERS],
        "reasoning": str(answer.raw.get("reasoning", ""))[:MAX_CHARACTERS],
        "value": "" if value is None else as_text(value),
        "reason": shortened(reason),
        "tokens_in": answer.tokens_in,
        "tokens_out": answer.tokens_out,
        "finish_reason": answer.finish_reason[:40],
        "latency_ms": answer.latency_ms,
        "cost": f"{cost:f}",
        "cost_note": note,
        "served_model": answer.served_model[:200],
    }
    score_reason = ""
    if backend.fields:
        score = make_score(backend.default_score)(
            score_fields(answer.raw, value, reason, answer.finish_reason, reader)
        )
        row |= {"score_name": backend.default_score, "score": score.u, "score_reason": score.reason}
        score_reason = score.reason
    return row, [list(storable.reason_columns(why).values()) for why in (reason, score_reason)]


def reasons_of_try(tried: SourceTry) -> list[tuple[str, str]]:
    """By row why its answer and its score cannot be used, "" where they can."""
    found = []
    without = [[("", ""), ("", "")]] * len(tried.rows)
    for row, codes in zip(tried.rows, tried.reasons or without, strict=True):
        words = (row["reason"], row.get("score_reason", ""))
        answer, score = (stored_reason(said, *code) for said, code in zip(words, codes, strict=True))
        found.append((answer, score))
    return found


def _asked(source: Source, prompt: Prompt, item: Item) -> list[dict[str, str]]:
    """What was sent for the item, as far as it may be shown."""
    if source.backend not in takes_prompt():
        return []
    chat = shown_to_model(source.project, prompt, item).as_chat()
    return [{"role": entry["role"], "content": entry["content"][:MAX_CHARACTERS]} for entry in chat]


def _chosen(project: Project) -> list[int]:
    """Ids of a few items, at random. Those that people have labelled come first: no later run asks about
    them, so nobody who labels in it has seen what a model says of them.
    """
    closed = PoolItem.objects.filter(item=OuterRef("pk"), run__state__in=OPEN)
    items = Item.objects.filter(~Exists(closed), project=project, erased_at__isnull=True)
    labels = Label.objects.filter(item=OuterRef("pk"))
    if hidden := hidden_batches(project):
        items = items.filter(~Exists(labels.filter(work_item__batch__in=hidden)))
    chosen = _sample(items.filter(Exists(labels)), ITEMS)
    chosen += _sample(items.filter(~Exists(labels)), ITEMS - len(chosen))
    if chosen:
        return chosen
    if project.items.exists():
        raise ConflictError(
            _(
                "Every item belongs to a run that is not analysed yet, and until then nobody may see "
                "what a model says of them. Try the source after the analysis, or import further "
                "items."
            ),
            code="all_items_blind",
        )
    raise ConflictError(_("There is no item to try it on: import data first."), code="no_items")


def _sample(items: QuerySet[Item], size: int) -> list[int]:
    count = items.count()
    places = random.sample(range(count), min(size, count))
    ids = items.order_by("pk").values_list("pk", flat=True)
    return [ids[place] for place in places]


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
        return label_in_words(TASK_TYPES[self.task_type].from_text(text), self.names) if text else ""

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
