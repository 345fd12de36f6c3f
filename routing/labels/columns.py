"""What is delivered for some items, column by column: a few queries, whatever their number."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Exists, OuterRef, Q

from annotation.common.ranges import of_items
from annotation.common.replaced_labels import choice_keys, choice_names, replaced_labels
from annotation.common.value_reader import Value
from annotation.labelling.label_queries import imported_batches
from annotation.labelling.labels_of_record import RecordRow, record_rows
from annotation.labelling.validation import GIVEN_ELSEWHERE
from annotation.models import HeldOutItem, Item, Label, Settlement, ShownSuggestion, WorkItem
from routing.core.exact import plain
from routing.labels.page import ADDED
from routing.models import DrawItem, ExpertRequest, RoundItem, Route, Run, RunSource
from routing.runs.covered_items import covered_items
from routing.runs.expert.delivered import not_delivered, reasons_of
from routing.runs.usable_answers import usable_values
from routing.visibility import hidden_batches, in_open_calibration


@dataclass(frozen=True)
class DeliveryContext:
    """The run, its sources, the names of the choices, and which batches count."""

    run: Run
    run_sources: Sequence[RunSource]
    names: Mapping[str, str]
    hidden: set[int]
    open_calibration: Q
    runs_of_batches: Mapping[int, int]
    of_experts: Set[int]
    certificate_id: str | None
    imported: Set[int] = frozenset()
    replaced: frozenset[str] = frozenset()
    split: Set[str] = frozenset()

    @classmethod
    def of(cls, run: Run) -> "DeliveryContext":
        runs = list(run.project.runs.only(*BATCHES, "number"))
        return cls(
            run=run,
            run_sources=list(run.run_sources.select_related("source").order_by("position")),
            names=choice_names(run.project),
            hidden=hidden_batches(run.project),
            open_calibration=in_open_calibration(run.project, "pk"),
            runs_of_batches={batch: other.number for other in runs for batch in other.own_batches},
            of_experts=frozenset(batch for other in runs for batch in other.expert_batches),
            certificate_id=None if run.by_people else run.certificate.sha256,
            imported=frozenset(imported_batches(run.project)),
            replaced=frozenset(replaced_labels(run.project).into),
            split=replaced_labels(run.project).split,
        )

    @property
    def choices(self) -> dict[str, str]:
        """Those that a label may be now, by key; the last ones were split, and wait for people."""
        merged = replaced_labels(self.run.project).merged
        return {key: name for key, name in self.names.items() if key not in merged}

    @cached_property
    def own_batches(self) -> Mapping[int, int]:
        """Batches of the run, whose labels go before others, by rank."""
        return self.run.own_batches

    def in_open_calibration(self, ids: Collection[int]) -> set[int]:
        """Of these items those that an open run asks about again: nothing that people said of them counts,
        also where a correction has settled it meanwhile.
        """
        among = Item.objects.filter(of_items("pk", list(ids)))
        return set(among.filter(self.open_calibration).values_list("pk", flat=True)).intersection(ids)

    def name_of(self, value: Value) -> Value | None:
        """Of choices their names as they are now; None where the label is no choice."""
        if isinstance(value, list):
            return [self.names.get(key, key) for key in value]
        return self.names.get(value)


State = WorkItem.State
PERSON = "person"
EXPERT = "expert"
BATCHES = (
    *("calibration_batch", "routed_batch", "expert_batch", "expert_routed_batch"),
    "later_audit_batch",
)
IMPORTED = "imported"
NOT_SHOWN = "none"
Columns = dict[str, list[Any]]


def columns_of(context: DeliveryContext, ids: Sequence[int], external_ids: Sequence[str]) -> Columns:
    """The columns of `routing.labels.page.Row`, of the items with these keys."""
    run = context.run
    covered = covered_items(run).filter(of_items("item", ids)).values_list("item_id", "u", "intake__number")
    pool = {pk: u for pk, u, _intake in covered}
    later = {pk: intake for pk, _u, intake in covered if intake is not None}
    certified = pool.keys() - later.keys() if run.audit_alarm_at else pool.keys()
    routes = dict(Route.objects.filter(of_items("item", ids), run=run).values_list("item_id", "position"))
    columns: Columns = {name: [None] * len(ids) for name in ADDED}
    columns["external_id"] = list(external_ids)
    columns["expert_saw"] = reasons_of(run, ids)
    columns["uncertainty"] = list(map(pool.get, ids))
    columns["certificate_id"] = [context.certificate_id if pk in certified else None for pk in ids]
    columns["taken_in"] = list(map(later.get, ids))
    columns["audited"] = [False if pk in later else None for pk in ids]
    places = {pk: place for place, pk in enumerate(ids)}
    _draw(columns, run, ids, places)
    records = record_rows(run.project, ids, hidden=context.hidden, before_others=context.own_batches)
    gone = context.in_open_calibration(records).union(not_delivered(run, records, routes))
    if (only := run.only_batches) is not None:
        gone |= {pk for pk, one in records.items() if pk in pool and one.batch_id not in only}
    for pk in gone:
        records.pop(pk, None)
    _by_people(columns, context, places, records)
    left = [(place, pk) for pk, place in places.items() if pk not in records]
    _outside(columns, run, [(place, pk) for place, pk in left if pk not in pool])
    _by_models(columns, context, ids, [(place, pk) for place, pk in left if pk in pool], routes)
    if context.split:
        _chosen_anew(columns, context, ids)
    # What is not decided waits for her as well, but she was not asked.
    undecided = ExpertRequest.Why.UNDECIDED
    columns["expert_saw"] = [None if why == undecided else why for why in columns["expert_saw"]]
    return columns


def _chosen_anew(columns: Columns, context: DeliveryContext, ids: Sequence[int]) -> None:
    """Where a label was split, the name of what people have chosen since. The label itself stays what it was,
    as certificates speak of it.
    """
    split = [
        pk for pk, label in zip(ids, columns["label"], strict=True) if choice_keys(label) & context.split
    ]
    if not split:
        return
    places = {pk: place for place, pk in enumerate(ids)}
    for pk, record in record_rows(context.run.project, split, hidden=context.hidden).items():
        if not choice_keys(record.value) & context.split:
            columns["label_name"][places[pk]] = context.name_of(record.value)


def _draw(columns: Columns, run: Run, ids: Sequence[int], places: Mapping[int, int]) -> None:
    drawn = DrawItem.objects.filter(of_items("item", ids), draw__run=run)
    columns["asked"] = [None if run.by_people else False] * len(ids)
    for pk, probability, asked in drawn.values_list("item_id", "probability", "asked"):
        if (place := places.get(pk)) is not None:
            columns["p_i"][place], columns["asked"][place] = plain(probability), asked


def _by_people(
    columns: Columns, context: DeliveryContext, places: Mapping[int, int], records: Mapping[int, RecordRow]
) -> None:
    untouched = _untouched(context, records)
    suggested = _suggested(context, records)
    for pk, record in records.items():
        place = places[pk]
        columns["label"][place] = record.value
        columns["label_name"][place] = context.name_of(record.value)
        columns["source"][place] = EXPERT if record.batch_id in context.of_experts else PERSON
        columns["annotator"][place] = record.annotators
        columns["settled_by"][place] = IMPORTED if pk in untouched else record.method
        columns["run"][place] = context.runs_of_batches.get(record.batch_id)
        columns["suggestion"][place] = suggested.get((record.batch_id, pk))
        if columns["audited"][place] is not None:
            columns["audited"][place] = record.batch_id == context.run.later_audit_batch_id


def _suggested(context: DeliveryContext, records: Mapping[int, RecordRow]) -> dict[tuple[int, int], str]:
    """By batch and item, of the labels that people gave in a run with suggestions, what was shown with each.
    Such a run asks one person about an item.
    """
    if not context.run.suggestions:
        return {}
    labels = Label.objects.filter(
        of_items("item", list(records)),
        work_item__batch__in=list(context.own_batches),
        superseded_by__isnull=True,
    )
    elsewhere = Label.objects.filter(
        work_item=OuterRef("work_item"), idempotency_key__startswith=GIVEN_ELSEWHERE
    )
    rows = labels.exclude(Exists(elsewhere))  # of those nobody knows here what was shown
    told = rows.values_list("work_item__batch_id", "item_id", "suggestion")
    return {(batch_id, pk): shown or NOT_SHOWN for batch_id, pk, shown in told}


def _untouched(context: DeliveryContext, records: Mapping[int, RecordRow]) -> set[int]:
    """Items whose label came with them, and that nobody here has corrected or decided about."""
    as_it_came = (None, Settlement.Method.MAJORITY)
    came = {
        pk
        for pk, record in records.items()
        if record.batch_id in context.imported and record.method in as_it_came
    }
    corrected = Label.objects.filter(
        of_items("item", list(came)),
        work_item__batch__in=context.imported,
        superseded_by__isnull=True,
        version__gt=1,
    )
    return came.difference(corrected.values_list("item_id", flat=True)) if came else came


def _outside(columns: Columns, run: Run, items: Sequence[tuple[int, int]]) -> None:
    """Items that are not in the run's pool, and that nobody has labelled."""
    if not items:
        return
    among = of_items("pk", [pk for _, pk in items])
    later = set(Item.objects.filter(among, created_at__gt=run.created_at).values_list("pk", flat=True))
    asked = RoundItem.objects.filter(of_items("item", [pk for _, pk in items]))
    rounds = dict(asked.values_list("item_id", "round__number"))
    shown = ShownSuggestion.objects.filter(
        of_items("work_item__item", [pk for _, pk in items]), created_at__lt=run.created_at
    )
    suggested = set(shown.values_list("work_item__item_id", flat=True))
    erased = set(Item.objects.filter(among, erased_at__isnull=False).values_list("pk", flat=True))
    held = HeldOutItem.objects.filter(of_items("item", [pk for _, pk in items]))
    purposes = dict(held.values_list("item_id", "purpose"))
    for place, pk in items:
        if pk in erased:
            columns["reason"][place] = f"not covered by run {run.number}: its content was erased"
            continue
        if pk in purposes:
            columns["reason"][place] = (
                f"not covered by run {run.number}: it is held out ({purposes[pk]}), and no run labels it"
            )
            continue
        if pk in rounds:
            columns["reason"][place] = (
                f"not covered by run {run.number}: it was in guideline round {rounds[pk]}"
            )
            continue
        if pk in suggested and pk not in later:
            columns["reason"][place] = (
                f"not covered by run {run.number}: somebody was shown what a model had answered"
            )
            continue
        if run.by_people and pk not in later:
            columns["reason"][place] = f"not covered by run {run.number}: nobody was asked about it there"
            continue
        why = "it came after" if pk in later else "an earlier run had used it before"
        columns["reason"][place] = f"not covered by run {run.number}: {why} the pool was frozen"


