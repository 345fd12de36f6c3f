"""What names and expressions of our code mean, read from the source alone; benchmarks/house.py asks it."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from testbed.imports import Module

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
# Bases that call nothing by themselves.
PLAIN = {
    *("ABC", "Enum", "Exception", "Generic", "IntEnum", "NamedTuple", "Protocol", "StrEnum", "TypedDict"),
    *("dict", "float", "int", "list", "object", "str", "tuple"),
}


class Whole(NamedTuple):
    """A module, as a value."""

    module: str


class Def(NamedTuple):
    """A function, method or class of ours; ``owner`` is the class that a method stands in."""

    module: str
    name: str
    node: Function | ast.ClassDef
    owner: "Def | None" = None

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)


class Made(NamedTuple):
    """An object of a class of ours, or many of them where ``many``."""

    kind: Def
    many: bool = False


Meaning = Whole | Def | Made | None
Scope = dict[str, Meaning]


class Names:
    """What names mean in the modules of a checkout."""

    def __init__(self, modules: dict[str, Module]) -> None:
        self.modules = modules
        self._tops = {name: dict(self._top(module)) for name, module in modules.items()}

    def entry(self, qualified: str) -> Def:
        """The function, method or class called ``qualified``; `LookupError` where there is none."""
        parts = qualified.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:cut])
            if module in self.modules:
                found: Meaning = Whole(module)
                for part in parts[cut:]:
                    found = self.attribute(found, part)
                if isinstance(found, Def):
                    return found
                break
        raise LookupError(f"there is no function or class {qualified}")

    def top(self, module: str, name: str) -> Meaning:
        """What ``name`` means at the top level of ``module``, through imports."""
        found = self._tops[module].get(name)
        if isinstance(found, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            return Def(module, name, found)
        meaning = None
        if found is not None:
            self._tops[module][name] = (
                None  # for as long as it is followed, so that no circle is followed forever
            )
            meaning = self._imported(*found) if isinstance(found, tuple) else self._assigned(found, module)
            self._tops[module][name] = found
        submodule = f"{module}.{name}"
        return meaning or (Whole(submodule) if submodule in self.modules else None)

    def attribute(self, value: Meaning, name: str) -> Meaning:
        if isinstance(value, Whole):
            return self.top(value.module, name)
        if isinstance(value, Def) and value.is_class:
            return self._member(value, name)
        if isinstance(value, Made) and not value.many:
            found = self._member(value.kind, name)
            return self.returned(found) if isinstance(found, Def) and is_property(found) else found
        return None

    def method(self, value: Meaning, name: str) -> Def | None:
        """The method, property or inner class that ``value.name`` reaches."""
        if isinstance(value, Made) and not value.many:
            value = value.kind
        found = self.attribute(value, name)
        return found if isinstance(found, Def) else None

    def bases(self, kind: Def) -> list[Def]:
        assert isinstance(kind.node, ast.ClassDef)
        found = (self.meaning(base, kind.module, {}) for base in kind.node.bases)
        return [
            base for base in found if isinstance(base, Def) and base.is_class and base.node is not kind.node
        ]

    def lineage(self, kind: Def) -> Iterator[Def]:
        yield kind
        for base in self.bases(kind):
            yield from self.lineage(base)

    def is_framework(self, kind: Def) -> bool:
        """Whether a class that is not ours, and which calls what stands in it, is above ``kind``."""
        for above in self.lineage(kind):
            assert isinstance(above.node, ast.ClassDef)
            for base in above.node.bases:
                last = ast.unparse(base).split("[")[0].rpartition(".")[2]
                outside = not isinstance(self.meaning(base, above.module, {}), Def)
                if outside and last not in PLAIN and not last.endswith(("Error", "Model", "User")):
                    return True
        return False

    def meaning(self, node: ast.expr | None, module: str, scope: Scope) -> Meaning:
        """What an expression is, where that can be read."""
        match node:
            case ast.Name(id=name):
                return scope[name] if name in scope else self.top(module, name)
            case ast.Attribute(value=value, attr=name):
                return self.attribute(self.meaning(value, module, scope), name)
            case ast.Call(func=ast.Name(id="super")):
                own = scope.get("super")
                return own if isinstance(own, Made) else None
            case ast.Call(func=function):
                called = self.meaning(function, module, scope)
                return self.returned(called) if isinstance(called, Def) else None
            case ast.Subscript(value=value):
                found = self.meaning(value, module, scope)
                return Made(found.kind) if isinstance(found, Made) and found.many else found
            case ast.BoolOp(values=values):
                return self._first(values, module, scope)
            case ast.IfExp(body=body, orelse=orelse):
                return self._first([body, orelse], module, scope)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.meaning(value, module, scope)
        return None

    def returned(self, called: Def) -> Meaning:
        """What a call of a class or function gives."""
        if isinstance(called.node, ast.ClassDef):
            return Made(called)
        if called.node.returns is not None and ast.unparse(called.node.returns) == "Self" and called.owner:
            return Made(called.owner)
        return self.annotated(called.node.returns, called.module)

    def annotated(self, node: ast.expr | None, module: str) -> Meaning:
        """What an annotation says: the first class of ours in it, many of them inside of brackets."""
        match node:
            case ast.Constant(value=str(text)):
                return self.annotated(ast.parse(text, mode="eval").body, module)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self.annotated(left, module) or self.annotated(right, module)
            case ast.Subscript(value=value, slice=inner):
                outer = self.meaning(value, module, {})
                if isinstance(outer, Def):
                    return Made(outer) if outer.is_class else None
                if ast.unparse(value).rpartition(".")[2] in {
                    "dict",
                    "Callable",
                    "Literal",
                    "Mapping",
                    "tuple",
                }:
                    return None
                found = self.annotated(inner, module)
                return Made(found.kind, many=True) if isinstance(found, Made) else None
            case ast.Name() | ast.Attribute():
                found = self.meaning(node, module, {})
                return Made(found) if isinstance(found, Def) and found.is_class else None
        return None

    def _first(self, nodes: list[ast.expr], module: str, scope: Scope) -> Meaning:
        return next(filter(None, (self.meaning(node, module, scope) for node in nodes)), None)

    def _imported(self, base: str, name: str | None) -> Meaning:
        if base not in self.modules:
            return None
        return Whole(base) if name is None else self.top(base, name)

    def _assigned(self, node: ast.Assign | ast.AnnAssign, module: str) -> Meaning:
        declared = self.annotated(node.annotation, module) if isinstance(node, ast.AnnAssign) else None
        return declared or self.meaning(node.value, module, {})

    def _member(self, kind: Def, name: str) -> Meaning:
        for above in self.lineage(kind):
            assert isinstance(above.node, ast.ClassDef)
            for node in above.node.body:
                if (
                    isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                    and node.name == name
                ):
                    return Def(above.module, f"{above.name}.{name}", node, above)
                if isinstance(node, ast.Assign | ast.AnnAssign) and name in targets(node):
                    return self._assigned(node, above.module) or self._related(node.value, above.module)
        return None

    def _related(self, node: ast.expr | None, module: str) -> Meaning:
        """The class that a foreign key names."""
        if not isinstance(node, ast.Call) or not node.args or "ForeignKey" not in ast.unparse(node.func):
            return None
        found = self.meaning(node.args[0], module, {})
        return Made(found) if isinstance(found, Def) and found.is_class else None

    def _top(self, module: Module) -> Iterator[tuple[str, ast.AST | tuple[str, str | None]]]:
        for node in statements(module.tree.body):
            match node:
                case ast.Import(names=names):
                    for alias in names:
                        whole = alias.name if alias.asname else alias.name.partition(".")[0]
                        yield alias.asname or whole, (whole, None)
                case ast.ImportFrom(names=names):
                    base = module.base_of(node)
                    for alias in names:
                        yield alias.asname or alias.name, (base, alias.name)
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name, node
                case ast.Assign() | ast.AnnAssign():
                    for name in targets(node):
                        yield name, node


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under a condition (types to check, missing packages), too."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from statements([*node.body, *node.orelse])


def targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    listed = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in listed if isinstance(target, ast.Name)]


def is_property(found: Def) -> bool:
    return any(ast.unparse(decorator).endswith("property") for decorator in found.node.decorator_list)
