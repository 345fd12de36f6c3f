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
from annotation.imports.columns import confidence_columns
from annotation.models import Project, User
from routing.common.states import OPEN
from routing.models import Source
from routing.sources.backends.cells import decimal_cell
from routing.sources.backends.recorded import NAME
from routing.sources.manage import save_source
from routing.sources.mends import can_be_mended
from routing.sources.suggested_doubts import is_share, no_labels, no_shares
from routing.visibility import measured_for_a_plan

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
_SURE = frozenset({"conf", "confidence", "uncertainty"})
"""Words of a column that is about a model even where nothing else is."""
_WORDS = re.compile(r"\d+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")


@dataclass(frozen=True)
class SuggestedSource:
    """A model that the data seems to hold. `params` are for the backend `recorded`; `cost` is the mean that
    is recorded, None where there is none; `answers` of `looked_at` items are labels of the project.

    `sound` is whether enough of the answers are labels; `doubts` says what is wrong, in sentences.
    """

    name: str
    params: dict[str, str]
    cost: Decimal | None
    answers: int
    looked_at: int
    sound: bool = True
    doubts: tuple[str, ...] = ()

    @property
    def label_column(self) -> str:
        return self.params["label_column"]

    @property
    def sure_column(self) -> str:
        """The column that says how sure the model was; "" where there is none."""
        return self.params.get("confidence_column") or self.params.get("uncertainty_column", "")

    @property
    def has_score(self) -> bool:
        """Whether it says how sure the model was; the first model needs that."""
        return bool(self.sure_column)


@dataclass(frozen=True)
class FoundModels:
    """What is in the columns of a project that none of its sources reads yet.

    Attributes
    ----------
    sound
        Models whose answers are labels, the cheapest first; one that says how sure it is comes before those
        that do not.
    doubtful
        Columns that read like the answers of a model, of which too many are no labels: what they mean has to
        be said before they are of use.
    without_answers
        Columns that say how sure a model is, as it seems, beside none that holds its answers.
    """

    sound: list[SuggestedSource]
    doubtful: list[SuggestedSource]
    without_answers: list[str]

    @property
    def suggestions(self) -> list[SuggestedSource]:
        return [*self.sound, *self.doubtful]


def found_models(project: Project) -> FoundModels:
    """Looks once at the first items, whatever is asked of them."""
    names = _unread(project, project.columns)
    if not _named(names):
        return FoundModels([], [], [])
    rows = list(project.items.order_by("position").values_list("data", flat=True)[:SAMPLE])
    groups = _named(names, rows)
    show = not (project.runs.filter(state__in=OPEN).exists() or measured_for_a_plan(project).exists())
    found = _suggestions(project, groups, rows, show=show)
    return FoundModels(
        sound=[one for one in found if one.sound],
        doubtful=[one for one in found if not one.sound],
        without_answers=_without_answers(project, groups, rows),
    )


def models_in(
    project: Project, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> list[SuggestedSource]:
    """The same of a file, before it is imported: what `found_models` will find, as far as its first rows
    tell. Nothing is repeated of what is wrong with them.
    """
    groups = _named(_unread(project, columns), rows)
    return _suggestions(project, groups, rows, show=False)


def _without_answers(
    project: Project, groups: Mapping[str, Mapping[str, str]], rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    beside = set(models_named(project.columns))  # of a source, too, that does without how sure it is
    found = []
    for name, params in groups.items():
        column = params.get("confidence_column") or params.get("uncertainty_column")
        if (
            "label_column" in params
            or column is None
            or name in beside
            or not _SURE.intersection(_said(column))
        ):
            continue
        cells = [str(cell) for row in rows if (cell := row.get(column)) not in (None, "")]
        if cells and all(map(is_share, cells)):
            found.append(column)
    return found


def _suggestions(
    project: Project,
    groups: Mapping[str, dict[str, str]],
    rows: Sequence[Mapping[str, Any]],
    *,
    show: bool,
) -> list[SuggestedSource]:
    found = [
        suggestion
        for name, params in groups.items()
        if _is_model(name, params)
        and (suggestion := _suggestion(project, name, params, rows, show=show)) is not None
    ]
    # Of equal ones in the order of their columns.
    return sorted(found, key=lambda one: (not one.has_score, one.cost is None, one.cost or 0))


def _unread(project: Project, columns: Iterable[str]) -> list[str]:
    """Those that no source of the project reads yet."""
    used = {
        column
        for params in Source.objects.filter(project=project).values_list("params", flat=True)
        for column in params.values()
        if isinstance(column, str)
    }
    return [name for name in columns if name not in used]


def add_suggested(
    *,
    project: Project,
    user: User,
    prices: Mapping[str, Decimal | None],
    names: Mapping[str, str] | None = None,
    found: FoundModels | None = None,
) -> list[Source]:
    """Make sources of the suggestions, doubtful ones too, whose label column is a key of `prices`, in their
    order, called as `names` says, else as is suggested. `found` is what was found just now, if it was.

    Raises InputError where one is not suggested (any more), or where its price is None; `where` is then its
    label column. What `save_source` raises comes through; those before it are added.
    """
    suggested = {one.label_column: one for one in (found or found_models(project)).suggestions}
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
            name=(names or {}).get(column, one.name),
            backend=NAME,
            params=dict(one.params),
            cost_per_label=price,
        )
        for column, one in suggested.items()
        if (price := prices.get(column)) is not None
    ]