def _by_models(
    columns: Columns,
    context: DeliveryContext,
    ids: Sequence[int],
    items: Sequence[tuple[int, int]],
    routes: Mapping[int, int],
) -> None:
    """The answer of the source that an item was sent to, or of the first after it that has one."""
    run, read = context.run, _Labels(context)
    answers = [dict(usable_values(run_source, ids)) for run_source in context.run_sources]
    sources = [run_source.source.name for run_source in context.run_sources]
    from_position = [list(zip(sources, answers, strict=True))[first:] for first in range(len(sources) + 1)]
    states_of = _states_of_work(context, ids)
    labels, names, given_by = columns["label"], columns["label_name"], columns["source"]
    reasons, runs, number, saw = columns["reason"], columns["run"], run.number, columns["expert_saw"]
    for place, pk in items:
        runs[place] = number
        states = states_of.get(pk, ())
        differ = bool(states) and not run.by_expert and _people_differ(run, states)
        position = routes.get(pk)
        if position is not None and not differ:
            for source, given in from_position[min(position - 1, len(sources))]:
                if (text := given.get(pk)) is not None:
                    labels[place], names[place] = read[text]
                    given_by[place] = source
                    break
            else:
                reasons[place] = _reason(states, differ=False, expert=saw[place] is not None)
        else:
            reasons[place] = _reason(states, differ=differ, expert=saw[place] is not None)


