"""What the benchmarks share: options, tables, times, and installations to measure, in this process or served.

A script imports this first: the checkout is on the path from then on.
"""

import argparse
import csv
import io
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "clients" / "python")]


# --- What is asked and told ---


def options_of(doc: str | None, **options: tuple[Any, str]) -> argparse.Namespace:
    """What was asked for; see `parser_of`."""
    return parser_of(doc, **options).parse_args()


def parser_of(doc: str | None, **options: tuple[Any, str]) -> argparse.ArgumentParser:
    """Each option has its default, whose type is that of the option, or a type alone, and a help."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, (default, about) in options.items():
        given: dict[str, Any] = {"type": type(default), "default": default}
        if isinstance(default, bool):
            given = {"action": "store_true"}
        elif isinstance(default, type):
            given = {"type": default}
        elif default:
            about += " (default: %(default)s)"
        parser.add_argument(f"--{name.replace('_', '-')}", help=about, **given)
    return parser


def machine(*packages: str) -> str:
    """The line that stands above a table: processors, memory, what else is at work, versions."""
    from importlib.metadata import version

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    parts = [platform.machine(), f"{os.cpu_count()} cores", f"{memory:.0f} GiB"]
    parts += [f"load {os.getloadavg()[0]:.1f}", f"Python {platform.python_version()}"]
    return ", ".join([*parts, *(f"{name} {version(name)}" for name in packages)])


class Table:
    """A Markdown table that is printed row by row; the first column is text, the others are figures."""

    def __init__(self, *heads: str, title: str = "") -> None:
        print(f"\n{title}\n" if title else "")
        self.row(*heads)
        print("|---" + "|---:" * (len(heads) - 1) + "|", flush=True)

    @staticmethod
    def row(*cells: object) -> None:
        print(line_of(cells), flush=True)


def markdown(rows: Iterable[Mapping[str, object]]) -> str:
    """A whole Markdown table, for a page; the rows have the same columns."""
    found = list(rows)
    heads = list(found[0]) if found else []
    return "\n".join(map(line_of, [heads, ["---"] * len(heads), *(row.values() for row in found)]))


def line_of(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def csv_text(rows: Iterable[Mapping[str, object]]) -> str:
    found = list(rows)
    file = io.StringIO()
    writer = csv.DictWriter(file, found[0] if found else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return file.getvalue()


def replace_between(page: Path, before: str, after: str, text: str) -> None:
    """Put the text in place of what stands between two marks of a page."""
    start, mark, rest = page.read_text(encoding="utf-8").partition(before)
    if not mark:
        sys.exit(f"{page} has no place for a table: {before}")
    page.write_text(f"{start}{mark}\n{text}\n{after}{rest.partition(after)[2]}", encoding="utf-8")


def parts(text: str) -> list[str]:
    """What stands between the commas of an option."""
    return [part for part in text.split(",") if part]


def ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms" if seconds < 0.1 else f"{1000 * seconds:,.0f} ms"


# --- Times and memory ---


def seconds_of(step: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    began = clock()
    step()
    return clock() - began


def median_ms(
    step: Callable[[], object], runs: int, *, before: Callable[[], object] | None = None, warm: bool = True
) -> float:
    """Median milliseconds of processor time, after a run that is not timed; nor is what comes before each."""
    times = []
    for run in range(runs + warm):
        if before:
            before()
        taken = seconds_of(step, time.process_time)
        if run >= warm:
            times.append(1000 * taken)
    return statistics.median(times)


def children_of(pid: int) -> list[int]:
    """The processes below this one, at any depth (Linux)."""
    try:
        own = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [one for child in own for one in (child, *children_of(child))]


def processor_time(*pids: int) -> float:
    """Seconds of processor time that these processes have had; 0 where that cannot be read."""
    total = 0.0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def busy() -> float:
    """Seconds of processor time of this process and, where it is on this machine, of its process of the
    PostgreSQL server.
    """
    from django.db import connection

    if connection.vendor != "postgresql":
        return time.process_time()
    return time.process_time() + processor_time(connection.connection.info.backend_pid)


def peak_mib(pid: int | str = "self") -> float:
    """The most memory that a process has held at once, in MiB; on Linux since `forget_peak`."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def forget_peak(pid: int | str = "self") -> None:
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


@dataclass
class Row:
    """`count` things (items, rows, queries) done in `seconds`, and the peak of memory meanwhile."""

    what: str
    size: int
    count: int
    seconds: float = 0.0
    peak_mib: float = 0.0
    note: str = ""

    heads = ("what", "items", "seconds", "per second", "peak memory", "")

    def show(self) -> None:
        rate = f"{self.count / self.seconds:,.0f}" if self.count and self.seconds else ""
        cells = (self.what, f"{self.size:,}", f"{self.seconds:.2f}", rate, f"{self.peak_mib:.0f} MiB")
        Table.row(*cells, self.note)


@contextmanager
def measured(what: str, size: int, count: int | None = None) -> Iterator[Row]:
    """Time what is done inside; the note says how long this process was at work."""
    row = Row(what, size, size if count is None else count)
    forget_peak()
    began, at_work = time.perf_counter(), time.process_time()
    yield row
    row.seconds, row.peak_mib = time.perf_counter() - began, peak_mib()
    row.note = f"{time.process_time() - at_work:.2f} s at work"


@contextmanager
def stage(what: str, size: int, count: int | None = None) -> Iterator[None]:
    """The same, and show the row."""
    with measured(what, size, count) as row:
        yield
    row.show()


# --- Installations ---


@contextmanager
def installation(database: str = "", **environment: str) -> Iterator[Path]:
    """Sets Django up on a state of its own: its folder. Without the URL of a database it is SQLite."""
    with tempfile.TemporaryDirectory(prefix="hypac-benchmark-") as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
            "DJANGO_ALLOWED_HOSTS": "testserver,127.0.0.1",
            "DJANGO_SECRET_KEY": "of a server that nobody reaches, for as long as this runs",
            "HYPAC_LOG_LEVEL": "ERROR",
            "HYPAC_VAR": f"{folder}/var",
            "DATABASE_URL": database or f"sqlite:///{folder}/hypac.sqlite3",
            **environment,
        }
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield Path(folder)


def analyze(table: str = "") -> None:
    """Let the database count what is in it, or in one table, before it plans queries for it."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM ANALYZE {table}" if connection.vendor == "postgresql" else "ANALYZE")


@contextmanager
def new_database(server_url: str, name: str, *, keep: bool = False) -> Iterator[str]:
    """A new database on that server, dropped afterwards."""
    from testbed.servers import create_database, drop_database

    name = f"hypac_{name}_{os.getpid()}"
    try:
        yield create_database(server_url, name)
    finally:
        if keep:
            print(f"kept: database {name}", file=sys.stderr)
        else:
            drop_database(server_url, name)


@contextmanager
def served(*command: str) -> Iterator[tuple[str, int]]:
    """Address and process of `manage.py serve`, or of another command with "PORT" in it, on the environment
    of this process.
    """
    from testbed.web_server import WebServer

    with WebServer(*(command or (str(ROOT / "manage.py"), "serve", "--port=PORT"))) as server:
        yield server.url(), server.pid
