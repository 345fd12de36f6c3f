"""One kind of registry for everything that can be extended: losses, scores, costs, bounds, targets, rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from routing.core.messages import CoreError, declare, gettext_noop, say


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class UnknownNameError(CoreError):
    """A name that a registry does not hold."""


class Registry(Generic[T]):
    """Entries by name, in the order in which they were added."""

    def __init__(self, kind: str, *entries: T) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: T) -> T:
        """Add ``entry`` under its own name; two entries of one name are a programming error."""
        if entry.name in self._entries:
            raise ValueError(f"there is already a {self.kind} named {entry.name!r}")
        self._entries[entry.name] = entry
        return entry

    def get(self, name: str) -> T:
        """The entry called ``name``; `UnknownNameError` lists the known names otherwise."""
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(self._entries)
            raise UnknownNameError(
                say("name.unknown", kind=self.kind, name=repr(name), known=known)
            ) from None

    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[T]:
        return iter(self._entries.values())


SAYS = {
    "name.unknown": gettext_noop("there is no %(kind)s %(name)s; choose one of: %(known)s"),
}
declare(SAYS)
