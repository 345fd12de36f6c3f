"""The code as a house: how many modules of which size, who imports whom, and how far a question leads.

    .venv/bin/python benchmarks/house.py [--csv benchmarks/house.csv --as 0.2.0]
    git worktree add ../then v0.2.0
    .venv/bin/python benchmarks/house.py --root ../then --entries benchmarks/house-0.2.0.txt

Of annotation/, routing/ and hypac_site/, migrations left out. A function's lines are those from `def` to its
end. Imports inside functions count, those under TYPE_CHECKING do not. A circle is a set of modules, or of
rooms (the folders one level below annotation/ and routing/), each of which leads to each other by imports; a
module that stands in no room is passed over there. For each entry point: the modules with the functions and
classes that it leads to by calls, as mypy reads them (benchmarks/house_calls.py tells what it cannot see).

`--csv` writes the figures as a column of a table, named by `--as`, beside the columns that stand there.
"""

import ast
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd
from house_calls import Calls
from runner import ROOT, parser_of

from testbed.imports import PACKAGES, Edges, Module, circles, edges_of, modules_of, room_imports

SHORT = 70
# Each is the request's function and the job's handler. Mend this table with what moves.
ENTRIES = """
import = annotation.imports.upload.start_import annotation.imports.job.run_import
start a run = routing.runs.start.start_run routing.runs.start.prepare_run
predict = routing.runs.predict.predict_missing
claim = annotation.labelling.leases.claim
answer = annotation.labelling.answers.submit
analyse = routing.runs.certify.analyse routing.runs.certify.analyse_run
route = routing.runs.route.route routing.runs.route.route_run
deliver = routing.delivery.deliver.deliver routing.delivery.deliver.deliver_run
page: plan = routing.runs.plan_views.plan
page: run = routing.runs.views.run
page: label = annotation.labelling.views.annotate
page: items = routing.items.views.items
"""

Figures = dict[str, str]


def lengths(modules: Mapping[str, Module]) -> Iterator[tuple[str, list[int]]]:
    yield "file", [module.source.count("\n") for module in modules.values()]
    nodes = (node for module in modules.values() for node in ast.walk(module.tree))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    yield "function", [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]


def shape(modules: Mapping[str, Module]) -> Figures:
    found: Figures = {"modules": f"{len(modules)}"}
    for what, counts in lengths(modules):
        if what == "file":
            found["lines"] = f"{sum(counts)}"
        found[f"lines of a {what}, median"] = f"{statistics.median(counts):.0f}"
        found[f"lines of a {what}, 90th percentile"] = f"{statistics.quantiles(counts, n=10)[-1]:.0f}"
    return found


def ties(modules: Mapping[str, Module], edges: Edges) -> tuple[Figures, list[str]]:
    """Figures about imports, and a line for each circle."""
    importers = Counter(other for others in edges.values() for other in others)
    single = [name for name, count in importers.items() if count == 1]
    short = [name for name in single if modules[name].source.count("\n") <= SHORT]
    of_rooms = room_imports(modules, edges)
    rooms: dict[str, set[str]] = defaultdict(set)
    for one, other in of_rooms:
        rooms[one].add(other)
        rooms[other].update()
    both_ways = sorted((one, other) for one, other in of_rooms if one < other and (other, one) in of_rooms)
    module_circles, room_circles = circles(edges), circles(rooms)
    figures = {
        "modules with one importer": f"{len(single)}",
        f"of these at most {SHORT} lines": f"{len(short)}",
        "circles of modules": f"{len(module_circles)}",
        "modules in circles": f"{sum(map(len, module_circles))}",
        "circles of rooms": f"{len(room_circles)}",
        "rooms in circles": f"{sum(map(len, room_circles))}",
        "pairs of rooms that import each other": f"{len(both_ways)}",
    }
    notes = [
        f"circle of {len(circle)}: {', '.join(sorted(circle))}" for circle in module_circles + room_circles
    ]
    notes += [f"{a} <-> {b}: {of_rooms[a, b]} imports, {of_rooms[b, a]} back" for a, b in both_ways]
    return figures, notes


def reach(root: Path, entries: str) -> Figures:
    calls = Calls(root, PACKAGES)
    lines = (line.partition(" = ") for line in entries.splitlines() if line)
    return {f"modules reached: {title}": f"{len(calls.reached(*names.split()))}" for title, _, names in lines}


def write(path: Path, column: str, figures: Figures) -> None:
    """Add or replace one column of the table in ``path``."""
    table = pd.read_csv(path, index_col="figure", dtype=str) if path.exists() else pd.DataFrame()
    others = [name for name in table.index if name not in figures]
    table = table.reindex([*figures, *others]).rename_axis("figure")
    table[column] = pd.Series(figures)
    table.to_csv(path)


def main() -> None:
    parser = parser_of(__doc__, circles=(False, "say which modules and rooms stand in circles"))
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout")
    parser.add_argument("--entries", type=Path, help="other entry points, in lines 'title = names'")
    parser.add_argument("--csv", type=Path, help="the table to write into")
    parser.add_argument("--as", dest="column", default="now", help="name of the column there")
    options = parser.parse_args()
    entries = options.entries.read_text() if options.entries else ENTRIES
    modules = modules_of(options.root)
    figures, notes = ties(modules, edges_of(options.root.resolve()))
    try:
        figures = {**shape(modules), **figures, **reach(options.root, entries)}
    except LookupError as error:
        sys.exit(f"{error.args[0]}: mend the table of entry points, or give another with --entries")
    for name, value in figures.items():
        print(f"{name:<45} {int(value):>7,}")
    if options.circles:
        print("", *notes, sep="\n")
    if options.csv:
        write(options.csv, options.column, figures)


if __name__ == "__main__":
    main()
