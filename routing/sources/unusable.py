"""Why answers cannot be used, in a few kinds: reasons that are stored with answers, brought together."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from annotation.common.value_reader import ValueReader
from routing.sources.storable import reason_columns

EXAMPLES = 5
SHOWN = 60
UNKNOWN, NEARLY_A_LABEL, OTHER = "unknown_label", "nearly_a_label", "other"
WORDS: dict[str, Callable[[], str]] = {
    UNKNOWN: lambda: _("no label of this project"),
    NEARLY_A_LABEL: lambda: _("a label of this project but for capitals"),
    "no_answer": lambda: _("no answer"),
    "cut_off": lambda: _("cut off"),
    "score_missing": lambda: _("nothing that says how sure the model was"),
    "score_outside": lambda: _("a confidence or uncertainty that is not from 0 to 1"),
    "score_no_number": lambda: _("a confidence or uncertainty that is no number"),
    "not_a_number": lambda: _("no number"),
    OTHER: lambda: _("another reason"),
}


def passed_on(*, first: bool) -> str:
    """Who labels an item for which the first model, or a later one, has no usable answer."""
    if first:
        return _(
            "An item without a usable answer of the first model counts as most uncertain: the next model "
            "labels it only if that model's threshold reaches that far, else people do."
        )
    return _("Where a later model has no usable answer, the item goes to the one after it, or to people.")


def all_passed_on() -> str:
    """The same of whichever model it is."""
    return f"{passed_on(first=True)} {passed_on(first=False)}"


@dataclass(frozen=True)
class Unusable:
    """So many answers for one kind of reason, with some of them."""

    code: str
    count: int
    examples: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return WORDS[self.code]()


def _about_labels() -> str:
    return _("Write labels exactly as the project has them, capitals included.")


def _about_scores() -> str:
    return _("Write how sure the model was as a number from 0 to 1 with a point, for example 0.87.")


ADVICE: dict[str, Callable[[], str]] = {
    UNKNOWN: _about_labels,
    NEARLY_A_LABEL: _about_labels,
    "score_missing": _about_scores,
    "score_outside": _about_scores,
    "score_no_number": _about_scores,
}


def advice(reasons: Iterable[Unusable], *, basis: str) -> str:
    """What to write instead in columns or in what is sent, and how to bring it in; "" where nothing helps."""
    ways = {
        "columns": _(
            "Correct the file, take its import back on the page of that import, and import it again, "
            "as long as nobody has worked on its items."
        ),
        "sent": _("Correct the file and send it again under a new revision."),
    }
    told = dict.fromkeys(ADVICE[reason.code]() for reason in reasons if reason.code in ADVICE)
    return " ".join([*told, ways[basis]]) if told and basis in ways else ""


def known_labels(reader: ValueReader) -> frozenset[str]:
    """The labels of a project without what tells spellings apart."""
    return frozenset(map(_folded, reader.keys))


def grouped(
    reasons: Iterable[str], labels: Collection[str], *, examples: bool = True
) -> tuple[Unusable, ...]:
    """The kinds among `reasons`, the commonest first, each with up to `EXAMPLES` different examples."""
    counts: Counter[str] = Counter()
    seen: dict[str, dict[str, None]] = {}
    for reason in reasons:
        code, example = kind_of(reason, labels)
        counts[code] += 1
        if example and examples and len(shown := seen.setdefault(code, {})) < EXAMPLES:
            shown[example] = None
    return tuple(Unusable(code, count, tuple(seen.get(code, ()))) for code, count in counts.most_common())


def kind_of(reason: str, labels: Collection[str]) -> tuple[str, str]:
    """The kind of a reason, and the answer or score that it quotes, "" where it quotes none. Of one without a
    code that is known here the words are all there is.
    """
    columns = reason_columns(reason)
    code, example = columns["reason_code"], columns["reason_quotes"]
    if code not in WORDS:
        return OTHER, reason[:SHOWN]
    nearly = code == UNKNOWN and _folded(example) in labels
    return NEARLY_A_LABEL if nearly else code, example[:SHOWN]


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
