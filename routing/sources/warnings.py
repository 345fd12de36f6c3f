"""What was seen of the answers of sources, in sentences, and what is odd about them: said before a draw and
money are spent on them.
"""

from collections.abc import Iterable, Sequence

from django.utils.translation import gettext as _, ngettext

from annotation.common.value_reader import reader_of
from annotation.models import Project
from routing.models import Source
from routing.sources.backend_for import backend_for
from routing.sources.backends import backend_class
from routing.sources.sent_answers import sent_so_far
from routing.sources.usability import (
    SourcesUsability,
    Unusable,
    Usability,
    usability_of,
    usability_of_sources,
    where_all_unusable_go,
    where_unusable_go,
)


def usability_in_words(seen: Usability) -> str:
    """How many answers can be used, and why the others cannot; "" where nothing is known of them."""
    if not seen.looked_at:
        return ""
    return " ".join(filter(None, [f"{seen.source}: {_counted(seen)}", _score(seen)]))


def unusable_in_words(seen: Usability) -> str:
    """The same; "" where every answer can be used and the score tells them apart."""
    return usability_in_words(seen) if seen.unusable or seen.hardly_orders else ""


def reasons_in_words(reasons: Iterable[Unusable]) -> str:
    """The kinds of reasons with their counts, and the examples that may be shown."""
    return "; ".join(_kind(reason) for reason in reasons)


def confirmation_question(asking: Iterable[Usability]) -> str:
    """What is to be confirmed before a run of these sources starts."""
    seen = list(asking)
    then = where_all_unusable_go() if any(one.unusable for one in seen) else ""
    return " ".join(filter(None, [*map(usability_in_words, seen), then]))


def _counted(seen: Usability) -> str:
    numbers = {
        "n": f"{seen.looked_at:,}",
        "usable": f"{seen.usable:,}",
        "unusable": f"{seen.unusable:,}",
        "items": f"{seen.items:,}",
        "why": reasons_in_words(seen.reasons),
    }
    words = _some() if seen.unusable else _all()
    sampled = "sampled" if seen.sampled else ""
    return words[sampled, seen.basis if (sampled, seen.basis) in words else ""] % numbers


def _all() -> dict[tuple[str, str], str]:
    """By "sampled" and the basis that is named, that all can be used."""
    return {
        ("", ""): _("all %(n)s answers can be used."),
        ("", "run"): _("all %(n)s answers in its newest run can be used."),
        ("", "try"): _("when it was tried, all %(n)s answers could be used."),
        ("sampled", ""): _("all of %(n)s answers looked at, spread over %(items)s items, can be used."),
        ("sampled", "run"): _(
            "all of %(n)s answers looked at, spread over the %(items)s in its newest run, can be used."
        ),
    }


def _some() -> dict[tuple[str, str], str]:
    """The same where some cannot be."""
    return {
        ("", ""): _("of %(n)s answers, %(unusable)s cannot be used: %(why)s."),
        ("", "run"): _("of %(n)s answers in its newest run, %(unusable)s cannot be used: %(why)s."),
        ("", "try"): _("of %(n)s answers when it was tried, %(unusable)s cannot be used: %(why)s."),
        ("sampled", ""): _(
            "of %(n)s answers looked at, spread over %(items)s items, %(unusable)s cannot be used: %(why)s."
        ),
        ("sampled", "run"): _(
            "of %(n)s answers looked at, spread over the %(items)s in its newest run, %(unusable)s cannot be "
            "used: %(why)s."
        ),
    }


def _score(seen: Usability) -> str:
    """Of a score that hardly tells answers apart."""
    if not seen.hardly_orders:
        return ""
    words = ngettext(
        "Its score takes %(values)s value only, the same for %(commonest)s of %(usable)s answers: it hardly "
        "tells which of them to trust.",
        "Its score takes %(values)s values only, the commonest for %(commonest)s of %(usable)s answers: it "
        "hardly tells which of them to trust.",
        seen.score_values or 0,
    )
    return words % {
        "values": seen.score_values,
        "commonest": f"{seen.commonest:,}",
        "usable": f"{seen.usable:,}",
    }


def _kind(reason: Unusable) -> str:
    shown = ", ".join(f"“{example}”" for example in reason.examples)
    return f"{reason.count:,} {reason.words}{f' ({shown})' if shown else ''}"


def source_warnings(
    project: Project, sources: Sequence[Source], looked: SourcesUsability | None = None
) -> tuple[str, ...]:
    """Sentences about `sources`, the cheapest place first, whose columns cannot serve; `looked` is what was
    seen of them, if that is known. No answer is told, so labels stay blind.
    """
    looked = looked or usability_of_sources(project, sources)
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
    warnings = _warnings(source, usability_of(source), first=first)
    kind = backend_class(source.backend)
    if kind.lists_models and any(map(source.params.get, kind.addresses())) and not source.served:
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
                "then": where_unusable_go(first=first),
            }
        )
    if first and not backend.fields:
        warnings.append(
            _(
                "%(source)s comes first and names no column of confidences, uncertainties or "
                "probabilities, by which its answers are routed: none of them can be used. %(then)s"
            )
            % {"source": source.name, "then": where_unusable_go(first=True)}
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
    if sent.missing and not sent.answers:
        warnings.append(
            _(
                "%(source)s: its answers are to be sent next, for %(count)s items under the revision "
                "%(revision)s: as a file on the page “Answers”, by `hypac predictions`, or by the API. A run "
                "takes those that were sent before it begins."
            )
            % {"source": source.name, "count": sent.items, "revision": sent.revision}
        )
    elif sent.missing:
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
                "then": where_unusable_go(first=first),
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
        % {"source": source.name, "then": where_unusable_go(first=True)}
    ]