def _states_of_work(context: DeliveryContext, ids: Sequence[int]) -> Mapping[int, list[str]]:
    """Of the items that people were asked about in this run, because no model labels them: what is looked at
    for the audit of later items keeps its model's label until a person has given one.
    """
    found: dict[int, list[str]] = defaultdict(list)
    batches = context.own_batches.keys() - {context.run.later_audit_batch_id}
    work = WorkItem.objects.filter(of_items("item", ids), batch__in=batches)
    for pk, state in work.values_list("item_id", "state"):
        found[pk].append(state)
    return found


class _Labels(dict[str, tuple[Value | None, Value | None]]):
    """JSON text of an answer -> the label and its name. Most are one of a few, each read once a page."""

    def __init__(self, context: DeliveryContext) -> None:
        self._context = context

    def __missing__(self, text: str) -> tuple[Value | None, Value | None]:
        value = json.loads(text)
        read = self[text] = value, self._context.name_of(value)
        return read


def _people_differ(run: Run, states: Collection[str]) -> bool:
    """Whether all whom an item without a label of record was put to have answered."""
    if State.DONE not in states or {State.OPEN, State.LEASED, State.UNLABELABLE}.intersection(states):
        return False
    return State.WITHDRAWN not in states or run.state != Run.State.CANCELLED


def _reason(states: Collection[str], *, differ: bool, expert: bool) -> str:
    """Why an item of the pool has no label. `states` are those of the item's work; `expert`: whether the
    expert is asked about it.
    """
    if differ:
        return "people differ about it, and nobody has decided"
    if expert and not {State.OPEN, State.LEASED}.isdisjoint(states):
        return "it waits for the expert"
    if State.UNLABELABLE in states:
        return "nobody could label it"
    if State.WITHDRAWN in states:
        return "the run was cancelled before a person labelled it"
    return "it waits for the expert" if expert else "it waits for a person"
