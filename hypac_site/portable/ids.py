"""Numbers of rows that stand inside of other values: in JSON, in keys, in the targets of the audit trail.

Columns that refer to rows are no matter of this module. Every JSON column is listed here, in WITH_IDS with
what rewrites it, or in WITHOUT_IDS; a test compares both with the models.

Where a number stands nothing else may: what was left as it is, a text of digits say, would be the number of
somebody else's row where the file is read in. All functions that rewrite raise Wrong for it.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode

from annotation.imports.bucket_sync import KIND as SYNC
from annotation.models import (
    AuditEvent,
    Comment,
    Connection,
    Item,
    Job,
    Label,
    Project,
    Settlement,
    StoredFile,
    User,
    WorkBatch,
    WorkItem,
)
from annotation.people.erase import NAMING
from hypac_site.portable.tables import Model, Row
from hypac_site.portable.values import Wrong
from routing.delivery.exports import KIND as EXPORT
from routing.items.changes import CHANGE_KIND, UNDO
from routing.models import (
    Delivery,
    Intake,
    Measurement,
    ModelPrice,
    PromptCandidate,
    Run,
    SavedView,
    Source,
    SourceRevision,
)
from routing.models.sources import SourceTry
from routing.models.spend import Spend

# Of a row that did not travel, or is gone: no row has it.
NOWHERE = 0
# Keys of labels are chosen by whoever sends them: nobody is to have one beforehand that an import makes.
MOVED = secrets.randbelow(10**15)


class Ids(Protocol):
    """What numbers, names and the project's short name become."""

    def new(self, model: Model, old: int) -> int:
        """The new number of a row; NOWHERE where there is no such row."""

    def near(self, model: Model, old: int, *, up: bool) -> int:
        """That of the next row from there on, or of the last one up to there."""

    def person(self, name: str) -> str:
        """What somebody is called there; the same for a name that is nobody's."""

    def slug(self, slug: str) -> str: ...


ONE: dict[str, Model] = {
    "candidate": PromptCandidate,
    "connection": Connection,
    "delivery": Delivery,
    "fetch": Job,
    "file": StoredFile,
    "import": Job,
    "intake": Intake,
    "job": Job,
    "measurement": Measurement,
    "revision": SourceRevision,
    "run": Run,
    "since": Delivery,
    "source": Source,
}
MANY: dict[str, Model] = {"batches": WorkBatch, "items": Item}
OF_RESULT = ("delivery", "file", "import", "job", "measurement")
OF_EVENT = ("job", "since")
TARGETS: dict[str, Model] = {
    "batch": WorkBatch,
    "comment": Comment,
    "delivery": Delivery,
    "file": StoredFile,
    "item": Item,
    "job": Job,
    "label": Label,
    "price": ModelPrice,
    "settlement": Settlement,
    "source": Source,
    "view": SavedView,
    "work_item": WorkItem,
}
GONE = ("connection", "invitation", "token", "webhook")
# What the keys of jobs name; those of others name the run of their parameters.
OF_KEYS: dict[str, tuple[Model, ...]] = {
    "candidate": (Source,),
    "predictions": (Source,),
    "try": (Source,),
    EXPORT: (Delivery, Connection),
    SYNC: (Connection,),
    UNDO: (Job,),
}


def rewritten(model: Model, row: Row, ids: Ids) -> Row:
    """The row with the numbers, inside of its values, that hold there. `row["id"]` is its own old one."""
    rewrite = ROWS.get(model)
    return row if rewrite is None else row | rewrite(row, ids)


# --- Jobs ---------------------------------------------------------------------------------------------------


def _job(row: Row, ids: Ids) -> Row:
    params, result = _mapping(row["params"]), _mapping(row["result"])
    new_result = _named(result, {name: ONE[name] for name in OF_RESULT}, {"batches": WorkBatch}, ids)
    if row["kind"] == CHANGE_KIND:
        new_result |= _of_change(result, ids)
    return {
        "params": _filtered(_named(params, ONE, MANY, ids), ids),
        "result": new_result,
        "unique_key": _job_key(str(row["unique_key"]), params, ids),
    }


def _of_change(result: Mapping[str, Any], ids: Ids) -> Row:
    told: Row = {}
    if last := _number_in(result, "last"):
        told["last"] = ids.near(Item, last, up=False)
    if flags := _numbers_in(result, "comments"):
        if len(flags) != 2:
            raise Wrong("comments are not the first and the last one")
        ends = [ids.near(Comment, flags[0], up=True), ids.near(Comment, flags[1], up=False)]
        told["comments"] = [] if NOWHERE in (*flags, *ends) else ends
    return told


