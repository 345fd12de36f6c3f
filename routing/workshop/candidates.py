"""Candidates: ways to ask a source. One is written, has the source answer for the development items, and is
put in force if it does best. The prompt in force is the first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Avg, Max, Sum
from django.utils.translation import gettext as _, gettext_noop

from annotation.common import audit, limits
from annotation.common.locks import locked_project
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Item, Job
from annotation.permissions import Access
from annotation.words import Words
from routing.core.exact import plain
from routing.models import Prediction, PromptCandidate, Source, Spend
from routing.runs.budget import checked_budget
from routing.runs.predict import NamedItems, predict_missing
from routing.sources import storable
from routing.sources.backend_for import (
    context_of,
    frozen_backend,
    frozen_fingerprint,
    how_it_writes,
    params_of,
    prompt_of,
    task_spec,
)
from routing.sources.backends import Prompt, backend_class
from routing.sources.backends.base import digest
from routing.sources.backends.params import Param, read_values
from routing.sources.charging import Charge
from routing.sources.manage import save_prompt, save_source
from routing.sources.mends import mends_of, with_mends
from routing.sources.prompt_versions import checked_prompt, prompt_in_force
from routing.sources.prompts import prompt_digest
from routing.workshop.development import labelled_items

KIND = "run_candidate"
MOST = 50


def writing_params(backend: str) -> list[Param]:
    """What a candidate may set beside the prompt: how the model writes."""
    declared = backend_class(backend).params
    own = how_it_writes(dict.fromkeys(param.name for param in declared))
    return [param for param in declared if param.name in own and param.in_form]


def candidates_of(source: Source) -> list[PromptCandidate]:
    """In their order. Before any is stored there is one all the same: the prompt in force."""
    rows = PromptCandidate.objects.filter(source=source).select_related("created_by").order_by("number")
    # With the source that was read: its prompt and project are asked for again and again.
    return [_with_source(row, source) for row in rows] or [_first(source)]


def candidate_numbered(source: Source, number: int) -> PromptCandidate | None:
    return next((one for one in candidates_of(source) if one.number == number), None)


def ways_to_ask(source: Source) -> Callable[[Prompt | None, Mapping[str, Any]], str]:
    """What gives, of a prompt and the params of the source, a fingerprint of all that the project says of how
    it is asked so and its answers are read; "" where a param cannot be used. Its server is not asked.
    """
    declared, task = backend_class(source.backend).params, task_spec(source.project)
    mends = mends_of(source)

    def asked_by(prompt: Prompt | None, params: Mapping[str, Any]) -> str:
        try:
            values = read_values(declared, params)
        except InputError:
            return ""
        digested = prompt_digest(prompt, task)
        return with_mends(digest(backend=source.backend, params=values, prompt=digested), mends)

    return asked_by


def way_of(candidate: PromptCandidate) -> str:
    return ways_to_ask(candidate.source)(prompt_of(candidate), params_of(candidate))


def write_candidate(
    *, access: Access, source: Source, prompt: Prompt, params: Mapping[str, Any] | None = None
) -> PromptCandidate:
    """Another way to ask the source: a prompt, and how the model writes; None for as it does now.

    Raises InputError whose `where` is a part of the prompt or a param, also where another candidate asks in
    the same way, and ConflictError where there are too many.
    """
    checked = checked_prompt(source.project, source.backend, prompt)
    if checked is None:
        raise InputError(_("This is needed."), where="template")
    given = how_it_writes(source.params if params is None else params)
    if params is not None and (unknown := sorted(set(params) - set(given))):
        raise InputError(_("A candidate cannot change this parameter."), where=unknown[0])
    if wrong := [name for name, value in given.items() if not storable.fits([name, value])]:
        raise InputError(_("This has a character that cannot be stored."), where=wrong[0])
    with transaction.atomic():
        _lock(source)
        limits.refuse_more(
            PromptCandidate.objects.filter(source=source),
            MOST,
            _("A source has at most %(most)s candidates."),
            code="too_many_candidates",
        )
        _stored_first(source, access)
        made = _new(source, checked, given)
        made.number = 1 + _last_number(source)
        frozen_backend(made)
        _refuse_twice(source, made)
        made.created_by = access.user
        made.save()
        _record(access, made, action="source.candidate_written")
    return made


@dataclass(frozen=True)
class Estimate:
    """What the missing answers cost: about so much, and at most so much, None where nobody can tell."""

    missing: int
    about: Decimal
    most: Decimal | None


def estimate(candidate: PromptCandidate) -> Estimate:
    """Of asking about the labelled development items, as the source is charged now.

    Raises InputError where the source cannot be asked.
    """
    ids = labelled_items(candidate.project).values("item")
    asked = Prediction.objects.filter(source=candidate.source_id)
    # It has no answers that count where guidelines or labels have changed since it was run.
    current = candidate.asked_as == way_of(candidate)
    own = asked.filter(item__in=ids, fingerprint=candidate.fingerprint if current else "")
    left = list(Item.objects.filter(pk__in=ids).exclude(pk__in=own.values("item")).select_related("image"))
    mean = own.aggregate(mean=Avg("cost"))["mean"]
    if mean is None:
        mean = asked.filter(item__in=ids).aggregate(mean=Avg("cost"))["mean"]
    if mean is None:
        mean = candidate.source.cost_per_label
    backend, charge = frozen_backend(candidate), Charge(_priced(candidate))
    most = [charge.most(backend.most_usage(item)) for item in left]
    known = [amount for amount in most if amount is not None]
    return Estimate(
        len(left), Decimal(mean) * len(left), sum(known, Decimal(0)) if len(known) == len(most) else None
    )


def run_candidate(*, access: Access, candidate: PromptCandidate, budget: Decimal | None = None) -> Job:
    """Have a worker ask the source in this way about the labelled development items, each of them once.

    One that stopped, for its budget say, goes on where it stopped. Asks the source's server who it is,
    outside the transaction. Raises InputError or BackendError where it cannot be asked, ConflictError where
    no development item has a label, and where a candidate of the source is being run.
    """
    source, budget = candidate.source, checked_budget(budget)
    backend_class(source.backend).for_a_try(params_of(candidate), context_of(source))
    fingerprint = frozen_fingerprint(candidate)
    asked_as = way_of(candidate)
    with transaction.atomic():
        _lock(source)
        count = labelled_items(candidate.project).count()
        if not count:
            raise ConflictError(
                _("No development item has a label yet. Label some first."), code="no_development_items"
            )
        stored = candidate if candidate.pk else _stored_first(source, access)
        _priced(stored)
        stored.fingerprint, stored.asked_as, stored.budget = fingerprint, asked_as, budget
        stored.save()
        job = jobs.enqueue(
            project=candidate.project,
            kind_name=KIND,
            params={"candidate": stored.pk, "source": source.pk},
            unique_key=f"candidate:{source.pk}",
            user=access.user,
            total=count,
        )
        limit = None if budget is None else plain(budget)
        _record(access, stored, action="source.candidate_run", items=count, budget=limit, job=job.pk)
    return job


def ask_candidate(context: JobContext) -> dict[str, Any]:
    """The handler of the job."""
    rows = PromptCandidate.objects.select_related("source__project", "project")
    candidate = rows.get(pk=context.params["candidate"], project=context.job.project_id)
    ids = labelled_items(candidate.project).values_list("item_id", flat=True)
    items = NamedItems(np.array(sorted(ids), dtype=np.int64))
    with context.chunk(total=items.count):
        pass
    done = predict_missing(
        context,
        frozen_source=candidate,
        items=items,
        stage=Spend.Stage.PROMPTS.value,
        says=Words(gettext_noop("Asking the model")),
        done=0,
    )
    return {"candidate": candidate.number, "items": done}


def use_candidate(*, access: Access, candidate: PromptCandidate) -> Source:
    """Put it in force: the source is asked so from now on.

    Raises as `save_source` does: under a run that rests on the source as it is nothing changes.
    """
    source, prompt = candidate.source, prompt_of(candidate)
    if (params := params_of(candidate)) == source.params:
        save_prompt(source=source, user=access.user, prompt=prompt)
    else:
        save_source(
            project=candidate.project,
            user=access.user,
            name=source.name,
            backend=source.backend,
            params=params,
            cost_per_label=source.cost_per_label,
            cost_function=source.cost_function,
            prices=source.prices,
            price=source.price,
            prompt=prompt,
            source=source,
        )
    _record(access, candidate, action="source.candidate_used")
    return Source.objects.get(pk=source.pk)


def paid_for(source: Source) -> Decimal:
    """What all candidates of the source were paid so far."""
    paid = Spend.objects.filter(candidate__source=source).aggregate(total=Sum("amount"))["total"]
    return paid or Decimal(0)


def job_of(candidate: PromptCandidate) -> Job | None:
    """The newest that runs or ran it."""
    found = Job.objects.filter(project=candidate.project_id, kind=KIND, params__candidate=candidate.pk)
    return found.order_by("-id").first() if candidate.pk else None


def _new(source: Source, prompt: Prompt, params: Mapping[str, Any]) -> PromptCandidate:
    return _priced(
        PromptCandidate(
            project=source.project,
            source=source,
            number=1,
            system=prompt.system,
            template=prompt.template,
            examples=[{"fields": dict(one.fields), "answer": one.answer} for one in prompt.examples],
            params=dict(params),
        )
    )


def _first(source: Source) -> PromptCandidate:
    return _new(source, prompt_in_force(source), how_it_writes(source.params))


def _stored_first(source: Source, access: Access) -> PromptCandidate:
    """Store the prompt in force as the first candidate, where there is none; returns the first."""
    found = PromptCandidate.objects.filter(source=source).order_by("number").first()
    if found is None:
        found = _first(source)
        found.created_by = access.user
        found.save()
    return _with_source(found, source)


def _with_source(candidate: PromptCandidate, source: Source) -> PromptCandidate:
    candidate.source, candidate.project = source, source.project
    return candidate


def _priced(candidate: PromptCandidate) -> PromptCandidate:
    """Charged as its source is charged now."""
    source = candidate.source
    candidate.position, candidate.cost_per_label = source.position, source.cost_per_label
    candidate.cost_function, candidate.prices = source.cost_function, source.prices
    return candidate


def _last_number(source: Source) -> int:
    return PromptCandidate.objects.filter(source=source).aggregate(last=Max("number"))["last"] or 0


def _refuse_twice(source: Source, made: PromptCandidate) -> None:
    """Two that ask in the same way would have the same answers."""
    asked_by = ways_to_ask(source)
    asked = asked_by(prompt_of(made), params_of(made))
    for one in candidates_of(source):
        if asked == asked_by(prompt_of(one), params_of(one)):
            raise InputError(
                _("Candidate %(number)s asks in just this way.") % {"number": one.number}, where="template"
            )


def _lock(source: Source) -> None:
    locked_project(source.project_id)


def _record(access: Access, candidate: PromptCandidate, *, action: str, **data: Any) -> None:
    audit.record(
        project=candidate.project,
        actor=access.user,
        action=action,
        target=f"source:{candidate.source_id}",
        data={"name": candidate.source.name, "candidate": candidate.number, **data},
    )
