"""The columns of a file and of a project: which one is what, what they seem to hold, which ones people see,
and which ones nobody who labels may see.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _, ngettext

from annotation.imports.formats.doccano import LABELS, Doccano
from annotation.imports.formats.reserved import model_output
from annotation.jobs.jobs import UNFINISHED
from annotation.models import Project

IMPORT = "import"
"""The kind of an import's job."""


# --- Which column is what -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnMapping:
    """Which column is an item's id, and which ones people read: one as a text, or several as fields.

    Without an id column the item is named by the file and its line, an image by its path in the archive.
    """

    id_column: str = ""
    text_column: str = ""
    field_columns: tuple[str, ...] = ()

    @classmethod
    def showing(cls, columns: Sequence[str], *, id_column: str = "") -> "ColumnMapping":
        """One column is a text, several are fields in this order."""
        if len(columns) > 1:
            return cls(id_column=id_column, field_columns=tuple(columns))
        return cls(id_column=id_column, text_column=columns[0] if columns else "")

    @classmethod
    def of(cls, params: dict[str, object]) -> "ColumnMapping":
        """That of an import job. Jobs of earlier versions know no fields."""
        fields = params.get("field_columns") or ()
        return cls(str(params["id_column"]), str(params["text_column"]), tuple(fields))  # type: ignore[arg-type]

    @property
    def shown(self) -> tuple[str, ...]:
        return self.field_columns or ((self.text_column,) if self.text_column else ())


# --- What they seem to hold, read from the first rows of a file ---------------------------------------------

ID_NAMES = ("id", "external_id", "item_id", "uid", "uuid", "key", "index", "idx")
TEXT_NAMES = (
    "text", "content", "sentence", "review", "question", "prompt", "comment", "body", "document", "message",
    "abstract", "title",
)  # fmt: skip
# A column with one of these words in its name is taken for answers, by models or by people.
ANSWER_WORDS = frozenset({
    "label", "labels", "labelled", "labeled", "gold", "truth", "annotation", "annotations", "annotated",
    "class", "y", "guess", "guesses", "guessed", "pred", "preds", "prediction", "predictions", "predicted",
    "conf", "confidence",
    "confidences", "score", "scores", "prob", "probs", "proba", "probability", "probabilities", "logit",
    "logits", "logprob", "logprobs", "uncertainty", "entropy", "tokens", "model", "llm",
})  # fmt: skip
# What stands behind the name of a column of answers in that of the column that says how sure they are.
SURE = ("conf", "confidence", "prob", "proba", "probability", "uncertainty")
# The same where the values fit, too: many things have a score.
SURE_BY_VALUES = ("score",)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:[,\s]\d{3})*(?:[.,]\d+)?|[.,]\d+)(?:[eE][+-]?\d+)?\s*%?")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})"
)
_IMAGE = re.compile(r".+\.(?:png|jpe?g|gif|webp|bmp)", re.IGNORECASE)
MOST_CATEGORIES = 20
LONGEST_CATEGORY = 60
# Characters on average from which a text is called long.
LONG = 200
# A column whose name tells nothing is proposed as the name of items from so many rows on: of a few rows any
# column has different values. Measured values (3.5) are not what things are called by, nor are dates.
# A single column whose name has so many words may have none.
LEAST_WORDS = 3
LEAST_TO_NAME = 10
_NAME = re.compile(r"(?!.*[\d][.,]\d+$)(?!\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}$)[\w#][\w.:/#@+=?&%~-]{0,199}")


@dataclass(frozen=True)
class Column:
    """`kind` is empty, number, date, image, category, text or long_text; `distinct` counts its values.

    `answers` says that it seems to hold answers, by its name; `labels` that its values are the project's
    labels; `model_output` that a source or a run of the project names it.
    """

    name: str
    kind: str
    distinct: int
    characters: int
    answers: bool = False
    labels: bool = False
    model_output: bool = False

    @property
    def may_be_shown(self) -> bool:
        """Whether it can be shown to people at all: not what a source of the project reads as an answer."""
        return not self.model_output

    @property
    def suspicious(self) -> bool:
        """People who label would see an answer in it."""
        return self.answers or self.labels or self.model_output

    @property
    def words(self) -> str:
        if self.kind == "category":
            words = ngettext("category, %(count)d value", "category, %(count)d values", self.distinct)
            return words % {"count": self.distinct}
        return {
            "empty": _("empty"),
            "number": _("number"),
            "date": _("date"),
            "image": _("name of an image"),
            "text": _("text"),
            "long_text": _("long text"),
        }[self.kind]