def models_named(columns: Sequence[str]) -> dict[str, dict[str, str]]:
    """By the name of a model its columns, as params of `recorded`: each has one of answers."""
    return {name: params for name, params in _named(columns).items() if "label_column" in params}


def _named(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]] | None = None
) -> dict[str, dict[str, str]]:
    """Name of a model -> the params that its columns give. `rows` are the data by which names that may mean
    something else are judged.
    """
    groups: dict[str, dict[str, str]] = {}
    taken = _named_by_answer(confidence_columns(columns, rows), columns, groups)
    for column in columns:
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
    return groups


def _named_by_answer(
    pairs: Mapping[str, str], columns: Sequence[str], groups: dict[str, dict[str, str]]
) -> set[str]:
    """Put those models into `groups` whose columns are named by that of their answers: guess, guess_conf,
    guess_tokens. `pairs` are columns of answers with what says how sure they are. Returns these columns.
    """
    taken: set[str] = set()
    words = {column: [word.lower() for word in _WORDS.findall(column)] for column in columns}
    for answer, beside in pairs.items():
        begin = words[answer]
        if TRUTH.intersection(begin):
            continue
        if words[beside][: len(begin)] != begin:
            begin = begin[:-1]  # fast_model, fast_conf
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
    project: Project, name: str, params: dict[str, str], rows: Sequence[Mapping[str, Any]], *, show: bool
) -> SuggestedSource | None:
    """`show`: whether what is wrong may be repeated."""
    read = reader_of(project)
    given = _given(params, rows)
    unknown = [cell for cell in given if read(cell)[0] is None]
    sound = len(given) - len(unknown) >= READABLE * len(given)
    # Without a label, and without a confidence beside it, a column is about something else.
    if not given or (not sound and len(params) == 1 and len(unknown) == len(given)):
        return None
    kept, doubts = dict(params), list[str]()
    if not sound:
        mendable = can_be_mended(read, prompted=False)
        doubts.append(no_labels(unknown, len(given), show=show, mendable=mendable))
    for role in ("confidence_column", "uncertainty_column"):
        if role not in kept:
            continue
        column, cells = kept[role], [row.get(kept[role], "") for row in rows]
        if not _are_shares(cells):
            del kept[role]
        doubts.append(no_shares(column, cells, used=role in kept, show=show))
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
        answers=len(given) - len(unknown),
        looked_at=len(rows),
        sound=sound,
        doubts=tuple(filter(None, doubts)),
    )


def _given(params: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(cell) for row in rows if (cell := row.get(params["label_column"])) not in (None, "")]


def _said(column: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(column)}


def _title(name: str) -> str:
    if not name or name.isdigit():
        return _("Model %(number)s") % {"number": name} if name else _("Model")
    return name if any(letter.isupper() for letter in name) else name[:1].upper() + name[1:]


def _are_shares(cells: Iterable[Any]) -> bool:
    """Whether a column says how sure somebody is: all its numbers are shares, or nearly all of its cells.
    What is no share falls out item by item.
    """
    values = _numbers(cells := [cell for cell in cells if cell not in (None, "")])
    shares = sum(value <= 1 for value in values)
    return bool(values) and (shares == len(values) or shares >= READABLE * len(cells))


def _numbers(cells: Iterable[Any]) -> list[Decimal]:
    read = (decimal_cell(str(cell)) for cell in cells)
    return [value for value in read if value is not None]
