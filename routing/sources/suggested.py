"""Models whose answers came with the imported data, as the names of its columns tell.

`pred1, conf1, cost1` and `fast_label, fast_confidence` are two models each answered by a `recorded` source.
Names alone are not believed: the answers have to be labels of the project.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from annotation.common.value_reader import reader_of
from annotation.errors import InputError
from annotation.imports.columns import sure_of
from annotation.models import Project, User
from routing.common.states import OPEN
from routing.models import Source
from routing.sources.backends.cells import decimal_cell
from routing.sources.backends.recorded import NAME
from routing.sources.manage import save_source
from routing.sources.usability import EXAMPLES, SHOWN

SAMPLE = 200
"""Items that are looked at."""
READABLE = 0.95
"""Least share of the answers that must be labels of the project."""
ROLES: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("tokens_in_column", (("tokens", "in"), ("prompt", "tokens"), ("input", "tokens"))),
    (
        "tokens_out_column",
        (("tokens", "out"), ("completion", "tokens"), ("output", "tokens"), ("tokens",)),
    ),
    ("label_column", (("label",), ("pred",), ("prediction",), ("predicted",), ("answer",), ("guess",))),
    ("confidence_column", (("conf",), ("confidence",), ("prob",), ("proba",), ("probability",), ("score",))),
    ("uncertainty_column", (("uncertainty",),)),
    ("cost_column", (("cost",), ("price",))),
    ("seconds_column", (("seconds",), ("latency", "s"))),
)
"""Param of the `recorded` backend -> words in a column's name that mean it; the longer ones first."""
DOTTED = {"label": "label_column", "score": "confidence_column"}
"""Behind the last dot of a column that Label Studio's importer made: before it is the model's version."""
TRUTH = frozenset({"true", "truth", "gold", "human", "expert", "reference", "target"})
"""Words of a column that rather holds what people said: never suggested as a model."""
_WORDS = re.compile(r"\d+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")


@dataclass(frozen=True)
class SuggestedSource:
    """A model that the data seems to hold. `params` are for the backend `recorded`; `cost` is the mean that
    is recorded, None where there is none; `answers` of `looked_at` items are labels of the project.
    """

    name: str
    params: dict[str, str]
    cost: Decimal | None
    answers: int
    looked_at: int

    @property
    def label_column(self) -> str:
        return self.params["label_column"]

    @property
    def has_score(self) -> bool:
        """Whether it says how sure the model was; the first model needs that."""
        return "confidence_column" in self.params or "uncertainty_column" in self.params


@dataclass(frozen=True)
class NotOffered:
    """A column of answers, it seems, of which `unknown` of `looked_at` values are no labels."""

    column: str
    unknown: int
    looked_at: int
    examples: tuple[str, ...]

    @property
    def words(self) -> str:
        shown = f" ({', '.join(f'“{one}”' for one in self.examples)})" if self.examples else ""
        return _(
            "“%(column)s” is not offered: %(unknown)s of %(count)s values looked at are no labels of this "
            "project%(examples)s. Correct the file and import it again; or press “Add a model”, choose "
            "“Answers that came with the data” and name the column: then these values cannot be used."
        ) % {
            "column": self.column,
            "unknown": self.unknown,
            "count": self.looked_at,
            "examples": shown,
        }


def suggested_sources(project: Project) -> list[SuggestedSource]:
    """Those whose columns no source of the project reads yet, the cheapest first; one that says how sure it
    is comes before those that do not.
    """
    groups, rows = _unread(project)
    found = [
        suggestion
        for name, params in groups.items()
        if (suggestion := _suggestion(project, name, params, rows)) is not None
    ]
    return sorted(
        found, key=lambda one: (not one.has_score, one.cost is None, one.cost or 0, one.name.casefold())
    )


def not_offered(project: Project) -> list[NotOffered]:
    """Columns that read like the answers of a model, of whose values too many are no labels."""
    groups, rows = _unread(project)
    read, found = reader_of(project), []
    examples = not project.runs.filter(state__in=OPEN).exists()
    for params in groups.values():
        given = _given(params, rows)
        unknown = [cell for cell in given if read(cell)[0] is None]
        # Without a label, and without a confidence beside it, a column is about something else.
        related = len(params) > 1 or len(unknown) < len(given)
        if given and related and not _readable(len(given) - len(unknown), len(given)):
            shown = [cell[:SHOWN] for cell in dict.fromkeys(unknown)][:EXAMPLES] if examples else []
            found.append(NotOffered(params["label_column"], len(unknown), len(given), tuple(shown)))
    return found


def _unread(project: Project) -> tuple[dict[str, dict[str, str]], list[Mapping[str, Any]]]:
    """Groups of columns that no source of the project reads yet, and the items that are looked at."""
    used = {
        column
        for params in Source.objects.filter(project=project).values_list("params", flat=True)
        for column in params.values()
        if isinstance(column, str)
    }
    groups = _groups(name for name in project.columns if name not in used)
    if not groups:
        return {}, []
    return groups, list(project.items.order_by("position").values_list("data", flat=True)[:SAMPLE])


