"""What is answered: the labels that a delivery of a run would hold now, or the stored answers of a source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound

from annotation.common.ranges import of_items
from annotation.common.value_reader import Value
from annotation.errors import ConflictError
from annotation.models import Item, Project
from annotation.permissions import Access
from routing.common.states import ROUTED
from routing.label_studio.label_config import LabelControl
from routing.labels.all_items import rows_of
from routing.labels.columns import PERSON, DeliveryContext
from routing.models import ItemScore, Prediction, Run, Source
from routing.visibility import may_see_model_output


@dataclass(frozen=True)
class Given:
    """One answer. `score` is 1 minus the uncertainty of the model that gave it; None where there is none."""

    value: Value
    said_by: str
    score: float | None


class Answers(Protocol):
    version: str

    def of(self, items: Sequence[Item]) -> Mapping[int, Given]:
        """By the ids of those of `items` that have one."""


def check_named(project: Project, *, run: int | None, source: int | None) -> None:
    """Raises NotFound for a run or a source that there is not."""
    if source is not None and not Source.objects.filter(project=project, pk=source).exists():
        raise NotFound(_("This project has no source with the id %(id)s.") % {"id": source})
    if run is not None and not Run.objects.filter(project=project, number=run).exists():
        raise NotFound(_("This project has no run %(number)s.") % {"number": run})


def answers_of(project: Project, access: Access, *, run: int | None, source: int | None) -> Answers:
    """Those of a source, of a run by its number, or of the newest run that was routed.

    Raises NotFound for a run or a source that there is not, and ConflictError where nothing may be shown now,
    or there is nothing yet.
    """
    check_named(project, run=run, source=source)
    if not may_see_model_output(project, access):
        raise ConflictError(
            _("Answers of models are not shown before a run is analysed, nor while another one is open."),
            code="models_not_shown",
        )
    if source is not None:
        return SourceAnswers(Source.objects.get(project=project, pk=source))
    routed = Run.objects.filter(project=project, state__in=ROUTED, certificate__isnull=False)
    routed = routed.select_related("project", "certificate").order_by("-number")
    if run is not None:
        routed = routed.filter(number=run)
    newest = routed.first()
    if newest is None:
        raise ConflictError(
            _("There are no labels to give yet: the run has to be routed first."), code="no_labels_yet"
        )
    return RunAnswers(newest)


class RunAnswers:
    """Labels of people, and of the models of the run where people gave none."""

    def __init__(self, run: Run) -> None:
        self.version = f"{run.project.slug} run {run.number}"
        self._run = run

    def of(self, items: Sequence[Item]) -> Mapping[int, Given]:
        if not items:
            return {}
        context = DeliveryContext.of(self._run)
        first = context.run_sources[0].source.name
        found = {}
        for item, row in zip(items, rows_of(context, items), strict=True):
            if row.label is None or row.source is None:
                continue
            # The uncertainty is that of the first source, and says nothing of another one's answer.
            sure = None if row.uncertainty is None or row.source != first else 1 - row.uncertainty
            said_by = _("a person") if row.source == PERSON else row.source
            found[item.pk] = Given(row.label, said_by, sure)
        return found


class SourceAnswers:
    """What a source answered last, under its newest fingerprint."""

    def __init__(self, source: Source) -> None:
        newest = (
            Prediction.objects.filter(source=source).order_by("-pk").values_list("fingerprint", flat=True)
        )
        self._fingerprint = newest.first()
        if self._fingerprint is None:
            raise ConflictError(
                _("%(source)s has not answered anything yet.") % {"source": source.name},
                code="source_unanswered",
            )
        self.version = f"{source.name} {self._fingerprint[:8]}"
        self._source = source

    def of(self, items: Sequence[Item]) -> Mapping[int, Given]:
        ids = [item.pk for item in items]
        if not ids:
            return {}
        answers = Prediction.objects.filter(
            of_items("item", ids), source=self._source, fingerprint=self._fingerprint, value__isnull=False
        )
        rows = list(answers.values_list("pk", "item_id", "value", "raw"))
        uncertain = dict(
            ItemScore.objects.filter(prediction__in=[row[0] for row in rows], reason="")
            .order_by("-pk")
            .values_list("prediction_id", "value")
        )
        wanted = set(ids)
        return {
            item: Given(value, self._source.name, _score(uncertain.get(pk), raw))
            for pk, item, value, raw in rows
            if item in wanted and value is not None
        }


def predictions(asked: LabelControl, answers: Answers, items: Sequence[Item | None]) -> list[Any]:
    """One entry for each of `items`: a prediction, or an empty list, of which Label Studio makes none."""
    given = answers.of([*{item.pk: item for item in items if item is not None}.values()])
    return [_prediction(asked, answers.version, item, given) for item in items]


def _prediction(asked: LabelControl, version: str, item: Item | None, given: Mapping[int, Given]) -> Any:
    answer = None if item is None else given.get(item.pk)
    if item is None or answer is None:
        return []
    name = f"{item.external_id}\n{version}"
    result = asked.result(answer.value, name=name, said_by=answer.said_by)
    if not result:
        return []
    return {"result": result, "score": answer.score, "model_version": version}


def _score(uncertainty: float | None, raw: Mapping[str, Any]) -> float | None:
    if uncertainty is not None:
        return 1 - uncertainty
    confidence = raw.get("confidence")
    return float(confidence) if isinstance(confidence, int | float) else None
