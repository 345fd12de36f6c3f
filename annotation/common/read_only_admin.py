"""Pages of the administration on which rows are looked at, and nothing else."""

from typing import Any

from django.contrib import admin
from django.db.models import BinaryField, JSONField, Model, TextField
from django.http import HttpRequest


class NoChanges:
    """Rows that are made, changed and ended by services alone."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyInline(NoChanges, admin.TabularInline):
    extra = 0


class ReadOnly(NoChanges, admin.ModelAdmin):
    """For tables with millions of rows: a list neither counts all rows nor offers all of them to choose from,
    and reads in one query what it shows: with the rows that it names, without what may be long.
    """

    show_full_result_count = False
    list_per_page = 50
    # Relations that a row which the list names takes its name from in turn, such as a run's project; and what
    # is long and yet part of such a name.
    through: tuple[str, ...] = ()
    in_names: tuple[str, ...] = ()

    def get_list_select_related(self, request: HttpRequest) -> tuple[str, ...]:
        return (*self._named(), *self.through)

    def get_queryset(self, request: HttpRequest) -> Any:
        queryset = super().get_queryset(request)
        match = request.resolver_match
        if match is None or not (match.url_name or "").endswith("_changelist"):
            return queryset
        read = self._named() | self._on_the_way()
        long = {f"{name}__{field}" for name, model in read.items() for field in _long(model)}
        return queryset.defer(*(long | _long(self.model)).difference(self.list_display, self.in_names))

    def _named(self) -> dict[str, type[Model]]:
        """The relations in the list, by name, and what they lead to."""
        fields = self.model._meta.fields
        return {f.name: f.related_model for f in fields if f.is_relation and f.name in self.list_display}

    def _on_the_way(self) -> dict[str, type[Model]]:
        """What `through` leads over, by the path to it."""
        found: dict[str, type[Model]] = {}
        for path in self.through:
            model: Any = self.model
            parts = path.split("__")
            for length, part in enumerate(parts, start=1):
                model = model._meta.get_field(part).related_model
                found["__".join(parts[:length])] = model
        return found


def _long(model: type[Model]) -> set[str]:
    kinds = (TextField, JSONField, BinaryField)
    return {field.name for field in model._meta.fields if isinstance(field, kinds)}