def _job_key(key: str, params: Mapping[str, Any], ids: Ids) -> str:
    """Jobs that travel have ended: by their keys they are found, and not begun twice once they are begun
    again.
    """
    kind, *parts = key.split(":")
    if not any(part.isdecimal() for part in parts):
        return key  # of a kind of change, or a hash
    models: tuple[Model, ...] = ()
    if kind in OF_KEYS:
        models = OF_KEYS[kind]
    elif parts == [str(params.get("run"))]:
        models = (Run,)
    if len(models) != len(parts):
        return ""
    new = [_new(model, number, ids) for model, number in zip(models, parts, strict=True)]
    return ":".join([kind, *map(str, new)])


# --- The audit trail ----------------------------------------------------------------------------------------


def _event(row: Row, ids: Ids) -> Row:
    action, data = str(row["action"]), _mapping(row["data"])
    told = _filtered(_named(data, {name: ONE[name] for name in OF_EVENT} | {"user": User}, {}, ids), ids)
    for name in NAMING.get(action, ()):
        people = told.get(name)
        if isinstance(people, dict):
            told[name] = {ids.person(one): value for one, value in people.items()}
        elif isinstance(people, list):
            told[name] = [ids.person(one) if isinstance(one, str) else one for one in people]
    return {"data": told, "target": _target(action, str(row["target"]), ids)}


def _target(action: str, target: str, ids: Ids) -> str:
    kind, colon, which = target.partition(":")
    if kind == "user" and colon:
        return f"user:{ids.person(which)}"[:120]
    if kind == "project" and colon:
        return f"project:{ids.slug(which)}"[:120]
    if kind in GONE:
        return f"{kind}:{NOWHERE}"
    # Of held-out items the trail has their names.
    if kind in TARGETS and which.isdecimal() and not action.startswith("held_out."):
        return f"{kind}:{ids.new(TARGETS[kind], _number(which))}"
    return target


# --- Runs, deliveries and what hangs on them ----------------------------------------------------------------


def _run(row: Row, ids: Ids) -> Row:
    told: Row = {}
    if isinstance(row["chosen"], dict):
        told["chosen"] = _filtered(row["chosen"], ids)
    found = row["audit_found"]
    if isinstance(found, dict):
        told["audit_found"] = _named(found, {"item": Item}, {}, ids)
    return told


def _project(row: Row, ids: Ids) -> Row:
    return {"slug": ids.slug(str(row["slug"]))}


def _delivery(row: Row, ids: Ids) -> Row:
    return {"filters": _filters(row["filters"], ids)}


def _try(row: Row, ids: Ids) -> Row:
    rows = row["rows"] if isinstance(row["rows"], list) else []
    if not all(isinstance(one, dict) for one in rows):
        raise Wrong("rows: one is no object")
    return {"rows": [_named(one, {"item": Item}, {}, ids) for one in rows]}


def _view(row: Row, ids: Ids) -> Row:
    pairs = parse_qsl(str(row["query"]), keep_blank_values=True)
    if all(name != "annotator" for name, _value in pairs):
        return {}
    # Somebody may have typed the query: what is no number finds nobody.
    held = [
        (name, str(_new(User, value, ids)) if name == "annotator" and value.isdecimal() else value)
        for name, value in pairs
    ]
    return {"query": urlencode(held)}


def _label(row: Row, ids: Ids) -> Row:
    """Some keys say what the label was given for, and are asked for once more; others are random, and whoever
    made them does not come back. Of one person here none may be there twice.
    """
    kind, *numbers = str(row["idempotency_key"]).replace(":", "-").split("-")
    named = {
        "elsewhere": (":", (WorkBatch, Item)),
        "chosen": ("-", (WorkItem,)),
        "import": ("-", (Job, Item)),
    }
    between, models = named.get(kind, ("", ()))
    if models and len(models) == len(numbers):
        new = [_new(model, number, ids) for model, number in zip(models, numbers, strict=True)]
        if all(new):
            return {"idempotency_key": between.join([kind, *map(str, new)])}
    return {"idempotency_key": f"moved-{MOVED}-{ids.new(Label, row['id'])}"}


def _spend(row: Row, ids: Ids) -> Row:
    """Paid once: the key of a chunk of answers, or of a label, is made anew where it is paid again."""
    kind, *parts = str(row["key"]).split(":")
    if kind == "label" and len(parts) == 1 and (label := _new(Label, parts[0], ids)):
        return {"key": f"label:{label}"}
    if kind == "predict" and len(parts) == 3:
        source, item = _new(Source, parts[0], ids), _new(Item, parts[2], ids)
        if source and item:
            return {"key": f"predict:{source}:{parts[1]}:{item}"}
    return {"key": f"moved:{ids.new(Spend, row['id'])}"}


