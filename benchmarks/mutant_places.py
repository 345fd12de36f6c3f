"""The places of a checkout that can be broken, and the list of some of them; see benchmarks/mutants.py."""

import ast
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from testbed.imports import Module, modules_of

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
KINDS = ("flip", "drop", "return")
COUNT = 40
FLIPPED = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
}


class Place(NamedTuple):
    """Where something can be broken: bytes ``start`` to ``end`` of the file become ``text_there``."""

    kind: str
    file: str
    function: str
    text: str
    what: str
    line: int
    start: int
    end: int
    text_there: str


def places_of(root: Path) -> list[Place]:
    return [place for module in modules_of(root).values() for place in Reader(module, root).places()]


class Reader:
    """Finds the places of one module."""

    def __init__(self, module: Module, root: Path) -> None:
        self.module = module
        self.file = module.path.relative_to(root).as_posix()
        self.lines = module.source.encode().splitlines(keepends=True)

    def places(self) -> Iterator[Place]:
        for function, name in functions(self.module.tree):
            body = without_docstring(function)
            if is_stub(body):
                continue
            if returns := self._return(function, name, body[0]):
                yield returns
            for statement in own_statements(body):
                if isinstance(statement, ast.If) and (dropped := self._drop(statement, name)):
                    yield dropped
                yield from self._flips(statement, name)

    def _return(self, function: Function, name: str, first: ast.stmt) -> Place | None:
        if first.lineno == function.lineno or ast.unparse(first) == "return":
            return None
        start = self._offset(first.lineno, first.col_offset)
        return self._place("return", name, first, "", start, start, "return\n" + " " * first.col_offset)

    def _drop(self, node: ast.If, name: str) -> Place | None:
        leaves = len(node.body) == 1 and isinstance(node.body[0], ast.Raise | ast.Return) and not node.orelse
        if not leaves or any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test)):
            return None
        start, end = self._span(node.test)
        return self._place("drop", name, node, ast.unparse(node.test), start, end, "False")

    def _flips(self, statement: ast.stmt, name: str) -> Iterator[Place]:
        for node in own_expressions(statement):
            if not isinstance(node, ast.Compare) or len(node.ops) > 1:
                continue
            sign, other = FLIPPED[type(node.ops[0])]
            start, end = self._span(node.left)[1], self._span(node.comparators[0])[0]
            between = self.module.source.encode()[start:end].decode()
            flipped = re.sub(sign, other, between, count=1)
            yield self._place("flip", name, statement, ast.unparse(node), start, end, flipped)

    def _place(self, kind: str, name: str, at: ast.stmt, what: str, start: int, end: int, new: str) -> Place:
        text = self.lines[at.lineno - 1].decode().strip()
        return Place(kind, self.file, name, text, what, at.lineno, start, end, new)

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        return sum(map(len, self.lines[: line - 1])) + column


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
