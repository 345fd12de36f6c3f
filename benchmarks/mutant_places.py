"""The places of a checkout that can be broken, and the list of some of them; see benchmarks/mutants.py."""

import ast
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from runner import ROOT

from testbed.imports import Module, modules_of

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
KINDS = ("flip", "drop", "return")
COUNT = 40
FLIPPED = {
    ast.Eq: ast.NotEq,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.In: ast.NotIn,
    ast.Is: ast.IsNot,
}
FLIPPED |= {other: sign for sign, other in FLIPPED.items()}


class Place(NamedTuple):
    """Where something can be broken: ``field`` of ``node`` in the tree of the file becomes ``value``."""

    kind: str
    file: str
    function: str
    text: str
    what: str
    line: int
    tree: ast.Module
    node: ast.AST
    field: str
    value: object

    def broken(self) -> str:
        """The file with that change; without comments, as is ``whole``."""
        before = getattr(self.node, self.field)
        setattr(self.node, self.field, self.value)
        try:
            return ast.unparse(ast.fix_missing_locations(self.tree))
        finally:
            setattr(self.node, self.field, before)

    def whole(self) -> str:
        return ast.unparse(self.tree)


def places_of(root: Path = ROOT) -> list[Place]:
    return [place for module in modules_of(root).values() for place in Reader(module, root).places()]


class Reader:
    """Finds the places of one module."""

    def __init__(self, module: Module, root: Path) -> None:
        self.tree = module.tree
        self.file = module.path.relative_to(root).as_posix()
        self.lines = module.source.splitlines()

    def places(self) -> Iterator[Place]:
        yield from self._below(self.tree, "", None)

    def _below(self, node: ast.AST, name: str, at: ast.stmt | None) -> Iterator[Place]:
        """The places in a node of the function of this name, in whose statement `at` it stands."""
        parts = ast.iter_child_nodes(node)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            name = f"{name}.{node.name}".removeprefix(".")
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            at = node if isinstance(node, FUNCTIONS) and not is_stub(body) else None
            if at and body[0].lineno != node.lineno and ast.unparse(body[0]) != "return":
                at_once = [*node.body[: -len(body)], ast.Return(), *body]
                yield self._place("return", name, body[0], "", node, "body", at_once)
            parts = iter(body)
        elif at is not None:
            if isinstance(node, ast.stmt):
                at = node
            if isinstance(node, ast.If) and is_check(node):
                never = ast.Constant(value=False)
                yield self._place("drop", name, at, ast.unparse(node.test), node, "test", never)
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                flipped = [FLIPPED[type(node.ops[0])]()]
                yield self._place("flip", name, at, ast.unparse(node), node, "ops", flipped)
            if isinstance(node, ast.match_case):
                parts = iter(node.body)  # what stands before it is on a line of its own
        for part in parts:
            yield from self._below(part, name, at)

    def _place(self, kind: str, name: str, at: ast.stmt, what: str, *change: Any) -> Place:
        text = self.lines[at.lineno - 1].strip()
        return Place(kind, self.file, name, text, what, at.lineno, self.tree, *change)


def is_check(node: ast.If) -> bool:
    """Whether all that follows from it is that the function is left; nothing is named in its test."""
    leaves = len(node.body) == 1 and isinstance(node.body[0], ast.Raise | ast.Return) and not node.orelse
    return leaves and not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test))


def is_stub(body: Sequence[ast.stmt]) -> bool:
    """Whether a function only declares: nothing, `...`, `pass` or `raise NotImplementedError`."""
    first = ast.unparse(body[:1])
    return first in {"", "...", "pass"} or "NotImplementedError" in first


def choose(places: Sequence[Place], seed: int) -> list[Place]:
    """``COUNT`` places, as many of each kind, that can be told apart by what the list says of them."""
    told = Counter(place[:5] for place in places)
    rng = random.Random(seed)
    chosen: list[Place] = []
    for index, kind in enumerate(KINDS):
        of_kind = [place for place in places if place.kind == kind and told[place[:5]] == 1]
        chosen += rng.sample(of_kind, (COUNT + len(KINDS) - 1 - index) // len(KINDS))
    return chosen


def find(row: dict[str, str], places: Sequence[Place]) -> Place | None:
    """The place that a row of the list means, in a checkout where modules and names may have changed: the
    same line of a function of that name, in the same file if there are several; else what `now_kind`,
    `now_function` and `now_text` say.
    """
    same = _like(places, row["kind"], row["function"], row["text"])
    same = [place for place in same if place.what == row["what"]]
    same.sort(key=lambda place: place.file != row["file"])
    if not same and row["now_text"]:
        same = _like(places, row["now_kind"], row["now_function"], row["now_text"])
    return same[0] if same else None


def _like(places: Sequence[Place], kind: str, function: str, text: str) -> list[Place]:
    return [
        place
        for place in places
        if (place.kind, last(place.function), place.text) == (kind, last(function), text)
    ]


def last(function: str) -> str:
    return function.rpartition(".")[2]
