"""How long a page of the table of items takes, in a table: each order, each filter, and ten pairs of them.

    .venv/bin/python benchmarks/items.py [--items 100000] [--repeat 15]             (SQLite)
    .venv/bin/python -m testbed.servers postgres -- .venv/bin/python benchmarks/items.py --items 1000000

It asks for what the page shows: the rows of one page with their delivered labels, and apart from that the
bounded count, which the page fetches when it is there.
The project is made up (items_world.py): one label in a hundred is rare, one item in a thousand is flagged,
one in a hundred has a twin. "Page" is the first one; "next" and "previous" are those behind and before an
item in the middle. Each pass asks anew. "Busy" is the most processor time of one page, of this process and
of the database server's (if it runs here): on a machine that does other work it tells more than the time
that passes. A project that was made before is used again, if it is still in the database.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--only", default="", help="measure only lines with this in their name")
    parser.add_argument("--plans", action="store_true", help="print the plan of the slowest query of a line")
    return parser.parse_args()


# --- What is measured ---------------------------------------------------------------------------------------


def lines(project: Any) -> list[tuple[str, dict[str, str], str]]:
    """(name, filters, order) of everything that is measured."""
    from routing.selectors.item_sorts import NAMES

    # Thresholds of the made-up run: about 0.16 and 0.51.
    ann = str(project.memberships.filter(role="annotator").first().user_id)
    filters = {
        "none": {},
        "q=name": {"q": "t777"},
        "q=rare word": {"q": "has no such word"},
        "q=frequent word": {"q": "goes on for"},
        **{
            f"stage={name}": {"stage": name}
            for name in ("labelled", "unlabelled", "waiting", "stuck", "disputed")
        },
        "stage=unlabelable": {"stage": "unlabelable"},
        "by=person": {"by": "person"},
        "by=1": {"by": "1"},
        "by=2": {"by": "2"},
        "by=nobody": {"by": "nobody"},
        "sent=2": {"sent": "2"},
        "label=cat": {"label": "cat"},
        "label=emu (rare)": {"label": "emu"},
        "human=emu (rare)": {"human": "emu"},
        "answer=1:cat": {"answer": "1:cat"},
        "answer=1:emu (rare)": {"answer": "1:emu"},
        "u_from=0.99": {"u_from": "0.99"},
        "u_to=0.5": {"u_to": "0.5"},
        "annotator": {"annotator": ann},
        "flag=open": {"flag": "open"},
        "comment=any": {"comment": "any"},
        "differ=people": {"differ": "people"},
        "differ=sources": {"differ": "sources"},
        "same=any": {"same": "any"},
    }
    pairs = [
        ({"stage": "waiting", "u_from": "0.97"}, "-u"),
        ({"stage": "labelled", "human": "cat"}, "-label"),
        ({"by": "1", "label": "dog"}, "position"),
        ({"by": "2", "u_from": "0.4"}, "-u"),
        ({"sent": "person", "flag": "open"}, "position"),
        ({"annotator": ann, "label": "emu"}, "-label"),
        ({"answer": "1:cat", "sent": "2"}, "name"),
        ({"stage": "unlabelled", "u_to": "0.1"}, "u"),
        ({"label": "cat", "flag": "open"}, "name"),
        ({"stage": "labelled", "comment": "any"}, "-time"),
    ]
    found: list[tuple[str, dict[str, str], str]] = [(f"order {name}", {}, name) for name in NAMES]
    found += [(f"filter {name}", chosen, "position") for name, chosen in filters.items()]
    found += [
        (" + ".join(f"{k}={v}" for k, v in chosen.items()) + f", {sort}", chosen, sort)
        for chosen, sort in pairs
    ]
    return found


@dataclass
class Line:
    """Milliseconds of each pass; `busy` of processor time at most; `slowest` query and its SQL; `cut`: ""."""

    name: str
    times: dict[str, list[float]]
    busy: float = 0.0
    slowest: tuple[float, str] = (0.0, "")
    cut: str = ""


def measured_lines(project: Any, access: Any, repeat: int, only: str) -> Iterator[Line]:
    from django.db import connection, reset_queries

    from routing.selectors.item_counts import table_total
    from routing.selectors.item_sorts import SORTS, cursor_of, place_of
    from routing.selectors.items_table import table_page
    from routing.selectors.visibility import sight_of

    middle = project.items.get(position=project.items.count() // 2 // 1000 * 1000 + 999)
    sight = sight_of(project, access)
    for name, filters, sort in lines(project):
        if only not in name:
            continue
        kind_of_order = SORTS[sort.removeprefix("-")]
        key = place_of(sight, sort, middle.pk)
        if key is None:
            rows = kind_of_order.rows(sight).order_by(*kind_of_order.key).values_list(*kind_of_order.key)
            key = rows[rows.count() // 2]
        place = cursor_of(key)
        line = Line(name, {"page": [], "next": [], "previous": [], "count": []})
        for number in range(repeat):
            for kind, times in line.times.items():
                connection.force_debug_cursor = number == 0
                reset_queries()
                start, before = time.perf_counter(), processor(connection)
                now = sight_of(project, access)
                if kind == "count":
                    table_total(now, filters=filters, sort=sort)
                else:
                    asked = {"next": {"after": place}, "previous": {"before": place}}.get(kind, {})
                    page = table_page(now, filters=filters, sort=sort, count=False, **asked)
                    line.cut = line.cut or ("not looked at all" if page.cut else "")
                times.append((time.perf_counter() - start) * 1000)
                if kind != "count":
                    line.busy = max(line.busy, (processor(connection) - before) * 1000)
                done = [(float(query["time"]) * 1000, query["sql"]) for query in connection.queries]
                line.slowest = max([line.slowest, *done])
            if sum(map(sum, line.times.values())) > 20_000:
                break
        yield line


def measure(project: Any, access: Any, options: argparse.Namespace) -> None:
    from django.db import connection

    print(
        "| what | page p50 | page p95 | next p95 | previous p95 | count p95 | busy | slowest query | |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---|"
    )
    for line in measured_lines(project, access, options.repeat, options.only):
        columns = (
            statistics.median(line.times["page"]),
            *map(p95, line.times.values()),
            line.busy,
            line.slowest[0],
        )
        print(f"| {line.name} | {' | '.join(f'{ms:.0f} ms' for ms in columns)} | {line.cut} |", flush=True)
        if options.plans:
            with connection.cursor() as cursor:
                explain = "(ANALYZE, BUFFERS)" if connection.vendor == "postgresql" else "QUERY PLAN"
                cursor.execute(f"EXPLAIN {explain} {line.slowest[1]}")
                print(line.slowest[1], *(" | ".join(map(str, row)) for row in cursor.fetchall()), sep="\n")


def processor(connection: Any) -> float:
    """Seconds of processor time that this process and, where it is on this machine, its process of the
    PostgreSQL server have taken.
    """
    taken = time.process_time()
    if connection.vendor == "postgresql":
        with suppress(OSError), Path(f"/proc/{connection.connection.info.backend_pid}/stat").open() as file:
            fields = file.read().rpartition(")")[2].split()
            taken += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return taken


def p95(times: list[float]) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="hypac-benchmark-") as folder:
        os.environ |= {
            "HYPAC_VAR": folder,
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
            "HYPAC_LOG_LEVEL": "ERROR",
            "DJANGO_SECRET_KEY": "of a server that nobody reaches, for as long as this runs",
        }
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection
        from items_world import found, make

        call_command("migrate", verbosity=0)
        start = time.perf_counter()
        (project, access), how = found(options.items), "found"
        if project is None:
            (project, access), how = make(options.items), f"made in {time.perf_counter() - start:.0f} s"
        print(f"{options.items:,} items, {connection.vendor}; {how}")
        measure(project, access, options)


if __name__ == "__main__":
    main()