def read_columns(
    names: Sequence[str], sample: Sequence[Mapping[str, str]], project: Project, model_output: frozenset[str]
) -> list[Column]:
    """One entry for each name, in their order. `sample` are the first rows."""
    sure = confidence_columns(names, sample)
    labels = {word.strip().casefold() for pair in project.choices.values_list("key", "name") for word in pair}
    found = []
    for name in names:
        values = [value for row in sample if (value := row.get(name, "").strip())]
        distinct = set(values)
        found.append(
            Column(
                name=name,
                kind=_kind(values, distinct),
                distinct=len(distinct),
                characters=sum(map(len, values)),
                answers=name in sure
                or not ANSWER_WORDS.isdisjoint(word.lower() for word in _WORD.findall(name)),
                labels=bool(labels and values) and {value.casefold() for value in distinct} <= labels,
                model_output=name in model_output,
            )
        )
    return found


def confidence_columns(
    names: Iterable[str], rows: Sequence[Mapping[str, Any]] | None = None
) -> dict[str, str]:
    """Column of answers -> the column beside it that says how sure they are: guess, guess_conf; fast_model,
    fast_conf. A text that people read may have been recognised with some confidence, too, and is no answer.

    `rows` are some of the data: names that may mean something else are believed only where the values fit;
    without rows they are believed.
    """
    lower = {name.strip().lower(): name for name in names}
    found: dict[str, str] = {}
    for beside, name in lower.items():
        answer, mark, suffix = beside.replace(" ", "_").replace(".", "_").replace("-", "_").rpartition("_")
        if not mark or suffix not in (*SURE, *SURE_BY_VALUES) or answer in TEXT_NAMES:
            continue
        stem = beside[: len(answer)]
        by_name = suffix in SURE and stem in lower
        column = lower.get(stem) or lower.get(f"{stem}{beside[len(answer)]}model")
        if column is not None and (by_name or rows is None or _are_answers(column, name, rows)):
            found.setdefault(column, name)
    return found


