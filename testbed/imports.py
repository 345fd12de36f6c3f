"""The modules of a checkout, and which of them import which; nothing of it is run."""

import ast
import sys
from collections import Counter
from collections.abc import Mapping, Set
from pathlib import Path
from typing import NamedTuple

import grimp

PACKAGES = ("annotation", "hypac_site", "routing")
Edges = Mapping[str, Set[str]]


class Module(NamedTuple):
    """A file of ours."""

    name: str
    path: Path
    source: str
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @property
    def room(self) -> str | None:
        """The folder below annotation/ or routing/ that it stands in; None where it stands in none."""
        app, *folders = self.package.split(".")
        return f"{app}.{folders[0]}" if folders and app != "hypac_site" else None


def modules_of(root: Path, packages: tuple[str, ...] = PACKAGES) -> dict[str, Module]:
    """Every module below ``root``, migrations left out."""
    found = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if "migrations" in parts:
                continue
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            source = path.read_text()
            found[name] = Module(name, path, source, ast.parse(source))
    return found


def edges_of(root: Path, packages: tuple[str, ...] = PACKAGES) -> dict[str, set[str]]:
    """For each module below ``root`` those of ours that it imports, also inside functions, but for types; a
    package for names that it holds. Migrations are left out.
    """
    sys.path.insert(0, str(root))
    try:
        graph = grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)
    finally:
        sys.path.remove(str(root))
    names = {name for name in graph.modules if "migrations" not in name.split(".")}
    return {name: (graph.find_modules_directly_imported_by(name) & names) - {name} for name in names}


def room_imports(modules: Mapping[str, Module], edges: Edges) -> Counter[tuple[str, str]]:
    """How many imports lead from one room to another."""
    pairs = ((modules[one].room, modules[other].room) for one in edges for other in edges[one])
    return Counter((one, other) for one, other in pairs if one and other and one != other)


def circles(edges: Edges) -> list[set[str]]:
    """The sets of more than one member that all lead to each other, largest first."""
    below = {name: closure(edges, name) for name in edges}
    found = {frozenset(other for other in below[name] if name in below[other]) for name in edges}
    return sorted((set(circle) for circle in found if len(circle) > 1), key=len, reverse=True)


def closure(edges: Edges, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = edges[waiting.pop()] - found
        found |= new
        waiting += new
    return found
