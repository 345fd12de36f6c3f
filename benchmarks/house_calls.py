"""Which modules of ours a function leads to by calls, read from the source alone: nothing is imported or run.

A name or attribute in the body of a reached function that means a function or class of ours reaches it,
called there or handed on; annotations do not. A method is found on the class that is declared: by `self`
and `super()`, annotated parameters, variables and fields, foreign keys, return annotations and what a call
of a class makes; elements of annotated lists, too. Making an object reaches its special methods, and where
a class of a framework stands above it (a form, a serializer), all of it, since the framework calls it.

What this cannot see: registries and tables of functions, what `AppConfig.ready` plugs in, jobs by the name
of their kind, methods that a subclass puts in place of the declared ones, objects whose class is written
nowhere (a row from a query set), templates and their tags, middleware, and signals.
"""

import ast
from collections.abc import Callable, Iterator

from benchmarks.house_names import FUNCTIONS, Def, Function, Made, Meaning, Names, Scope, Whole, targets


class _Body(ast.NodeVisitor):
    """Walks one function or class in order, keeps what its variables are, and tells what it reaches."""

    def __init__(self, names: Names, found: Def, reach: Callable[[Def], None]) -> None:
        self._names, self._module, self._reach = names, found.module, reach
        self._scope: Scope = {}
        if found.owner:
            own = Made(found.owner)
            self._scope = {"self": own, "cls": found.owner}
            above = names.bases(found.owner)
            self._scope["super"] = Made(above[0]) if above else None

    def visit_Name(self, node: ast.Name) -> None:
        self._touch(self._meaning(node))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        base = self._meaning(node.value)
        self._touch(self._names.method(base, node.attr) or self._meaning(node))
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        called = self._meaning(node.func)
        if isinstance(called, Def) and called.is_class:
            for method in made_by(self._names, called):
                self._reach(method)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            self._scope[alias.asname or whole] = Whole(whole) if whole in self._names.modules else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self._names.modules[self._module].base_of(node)
        for alias in node.names:
            found = self._names.top(base, alias.name) if base in self._names.modules else None
            self._scope[alias.asname or alias.name] = found

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for name in targets(node):
            self._scope[name] = self._meaning(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
        for name in targets(node):
            self._scope[name] = self._names.annotated(node.annotation, self._module)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._scope[node.target.id] = self._meaning(node.value)

    def visit_For(self, node: ast.For) -> None:
        self._element(node.target, node.iter)
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if isinstance(item.optional_vars, ast.Name):
                found = self._meaning(item.context_expr)
                self._scope[item.optional_vars.id] = Made(found.kind) if isinstance(found, Made) else None
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._element(node.target, node.iter)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        for generator in node.generators:
            self.visit(generator)
        self.generic_visit(node)

    def _function(self, node: Function) -> None:
        """Arguments and what stands in the body; annotations are no calls."""
        outer = dict(self._scope)
        arguments = node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            if argument.arg not in {"self", "cls"}:
                self._scope[argument.arg] = self._names.annotated(argument.annotation, self._module)
        for part in [*node.decorator_list, *arguments.defaults, *arguments.kw_defaults, *node.body]:
            if part is not None:
                self.visit(part)
        self._scope = {**outer, node.name: None} if outer else {}

    def _element(self, target: ast.expr, iterated: ast.expr) -> None:
        found = self._meaning(iterated)
        element = Made(found.kind) if isinstance(found, Made) and found.many else None
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self._scope[node.id] = element if node is target else None

    def _meaning(self, node: ast.expr) -> Meaning:
        return self._names.meaning(node, self._module, self._scope)

    def _touch(self, found: Meaning) -> None:
        if isinstance(found, Def):
            self._reach(found)


def made_by(names: Names, kind: Def) -> Iterator[Def]:
    """The methods that making an object of ``kind`` leads to."""
    everything = names.is_framework(kind)
    for above in names.lineage(kind):
        assert isinstance(above.node, ast.ClassDef)
        for node in above.node.body:
            if isinstance(node, FUNCTIONS) and (everything or node.name.startswith("__")):
                yield Def(above.module, f"{above.name}.{node.name}", node, above)
        if everything:
            yield Def(above.module, f"{above.name} as a whole", above.node, above)


def reached(names: Names, *entries: Def) -> set[str]:
    """The modules in which functions and classes stand that ``entries`` lead to by calls."""
    seen: dict[tuple[str, str], Def] = {}
    waiting: list[Def] = []

    def reach(found: Def) -> None:
        if (found.module, found.name) not in seen:
            seen[found.module, found.name] = found
            waiting.append(found)

    for entry in entries:
        reach(entry)
        if entry.is_class:
            for method in made_by(names, entry):
                reach(method)
    while waiting:
        found = waiting.pop()
        if not found.is_class:
            _Body(names, found, reach).visit(found.node)
        elif found.name.endswith(" as a whole"):
            assert isinstance(found.node, ast.ClassDef)
            for node in found.node.body:
                if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                    _Body(names, found, reach).visit(node)
    return {module for module, _ in seen}
