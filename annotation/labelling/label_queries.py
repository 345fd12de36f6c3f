"""Labels by what they say, and what they say in words."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Func, Model, Q, QuerySet, TextField, Value
from django.db.models.sql.compiler import SQLCompiler
from django.utils.translation import gettext as _

from annotation.common.replaced_labels import replaced_labels
from annotation.models import Label, Project
from annotation.task_types import SHAPES, TASK_TYPES

# Rows with a label in `value`.
Row = TypeVar("Row", bound=Model)


def with_choice(labels: QuerySet[Row], project: Project, key: str, *, field: str = "value") -> QuerySet[Row]:
    """Those of a project's labels, answers or settlements that give this choice, or one that was merged into
    it, alone or among others. `field` holds the label.
    """
    return labels.filter(_gives(project, replaced_labels(project).before(key), field))


def with_split_choice(labels: QuerySet[Row], project: Project) -> QuerySet[Row]:
    """Those with a choice in whose place people have to choose anew."""
    return labels.filter(_gives(project, sorted(replaced_labels(project).split)))


def without_split_choice(labels: QuerySet[Row], project: Project) -> QuerySet[Row]:
    return labels.exclude(_gives(project, sorted(replaced_labels(project).split)))


def _gives(project: Project, keys: Sequence[str], field: str = "value") -> Q:
    kind = TASK_TYPES[project.task_type]
    found = Q(pk__in=[])
    for key in keys:
        if kind.labels_within:
            found |= Q(_TextHas(field, f'"label":{json.dumps(key, ensure_ascii=False)},'))
        else:
            found |= Q(_ListHas(field, key)) if kind.several else Q(**{field: key})
    return found


def labels_of(project: Project, *, imported: bool = True) -> QuerySet[Label]:
    """All versions of all labels of a project, by the batches that asked for them: work items are fewer than
    items, and so much narrower that a million of labels is joined with them in a fraction of the time.

    `imported`: with those that came with the items of an import, and that nobody gave here.
    """
    batches = project.work_batches.all()
    if not imported:
        batches = batches.filter(imported_by__isnull=True)
    return Label.objects.filter(work_item__batch__in=list(batches.values_list("pk", flat=True)))


def imported_batches(project: Project) -> list[int]:
    """Ids of the batches with labels that came with the items of an import."""
    return list(project.work_batches.filter(imported_by__isnull=False).values_list("pk", flat=True))


def label_in_words(value: Any, names: Mapping[str, str]) -> str:
    """A label's value for people: choices by their names, of shapes how many there are of each, anything else
    as it is. `names` is by key.
    """
    if isinstance(value, list):
        return ", ".join(names.get(key, str(key)) for key in value) or _("none of them")
    if not names or value in names:  # of texts there are no names
        return names.get(value, str(value))
    return next((words for kind in SHAPES if (words := kind.in_words(value, names)) is not None), str(value))


class _ListHas(Func):
    """Whether a stored JSON list of texts has this one. SQLite knows no containment in JSON."""

    output_field = BooleanField()

    def __init__(self, field: str, text: str) -> None:
        super().__init__(field, Value(text, output_field=TextField()))

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return _in_place(
            self, compiler, "EXISTS (SELECT 1 FROM json_each({field}) AS entry WHERE entry.value = {text})"
        )

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return _in_place(self, compiler, "({field} @> to_jsonb(({text})::text))")


class _TextHas(Func):
    """Whether a stored text has this one in it."""

    output_field = BooleanField()

    def __init__(self, field: str, text: str) -> None:
        super().__init__(field, Value(text, output_field=TextField()))

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return _in_place(self, compiler, "(instr(json_extract({field}, '$'), {text}) > 0)")

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return _in_place(self, compiler, "(strpos({field} #>> '{{}}', {text}) > 0)")


def _in_place(func: Func, compiler: SQLCompiler, template: str) -> Any:
    (field, first), (text, last) = map(compiler.compile, func.get_source_expressions())
    return template.format(field=field, text=text), (*first, *last)