ROWS: dict[Model, Callable[[Row, Ids], Row]] = {
    AuditEvent: _event,
    Delivery: _delivery,
    Job: _job,
    Label: _label,
    Project: _project,
    Run: _run,
    SavedView: _view,
    SourceTry: _try,
    Spend: _spend,
}

# JSON columns, as table.column.
WITH_IDS = frozenset(
    {
        "annotation.auditevent.data",
        "annotation.job.params",
        "annotation.job.result",
        "routing.delivery.filters",
        "routing.run.audit_found",
        "routing.run.chosen",
        "routing.sourcetry.rows",
    }
)
WITHOUT_IDS = frozenset(
    {
        "annotation.draft.value",
        "annotation.heldoutitem.answer",
        *("annotation.item.data", "annotation.item.fields", "annotation.item.typed"),
        *("annotation.job.error_params", "annotation.job.stage_params"),
        *("annotation.jobproblem.message_params", "annotation.jobproblem.where_params"),
        "annotation.label.value",
        "annotation.practiceanswer.value",
        *("annotation.project.columns", "annotation.project.loss_params"),
        "annotation.replacedchoice.into",
        "annotation.settlement.value",
        "annotation.shownsuggestion.value",
        *(
            "routing.certificate.figures",
            "routing.certificate.messages",
            "routing.certificate.model_positions",
            "routing.certificate.thresholds",
        ),
        *("routing.delivery.two_people", "routing.draw.critical", "routing.draw.randomness"),
        "routing.finalaudit.invalid_reasons",
        "routing.finalcertificate.messages",
        *("routing.finalsample.label", "routing.givenlosses.losses"),
        "routing.ledgerentry.document",
        "routing.measuredsource.prices",
        "routing.mendversion.labels",
        "routing.modelprice.prices",
        *("routing.prediction.raw", "routing.prediction.value"),
        *(
            "routing.promptcandidate.examples",
            "routing.promptcandidate.params",
            "routing.promptcandidate.prices",
        ),
        *("routing.promptversion.examples", "routing.roundnote.value"),
        *(
            "routing.run.chains",
            "routing.run.invalid_reasons",
            "routing.run.loss_params",
            "routing.run.score_params",
            "routing.run.slices",
            "routing.run.tally",
        ),
        "routing.runsource.prices",
        "routing.sentanswer.answer",
        *("routing.source.params", "routing.source.prices", "routing.source.served"),
        "routing.sourcerevision.fields",
        "routing.sourcetry.reasons",
    }
)


# --- Parts of values ----------------------------------------------------------------------------------------


def _named(values: Mapping[str, Any], one: Mapping[str, Model], many: Mapping[str, Model], ids: Ids) -> Row:
    """With the numbers that stand under these names."""
    told = dict(values)
    for name in values.keys() & one.keys():
        if number := _number_in(values, name):
            told[name] = ids.new(one[name], number)
    for name in values.keys() & many.keys():
        if values[name] is not None:
            new = [ids.new(many[name], old) for old in _numbers_in(values, name)]
            told[name] = [number for number in new if number != NOWHERE]
    return told


def _number_in(values: Mapping[str, Any], name: str) -> int | None:
    value = values.get(name)
    if value is None or _is_id(value):
        return value
    raise Wrong(f"{name} is no number of a row")


def _numbers_in(values: Mapping[str, Any], name: str) -> list[int]:
    found = values.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(map(_is_id, found)):
        raise Wrong(f"{name} are no numbers of rows")
    return found


def _filtered(values: Row, ids: Ids) -> Row:
    return values | {"filters": _filters(values["filters"], ids)} if "filters" in values else values


def _filters(filters: Any, ids: Ids) -> Any:
    """Filters of the table of items, of which one names a person by number, as text."""
    person = filters.get("annotator") if isinstance(filters, dict) else None
    if person is None or person == "":
        return filters
    if not isinstance(person, str) or not person.isdecimal():
        raise Wrong("filters: annotator is no number of a person")
    return filters | {"annotator": str(_new(User, person, ids))}


def _mapping(value: Any) -> Row:
    return value if isinstance(value, dict) else {}


def _is_id(value: Any) -> bool:
    """NOWHERE is what an earlier import has made of a row that did not travel."""
    return type(value) is int and NOWHERE <= value < 2**63


def _number(digits: str) -> int:
    """NOWHERE for what no row can have."""
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else NOWHERE


def _new(model: Model, digits: str, ids: Ids) -> int:
    return ids.new(model, _number(digits))
