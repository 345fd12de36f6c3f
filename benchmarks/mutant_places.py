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
Function = ast.FunctionDef | ast.AsyncFunctionDef
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
        for function, name in functions(self.tree):
            body = without_docstring(function)
            if is_stub(body):
                continue
            if body[0].lineno != function.lineno and ast.unparse(body[0]) != "return":
                docstring = function.body[: -len(body)]
                at_once = [*docstring, ast.Return(), *body]
                yield self._place("return", name, body[0], "", function, "body", at_once)
            for statement in own_statements(body):
                if isinstance(statement, ast.If) and is_check(statement):
                    tested = ast.unparse(statement.test)
                    yield self._place(
                        "drop", name, statement, tested, statement, "test", ast.Constant(value=False)
                    )
                for node in own_expressions(statement):
                    if isinstance(node, ast.Compare) and len(node.ops) == 1:
                        flipped = [FLIPPED[type(node.ops[0])]()]
                        yield self._place("flip", name, statement, ast.unparse(node), node, "ops", flipped)

    def _place(self, kind: str, name: str, at: ast.stmt, what: str, *change: Any) -> Place:
        text = self.lines[at.lineno - 1].strip()
        return Place(kind, self.file, name, text, what, at.lineno, self.tree, *change)


def is_check(node: ast.If) -> bool:
    """Whether all that follows from it is that the function is left; nothing is named in its test."""
    leaves = len(node.body) == 1 and isinstance(node.body[0], ast.Raise | ast.Return) and not node.orelse
    return leaves and not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test))


def functions(node: ast.AST, above: str = "") -> Iterator[tuple[Function, str]]:
    """Every function below ``node``, with its name in the file."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            name = f"{above}{child.name}"
            if isinstance(child, FUNCTIONS):
                yield child, name
            yield from functions(child, f"{name}.")
        else:
            yield from functions(child, above)


def without_docstring(function: Function) -> list[ast.stmt]:
    return function.body[1:] if ast.get_docstring(function) is not None else function.body


def is_stub(body: Sequence[ast.stmt]) -> bool:
    """Whether a function only declares: nothing, `...`, `pass` or `raise NotImplementedError`."""
    return (
        not body or ast.unparse(body[0]) in {"...", "pass"} or "NotImplementedError" in ast.unparse(body[0])
    )


def own_statements(body: Sequence[ast.AST]) -> Iterator[ast.stmt]:
    """The statements of a function, without those of functions and classes in it."""
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from own_statements(list(ast.iter_child_nodes(node)))


def own_expressions(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions of a statement, without those of statements in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from own_expressions(child)


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
