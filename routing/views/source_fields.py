"""The fields of the form of a source: what the backends declare of their params, each asked for once."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.backends import BACKENDS, TaskSpec, backend_classes
from routing.backends.params import Flag, Param, Secret, Text


@dataclass(frozen=True)
class SourceField:
    """A field of the form, and the names of the backends that are asked for it."""

    name: str
    param: Param
    backends: tuple[str, ...]

    @property
    def kind(self) -> str:
        """How it is shown: "flag", "secret", "fills" (others of its part), or "" for as any field."""
        if isinstance(self.param, Text) and self.param.fills:
            return "fills"
        return "flag" if isinstance(self.param, Flag) else "secret" if isinstance(self.param, Secret) else ""

    def fills(self, choice: Any) -> Mapping[str, Any]:
        """What `choice` puts into other fields, by their params."""
        return self.param.fills.get(choice or "", {}) if isinstance(self.param, Text) else {}


class SourceFields:
    """Those of all backends, in the order in which a form shows them. `taken` are names of its other fields:
    what is called like one of them, or like another param, has its backend's name before its own.
    """

    def __init__(self, taken: Container[str]) -> None:
        params: dict[str, Param] = {}
        self._names: dict[str, dict[str, str]] = {}
        for backend, declared in backend_classes().items():
            self._names[backend] = {}
            for param in (param for param in declared.params if param.in_form):
                name = param.form_name or param.name
                if name in taken or params.get(name, param) != param:
                    name = f"{backend}_{name}"
                params.setdefault(name, param)
                self._names[backend][param.name] = name
        names = {backend: list(by_param.values()) for backend, by_param in self._names.items()}
        self.all = [
            SourceField(name, params[name], tuple(backend for backend in names if name in names[backend]))
            for name in _merged(list(names.values()))
        ]

    def name_of(self, backend: str, param: str) -> str:
        """The field of a param of `backend`; the param's own name where the form has none for it."""
        return self._names.get(backend, {}).get(param, param)

    def initial(self, backend: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the fields for the stored params of a source."""
        return {self.name_of(backend, name): value for name, value in params.items()}

    def params_in(self, backend: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """The params of `backend` from the values of the form, without what is not set or as it is anyway.

        What was chosen to fill others fills those that are empty.
        """
        fields = [field for field in self.all if backend in field.backends and field.kind != "secret"]
        found = {field.param.name: data[field.name] for field in fields}
        for field in fields:
            for name, value in field.fills(found[field.param.name]).items():
                if name in found and found[name] is None:
                    found[name] = value
        usual = {field.param.name: field.param.default for field in fields if field.kind == "flag"}
        return {
            name: value
            for name, value in found.items()
            if value not in (None, "") and not (name in usual and value == usual[name])
        }

    def filled(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The fields as they were sent, with what was chosen to fill others in these, whatever they held."""
        found = {**sent, **{field.name: field.name in sent for field in self.all if field.kind == "flag"}}
        for field in self.all:
            if values := field.fills(sent.get(field.name)):
                others = (one for one in self.all if one.param.part == field.param.part and one != field)
                found |= {other.name: values.get(other.param.name, "") for other in others}
        return found


def likely_backend(task: TaskSpec) -> str:
    """The one that is chosen until somebody chooses: the first that has something to offer for what it
    cannot do without, or else the first of all.
    """
    for name, declared in backend_classes().items():
        needed = (param for param in declared.params if param.required and isinstance(param, Text))
        if any(any(param.offers(task)) for param in needed if param.offers):
            return name
    return next(iter(BACKENDS))


def _merged(orders: Sequence[Sequence[str]]) -> list[str]:
    """All names once. What an order adds to those before it stands before what they share."""
    found: list[str] = []
    for order in orders:
        place = len(found)
        for name in reversed(order):
            if name in found:
                place = found.index(name)
            else:
                found.insert(place, name)
    return found