def _are_answers(column: str, beside: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one column has few different values, as labels are, and the other shares from 0 to 1."""
    values = {str(row.get(column, "")).strip() for row in rows} - {""}
    shares = {str(row.get(beside, "")).strip() for row in rows} - {""}
    return (
        0 < len(values) <= MOST_CATEGORIES
        and all(len(value) <= LONGEST_CATEGORY and not _NUMBER.fullmatch(value) for value in values)
        and bool(shares)
        and all(map(_is_share, shares))
    )


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text.replace(",", ".")) <= 1
    except ValueError:
        return False


@dataclass(frozen=True)
class Proposal:
    """The columns that are chosen for people at first, "" for none, and why, in a sentence each; `doubt` says
    why what is named as an id is not proposed, `text_doubt` why the heading may be none.
    """

    id_column: str
    text_column: str
    about_id: str
    about_text: str
    doubt: str = ""
    text_doubt: str = ""


def propose(
    columns: Sequence[Column],
    sample: Sequence[Mapping[str, str]],
    places: Sequence[str],
    before: str | None = None,
) -> Proposal:
    """`places` say where the rows of the sample are. The id is a column that is named as one and names every
    row of the sample once, else one whose values look like names and do so. The text is chosen by its name,
    else it is the column with most text; never one that seems to hold answers. `before` is what the project's
    last import was named by, "" for nothing, None where there was none.
    """
    about_id = doubt = ""
    id_column = before if before and any(column.name == before for column in columns) else ""
    id_column = id_column or _by_name(columns, ID_NAMES)
    if id_column and (doubt := _no_id(id_column, sample, places)):
        id_column = ""
    elif id_column:
        about_id = _("“%(name)s” is proposed: it tells the first rows apart.") % {"name": id_column}
    free = [column for column in columns if column.name != id_column and not column.suspicious]
    longest = max(free, key=lambda column: column.characters, default=None)
    if named := _by_name(free, TEXT_NAMES):
        about_text = _("“%(name)s” is proposed for its name.") % {"name": named}
    elif longest:
        about_text = _("“%(name)s” is proposed: it holds the most text.") % {"name": longest.name}
    else:
        about_text = _("Nothing is proposed, as all columns seem to hold answers.") if columns else ""
    text_column = named or (longest.name if longest else "")
    # Items that an earlier import named by their lines would come a second time under other names.
    if not id_column and before is None:
        others = (column for column in free if column.name != text_column)
        id_column = next((column.name for column in others if _names_rows(column.name, sample)), "")
        if id_column:
            words = _(
                "“%(name)s” is proposed: none of the first %(count)s rows has the same value as another."
            )
            about_id, doubt = words % {"name": id_column, "count": len(sample)}, ""
    return Proposal(id_column, text_column, about_id, about_text, doubt, _no_heading(columns))


def _no_heading(columns: Sequence[Column]) -> str:
    """What to ask where a file of one column seems to have no line with its name: an item would be lost."""
    if len(columns) != 1 or len(columns[0].name.split()) < LEAST_WORDS:
        return ""
    return _(
        "The first line is taken as the name of the column: “%(name)s”. If it is an item, choose “Plain "
        "lines, one item each” as the format, and nothing is lost."
    ) % {"name": columns[0].name}


def _names_rows(column: str, sample: Sequence[Mapping[str, str]]) -> bool:
    """Whether all its values are different, and look like numbers, codes, addresses or names of files."""
    if len(sample) < LEAST_TO_NAME:
        return False
    values = [row.get(column, "").strip() for row in sample]
    return len({*values}) == len(values) and all(map(_NAME.fullmatch, values))


def _no_id(name: str, sample: Sequence[Mapping[str, str]], places: Sequence[str]) -> str:
    """Why a column tells the rows not apart, and where; "" if it does. Its values are not repeated: people
    may have to be kept from them.
    """
    first: dict[str, str] = {}
    for row, place in zip(sample, places, strict=True):
        value = row.get(name, "").strip()
        if not value:
            words = _(
                "“%(name)s” is not proposed as the name of the item: it is empty in %(place)s. Without it, "
                "each row becomes an item that is named by its line."
            )
            return words % {"name": name, "place": place}
        if value in first:
            words = _(
                "“%(name)s” is not proposed as the name of the item: %(first)s and %(place)s have the same. "
                "Without it, each row becomes an item that is named by its line."
            )
            return words % {"name": name, "first": first[value], "place": place}
        first[value] = place
    return ""


def _by_name(columns: Sequence[Column], names: Sequence[str]) -> str:
    lower = {column.name.strip().lower(): column.name for column in reversed(columns)}
    return next((lower[name] for name in names if name in lower), "")


def _kind(values: Sequence[str], distinct: set[str]) -> str:
    if not values:
        return "empty"
    for pattern, kind in ((_NUMBER, "number"), (_DATE, "date"), (_IMAGE, "image")):
        if all(map(pattern.fullmatch, values)):
            return kind
    repeated = 2 * len(distinct) <= len(values) and len(distinct) <= MOST_CATEGORIES
    if repeated and max(map(len, distinct)) <= LONGEST_CATEGORY:
        return "category"
    return "long_text" if sum(map(len, values)) > LONG * len(values) else "text"


# --- Columns of a project -----------------------------------------------------------------------------------


def answer_columns(project: Project, further: Iterable[str] = ()) -> frozenset[str]:
    """Columns that nobody who labels may be shown: of the project, and of `further` (those of a file).

    Some are known by their names. Others are columns like any, except where an import had a format that puts
    answers into them; its job has their names for as long as anything of it is there.
    """
    found = set(model_output([*project.columns, *further]))
    facts = ("state", "params__format", "result__answers", "result__added", "result__removed")
    for state, format_name, answers, added, removed in project.jobs.filter(kind="import").values_list(*facts):
        if state in UNFINISHED or (added and not removed):
            found.update(answers or (LABELS if format_name == Doccano.name else ()))
    return frozenset(found)


def shown_columns(project: Project) -> set[str]:
    """Columns that any import shows, or has begun to: as a text or among the fields of its items."""
    shown: set[str] = set()
    for job in project.jobs.filter(kind=IMPORT):
        if job.state in UNFINISHED or (job.result.get("added") and not job.result.get("removed")):
            shown.update(ColumnMapping.of(job.params).shown)
    return shown


def previous_id_column(project: Project) -> str | None:
    """The column by which the project's last import named its items, "" for none; None where there is no
    import of which items are there.
    """
    for job in project.jobs.filter(kind=IMPORT).order_by("-pk"):
        if job.state in UNFINISHED or (job.result.get("added") and not job.result.get("removed")):
            return ColumnMapping.of(job.params).id_column
    return None


def shown_in_order(project: Project) -> list[str]:
    """The same columns in the order in which the imports name them, the first import first."""
    shown = shown_columns(project)
    named = [
        name
        for job in project.jobs.filter(kind=IMPORT).order_by("pk")
        for name in ColumnMapping.of(job.params).shown
        if name in shown
    ]
    return list(dict.fromkeys(named))
