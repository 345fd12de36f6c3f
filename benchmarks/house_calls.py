"""Which modules of ours a function leads to by calls, as mypy reads the code: nothing of it is run.

A name or attribute in the body of a reached function that means a function or class of ours reaches it,
called there or handed on; annotations do not. What an attribute means follows from the type that mypy gives
to what stands before the dot. A class brings its special methods with it, and where a class of a framework
stands above it (a form, a serializer), all that stands in it, since the framework calls that.

What this cannot see: registries and tables of functions, what `AppConfig.ready` plugs in, jobs by the name
of their kind, methods that a subclass puts in place of the declared ones, what `super()` means, templates and
their tags, middleware, and signals.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path

from mypy import build, nodes, types
from mypy.main import process_options
from mypy.traverser import NameAndMemberCollector

FUNCTIONS = (nodes.FuncDef, nodes.Decorator, nodes.OverloadedFuncDef)
FRAMEWORKS = ("django.", "rest_framework.")
PASSIVE = ("django.db.models.base.Model", "builtins.BaseException")  # which call nothing by themselves


class Calls:
    """What mypy knows of the packages of a checkout; finding that out takes it half a minute."""

    def __init__(self, root: Path, packages: Sequence[str]) -> None:
        sys.path.insert(0, str(root.resolve()))
        with chdir(root):  # where mypy's settings and Django's are found
            sources, options = process_options([part for name in packages for part in ("-p", name)])
            options.incremental, options.cache_dir = False, os.devnull
            options.export_types = options.preserve_asts = True
            result = build.build(sources, options)
        self._types = result.types
        ours = {name: tree for name, tree in result.files.items() if name.partition(".")[0] in packages}
        self._modules: dict[str, nodes.MypyFile] = ours

    def reached(self, *entries: str) -> set[str]:
        """The modules in which functions and classes stand that these functions and classes lead to.
        `LookupError` where there is none of such a name.
        """
        seen: dict[str, nodes.SymbolNode] = {}
        waiting = [self._entry(name) for name in entries]
        while waiting:
            node = waiting.pop()
            known = isinstance(node, (*FUNCTIONS, nodes.TypeInfo)) and self._module_of(node)
            if known and node.fullname not in seen:
                seen[node.fullname] = node
                waiting += self._below(node)
        return {self._module_of(node) for node in seen.values()}

    def _entry(self, name: str) -> nodes.SymbolNode:
        module, _, own = name.rpartition(".")
        if module not in self._modules or own not in self._modules[module].names:
            raise LookupError(f"there is no function or class {name}")
        return self._modules[module].names[own].node

    def _module_of(self, node: nodes.SymbolNode) -> str:
        """The module of ours that it stands in; "" where it is not ours."""
        name = node.fullname
        while name and name not in self._modules:
            name = name.rpartition(".")[0]
        return name

    def _below(self, node: nodes.SymbolNode) -> Iterator[nodes.SymbolNode | None]:
        if not isinstance(node, nodes.TypeInfo):
            yield from self._named_in(node)
            return
        above = {kind.fullname for kind in node.mro}
        called = above.isdisjoint(PASSIVE) and any(name.startswith(FRAMEWORKS) for name in above)
        for kind in filter(self._module_of, node.mro):
            yield kind
            for name, symbol in kind.names.items():
                if called or name.startswith("__"):
                    yield symbol.node
            if called:
                for statement in kind.defn.defs.body:
                    if isinstance(statement, nodes.AssignmentStmt):
                        yield from self._named_in(statement)

    def _named_in(self, node: nodes.Node) -> Iterator[nodes.SymbolNode | None]:
        found = NameAndMemberCollector()
        node.accept(found)
        for name in found.name_exprs:
            yield name.node
        for member in found.member_exprs:
            yield member.node
            for kind in classes_of(self._types.get(member.expr)):
                symbol = kind.get(member.name)
                yield symbol and symbol.node


def classes_of(kind: types.Type | None) -> Iterator[nodes.TypeInfo]:
    """The classes whose attributes a value of this type has."""
    match types.get_proper_type(kind):
        case types.Instance(type=found):
            yield found
        case types.UnionType(items=items):
            for item in items:
                yield from classes_of(item)
        case types.TypeType(item=item) | types.TypeVarType(upper_bound=item):
            yield from classes_of(item)
        case types.LiteralType(fallback=item) | types.TupleType(partial_fallback=item):
            yield from classes_of(item)
        case types.FunctionLike() as called if called.is_type_obj():
            yield called.type_object()
