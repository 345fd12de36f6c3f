"""What is odd about the answers of sources, said before a draw and money are spent on them."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.models import Item, Project
from annotation.values import ValueReader, reader_of
from routing.backends import Answer, predict_all
from routing.core.scores import make_score
from routing.models import Source
from routing.selectors.sent_answers import sent_so_far
from routing.services.opened import open_source
from routing.services.score_fields import score_fields

LISTING = frozenset({"openai_api", "openai_batch"})
"""Backends whose server mostly has a list of its models."""
KNOWN_BEFORE = frozenset({"recorded", "uploaded"})
"""Backends whose answers are there before a run asks."""
SAMPLE = 50
LOOKED_AT = 1_000
"""Items among which a usable score is looked for; where there is one, it is mostly at the first."""


def recorded_warnings(project: Project, sources: Sequence[Source]) -> tuple[str, ...]:
    """Sentences about `sources`, the cheapest place first, whose columns cannot serve. No answer is told, so
    labels stay blind.
    """
    return tuple(
        warning
        for number, source in enumerate(sources)
        for warning in _warnings(project, source, first=number == 0)
    )


def warnings_of(source: Source) -> tuple[str, ...]:
    """The same of one source of a project, at the place that it has, and whether its server could be asked
    what it serves.
    """
    first = not source.project.sources.filter(position__lt=source.position).exists()
    warnings = _warnings(source.project, source, first=first)
    if source.backend in LISTING and source.params.get("url") and not source.served:
        warnings.append(
            _(
                "%(source)s: this address has no list of models, so neither the address nor the name "
                "of the model could be checked. Try it on a few items before a run."
            )
            % {"source": source.name}
        )
    return tuple(warnings)


def usable_scores(project: Project, source: Source, name: str, params: Mapping[str, Any]) -> bool:
    """Whether any answer of the first source has the score `name` with `params`: without one, none of its
    answers can be used. Only recorded and uploaded answers are known before a run; others count as usable.
    """
    if source.backend not in KNOWN_BEFORE:
        return True
    backend, score = open_source(source), make_score(name, params)
    if not backend.fields:
        return False
    reader, items = reader_of(project), Item.objects.filter(project=project).order_by("position")
    for start, stop in ((0, SAMPLE), (SAMPLE, LOOKED_AT)):
        looked_at = list(items[start:stop])
        if not start and not looked_at:
            return True
        if any(score(_read(answer, reader)).usable for answer in predict_all(backend, looked_at)):
            return True
    return False


def _warnings(project: Project, source: Source, *, first: bool) -> list[str]:
    if source.backend == "uploaded":
        return _of_uploaded(project, source, first=first)
    if source.backend != "recorded":
        return _without_score(source) if first else []
    backend, reader = open_source(source), reader_of(project)
    sample = list(Item.objects.filter(project=project).order_by("position")[:SAMPLE])
    warnings = []
    labelled = not sample or any(
        reader(answer.value)[0] is not None for answer in predict_all(backend, sample)
    )
    if not labelled:
        wanted = _("one of the project's labels") if reader.has_choices else _("an answer that can be read")
        warnings.append(
            _(
                "%(source)s: none of the first %(count)s items has %(wanted)s in the column "
                "%(params)r. What has none goes on to the next source."
            )
            % {
                "source": source.name,
                "count": len(sample),
                "wanted": wanted,
                "params": source.params["label_column"],
            }
        )
    if first and not backend.fields:
        warnings.append(
            _(
                "%(source)s comes first and names no column of confidences, uncertainties or "
                "probabilities, by which its answers are routed: none of them can be used, and every "
                "item goes on to the next source."
            )
            % {"source": source.name}
        )
    elif first and labelled and not usable_scores(project, source, backend.default_score, {}):
        warnings.append(
            _(
                "%(source)s comes first, and none of its answers that were looked at has a usable "
                "score, by which they are routed: look at the columns that it names."
            )
            % {"source": source.name}
        )
    return warnings


def _of_uploaded(project: Project, source: Source, *, first: bool) -> list[str]:
    """Of answers that were sent in: how many are missing, and whether they can be routed by."""
    backend, sent = open_source(source), sent_so_far(source)
    warnings = []
    if sent.missing:
        warnings.append(
            _(
                "%(source)s: no answer was sent for %(missing)s of %(count)s items under the revision "
                "%(revision)s. What has none goes on to the next source, in every run under it."
            )
            % {
                "source": source.name,
                "missing": sent.missing,
                "count": sent.items,
                "revision": sent.revision,
            }
        )
    if first and sent.answers and not usable_scores(project, source, backend.default_score, {}):
        warnings.append(
            _(
                "%(source)s comes first, and none of its answers that were looked at has a usable "
                "score, by which they are routed: send a confidence or probabilities with them."
            )
            % {"source": source.name}
        )
    return warnings


def _without_score(source: Source) -> list[str]:
    """Of a first source whose settings leave it without anything that it could be routed by."""
    if open_source(source).fields:
        return []
    return [
        _(
            "%(source)s comes first, and as it is set it says nothing of how unsure it is: none of "
            "its answers can be used, and every item goes on to the next source. Ask for the "
            "probabilities of its tokens, for several answers, or how sure it is."
        )
        % {"source": source.name}
    ]


def _read(answer: Answer, reader: ValueReader) -> dict[str, object]:
    """What scores read, of an answer that is not stored yet."""
    return score_fields(answer.raw, reader(answer.value)[0], answer.reason, answer.finish_reason, reader)
