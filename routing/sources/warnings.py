"""What is odd about the answers of sources, said before a draw and money are spent on them."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from annotation.common.value_reader import reader_of
from annotation.models import Project
from routing.models import Source
from routing.sources.backend_for import backend_for
from routing.sources.backends import backend_class
from routing.sources.sent_answers_queries import sent_so_far
from routing.sources.unusable import passed_on
from routing.sources.usability import Looked, Usability, look_at, look_at_one


def recorded_warnings(
    project: Project, sources: Sequence[Source], looked: Looked | None = None
) -> tuple[str, ...]:
    """Sentences about `sources`, the cheapest place first, whose columns cannot serve; `looked` is what was
    seen of them, if that is known. No answer is told, so labels stay blind.
    """
    looked = looked or look_at(project, sources)
    return tuple(
        warning
        for number, (source, seen) in enumerate(zip(sources, looked.sources, strict=True))
        for warning in _warnings(source, seen, first=number == 0)
    )


def warnings_of(source: Source) -> tuple[str, ...]:
    """The same of one source of a project, at the place that it has, and whether its server could be asked
    what it serves.
    """
    first = not source.project.sources.filter(position__lt=source.position).exists()
    warnings = _warnings(source, look_at_one(source), first=first)
    if backend_class(source.backend).lists_models and source.params.get("url") and not source.served:
        warnings.append(
            _(
                "%(source)s: this address has no list of models, so neither the address nor the name "
                "of the model could be checked. Try it on a few items before a run."
            )
            % {"source": source.name}
        )
    return tuple(warnings)


def _warnings(source: Source, seen: Usability, *, first: bool) -> list[str]:
    known_from = backend_class(source.backend).known_from
    if known_from == "sent":
        return _of_uploaded(source, seen, first=first)
    if known_from != "columns":
        return _without_score(source) if first else []
    return _of_columns(source, seen, first=first)


def _of_columns(source: Source, seen: Usability, *, first: bool) -> list[str]:
    """Of answers in imported columns: whether they are labels, and whether they can be routed by."""
    backend, reader = backend_for(source), reader_of(source.project)
    warnings = []
    labelled = bool(seen.labels) or not seen.looked_at
    if not labelled:
        wanted = (
            _("one of the project's labels") if reader.kind.has_choices else _("an answer that can be read")
        )
        warnings.append(
            _(
                "%(source)s: none of the %(count)s items looked at has %(wanted)s in the column "
                "%(params)r. %(then)s"
            )
            % {
                "source": source.name,
                "count": seen.looked_at,
                "wanted": wanted,
                "params": source.params["label_column"],
                "then": passed_on(first=first),
            }
        )
    if first and not backend.fields:
        warnings.append(
            _(
                "%(source)s comes first and names no column of confidences, uncertainties or "
                "probabilities, by which its answers are routed: none of them can be used. %(then)s"
            )
            % {"source": source.name, "then": passed_on(first=True)}
        )
    elif first and labelled and seen.looked_at and not seen.usable:
        warnings.append(
            _(
                "%(source)s comes first, and none of its answers that were looked at has a usable "
                "score, by which they are routed: look at the columns that it names."
            )
            % {"source": source.name}
        )
    return warnings


def _of_uploaded(source: Source, seen: Usability, *, first: bool) -> list[str]:
    """Of answers that were sent in: how many are missing, and whether they can be routed by."""
    sent = sent_so_far(source)
    warnings = []
    if sent.missing:
        warnings.append(
            _(
                "%(source)s: no answer was sent for %(missing)s of %(count)s items under the revision "
                "%(revision)s, and none can follow in a run under it. %(then)s"
            )
            % {
                "source": source.name,
                "missing": sent.missing,
                "count": sent.items,
                "revision": sent.revision,
                "then": passed_on(first=first),
            }
        )
    if first and sent.answers and not seen.usable:
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
    if backend_for(source).fields:
        return []
    return [
        _(
            "%(source)s comes first, and as it is set it says nothing of how unsure it is: none of "
            "its answers can be used. %(then)s Ask for the probabilities of its tokens, for several "
            "answers, or how sure it is."
        )
        % {"source": source.name, "then": passed_on(first=True)}
    ]
