"""What was seen of the answers of sources, in sentences."""

from collections.abc import Iterable

from django.utils.translation import gettext as _, ngettext

from routing.sources.unusable import Unusable, all_passed_on
from routing.sources.usability import Usability


def in_words(seen: Usability) -> str:
    """How many answers can be used, and why the others cannot; "" where nothing is known of them."""
    if not seen.looked_at:
        return ""
    return " ".join(filter(None, [f"{seen.source}: {_counted(seen)}", _score(seen)]))


def unusable_in_words(seen: Usability) -> str:
    """The same; "" where every answer can be used and the score tells them apart."""
    return in_words(seen) if seen.unusable or seen.hardly_orders else ""


def kinds_in_words(reasons: Iterable[Unusable]) -> str:
    """The kinds of reasons with their counts, and the examples that may be shown."""
    return "; ".join(_kind(reason) for reason in reasons)


def question(asking: Iterable[Usability]) -> str:
    """What is to be confirmed before a run of these sources starts."""
    seen = list(asking)
    then = all_passed_on() if any(one.unusable for one in seen) else ""
    return " ".join(filter(None, [*map(in_words, seen), then]))


def _counted(seen: Usability) -> str:
    numbers = {
        "n": f"{seen.looked_at:,}",
        "usable": f"{seen.usable:,}",
        "unusable": f"{seen.unusable:,}",
        "items": f"{seen.items:,}",
        "why": kinds_in_words(seen.reasons),
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
        "Its score takes %(values)s values only, and is the same for %(commonest)s of %(usable)s answers: it "
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
