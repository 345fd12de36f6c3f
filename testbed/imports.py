"""The modules of a checkout, and which of them import which, read from the source alone."""

import ast
from collections import Counter
from collections.abc import Mapping, Set
from pathlib import Path
from typing import NamedTuple

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

    def base_of(self, node: ast.ImportFrom) -> str:
        """The absolute name of what ``from ... import`` names."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        kept = parts[: len(parts) - node.level + 1]
        return ".".join([*kept, node.module] if node.module else kept)


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


def is_for_types(node: ast.If) -> bool:
    names = (getattr(part, "id", getattr(part, "attr", None)) for part in ast.walk(node.test))
    return "TYPE_CHECKING" in names


def imports_of(module: Module, known: Set[str]) -> set[str]:
    """The modules of ours that ``module`` imports, but for types; a package for names that it holds."""
    found = set()
    waiting: list[ast.AST] = [module.tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = module.base_of(node)
            submodules = {f"{base}.{alias.name}" for alias in node.names}
            found |= submodules & known
            if len(submodules & known) < len(submodules):
                found.add(base)
        elif isinstance(node, ast.If) and is_for_types(node):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)
    return (found & known) - {module.name}


def edges_of(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """For each module those of ours that it imports, also inside functions, but for types."""
    return {name: imports_of(module, modules.keys()) for name, module in modules.items()}


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