def add_suggested(*, project: Project, user: User, prices: Mapping[str, Decimal | None]) -> list[Source]:
    """Make sources of the suggestions whose label column is a key of `prices`, in their order.

    Raises InputError where one is not suggested (any more), or where its price is None; `where` is then its
    label column. What `save_source` raises comes through; those before it are added.
    """
    suggested = {one.label_column: one for one in suggested_sources(project)}
    if not prices:
        raise InputError(_("Choose at least one of the models."))
    for column, price in prices.items():
        if column not in suggested:
            raise InputError(
                _("The column %(column)s is used by a source already, or holds no labels of this project.")
                % {"column": column},
                where=column,
            )
        if price is None:
            raise InputError(
                _("Say what one label by %(name)s costs; 0 is possible.") % {"name": suggested[column].name},
                where=column,
            )
    return [
        save_source(
            project=project,
            user=user,
            name=one.name,
            backend=NAME,
            params=dict(one.params),
            cost_per_label=price,
        )
        for column, one in suggested.items()
        if (price := prices.get(column)) is not None
    ]


def _groups(columns: Iterable[str]) -> dict[str, dict[str, str]]:
    """Name of a model -> the params that its columns give. Only those with a column of labels."""
    groups: dict[str, dict[str, str]] = {}
    names = list(columns)
    taken = _named_by_answer(names, groups)
    for column in names:
        if column in taken:
            continue
        model, dot, said = column.rpartition(".")
        if dot and model and (role := DOTTED.get(said)):
            groups.setdefault(model, {}).setdefault(role, column)
            continue
        words = tuple(_WORDS.findall(column))
        role, rest = _role([word.lower() for word in words])
        if role and not TRUTH.intersection(word.lower() for word in words):
            name = " ".join(words[index] for index in rest)
            groups.setdefault(name, {}).setdefault(role, column)
    return {name: params for name, params in groups.items() if _is_model(name, params)}


def _named_by_answer(columns: Sequence[str], groups: dict[str, dict[str, str]]) -> set[str]:
    """Put those models into `groups` whose columns are named by that of their answers: guess, guess_conf,
    guess_tokens. Returns these columns.
    """
    taken: set[str] = set()
    words = {column: [word.lower() for word in _WORDS.findall(column)] for column in columns}
    for answer in sure_of(columns):
        begin = words[answer]
        if TRUTH.intersection(begin):
            continue
        spelled = _WORDS.findall(answer)
        role, rest = _role(begin)
        kept = rest if role == "label_column" else range(len(begin))
        group = groups.setdefault(" ".join(spelled[index] for index in kept), {})
        group["label_column"] = answer
        taken.add(answer)
        for column, own in words.items():
            if column == answer or own[: len(begin)] != begin:
                continue
            said, left = _role(own[len(begin) :])
            if said and not left and said not in group:
                group[said] = column
                taken.add(column)
    return taken


def _is_model(name: str, params: Mapping[str, str]) -> bool:
    """A column "label" on its own is more likely what people said."""
    return "label_column" in params and (bool(name) or len(params) > 1)


def _role(words: Sequence[str]) -> tuple[str, list[int]]:
    """Which param the words name, and the places of those that are left: they name the model."""
    for role, names in ROLES:
        for name in names:
            for start in range(len(words) - len(name) + 1):
                if tuple(words[start : start + len(name)]) == name:
                    taken = range(start, start + len(name))
                    return role, [index for index in range(len(words)) if index not in taken]
    return "", []


def _suggestion(
    project: Project, name: str, params: dict[str, str], rows: Sequence[Mapping[str, Any]]
) -> SuggestedSource | None:
    read = reader_of(project)
    given = _given(params, rows)
    answers = sum(read(cell)[0] is not None for cell in given)
    if not given or not _readable(answers, len(given)):
        return None
    kept = dict(params)
    for role in ("confidence_column", "uncertainty_column"):
        if role in kept and not _are_shares(row.get(kept[role], "") for row in rows):
            del kept[role]
    if "confidence_column" in kept:
        kept.pop("uncertainty_column", None)  # the backend takes one of the two
    costs = _numbers(row.get(kept["cost_column"], "") for row in rows) if "cost_column" in kept else []
    if not costs:
        kept.pop("cost_column", None)
    mean = sum(costs, Decimal(0)) / len(costs) if costs else None
    return SuggestedSource(
        name=name if params["label_column"] == f"{name}.label" else _title(name),
        params=kept,
        cost=None if mean is None else round(mean, 6),
        answers=answers,
        looked_at=len(rows),
    )


def _given(params: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(cell) for row in rows if (cell := row.get(params["label_column"])) not in (None, "")]


def _readable(answers: int, given: int) -> bool:
    return answers >= READABLE * given


def _title(name: str) -> str:
    if not name or name.isdigit():
        return _("Model %(number)s") % {"number": name} if name else _("Model")
    return name if any(letter.isupper() for letter in name) else name[:1].upper() + name[1:]


def _are_shares(cells: Iterable[Any]) -> bool:
    values = _numbers(cells)
    return bool(values) and all(0 <= value <= 1 for value in values)


def _numbers(cells: Iterable[Any]) -> list[Decimal]:
    read = (decimal_cell(str(cell)) for cell in cells)
    return [value for value in read if value is not None]
