"""What merging or splitting a label would touch, before anything is done."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from annotation.labelling.label_queries import labels_of, with_choice
from annotation.models import Draft, Project, WorkItem
from routing.models import Delivery, Prediction, PromptVersion, Run

KEEPS_PROMISE = frozenset({"zero_one", "set_equal"})
"""Losses that count labels as equal or not. What was equal before a merge or a split is equal after it, and
what has to be chosen anew people choose: no error is added to those that were certified.
"""


@dataclass(frozen=True)
class Effects:
    """How much a label is in.

    Attributes
    ----------
    labels, predictions
        Labels by people that count now, and answers of models, that give it.
    items
        Items with such a label by people.
    work, drafts
        Items for which people are asked now, and unsent answers that give it.
    known_answers
        Practice and gold items whose known answer gives it.
    runs, deliveries
        Numbers of the runs with a label or an answer that gives it, and how many deliveries they made.
    invalid
        Of these runs those whose certificate would hold no longer: their loss counts how far labels are
        apart.
    closed
        Of these runs those that could take later items in, and no longer can.
    prompts
        Names of sources with a solved example in their prompt that answers it.
    """

    labels: int
    predictions: int
    items: int
    work: int
    drafts: int
    known_answers: int
    runs: Sequence[int]
    deliveries: int
    invalid: Sequence[int]
    closed: Sequence[int]
    prompts: Sequence[str]


def effects_of(project: Project, key: str) -> Effects:
    """Of the label with this key."""
    labels = with_choice(labels_of(project).filter(superseded_by__isnull=True), project, key)
    predictions = with_choice(Prediction.objects.filter(source__project=project), project, key)
    runs = [run for run in project.runs.order_by("number") if _touches(run, key)]
    numbers = [run.number for run in runs]
    certified = [run for run in runs if hasattr(run, "certificate")]
    drafts = Draft.objects.filter(work_item__batch__project=project)
    return Effects(
        labels=labels.count(),
        predictions=predictions.count(),
        items=labels.order_by().values("item").distinct().count(),
        work=WorkItem.objects.filter(batch__project=project, state__in=WorkItem.UNFINISHED).count(),
        drafts=with_choice(drafts, project, key).count(),
        known_answers=with_choice(project.held_out.all(), project, key, field="answer").count(),
        runs=numbers,
        deliveries=Delivery.objects.filter(run__project=project, run__number__in=numbers).count(),
        invalid=[run.number for run in certified if run.loss not in KEEPS_PROMISE],
        closed=[run.number for run in certified if run.target == Run.Target.POPULATION],
        prompts=_prompts(project, key),
    )


def _touches(run: Run, key: str) -> bool:
    labels = labels_of(run.project).filter(work_item__batch__in=list(run.own_batches))
    if with_choice(labels, run.project, key).exists():
        return True
    asked = Q(pk__in=[])
    for source, fingerprint in run.run_sources.values_list("source", "fingerprint"):
        asked |= Q(source=source, fingerprint=fingerprint)
    return with_choice(Prediction.objects.filter(asked), run.project, key).exists()


def _prompts(project: Project, key: str) -> list[str]:
    names = {key, *project.choices.filter(key=key).values_list("name", flat=True)}
    newest: dict[str, PromptVersion] = {}
    versions = PromptVersion.objects.filter(source__project=project).select_related("source")
    for version in versions.order_by("source__position", "number"):
        newest[version.source.name] = version
    return [
        name
        for name, version in newest.items()
        if any(str(example.get("answer", "")).strip() in names for example in version.examples)
    ]
