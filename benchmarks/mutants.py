"""Whether the tests notice: breaks seeded places of annotation/, routing/ and hypac_site/, one at a time.

    make coverage-all                                     # which test touches which line, into .coverage-all
    .venv/bin/python benchmarks/mutants.py --out var/mutants.csv [--only 1-3] [--jobs 2]

A place is broken in one of three ways: a comparison is flipped (`<` becomes `>=`), a check is dropped (an
`if` that only raises or returns is never entered), or a function returns at once. `benchmarks/mutants.csv`
lists the places by file, function and the text of the line, as version 0.2.0 has them; they are found again
wherever the function has gone. Where the line or the name was rewritten, `now_kind`, `now_function` and
`now_text` there say what they are. `--choose SEED` makes the list anew from `--root`.

Each mutant is written into a copy of the checkout and runs the tests that touched its line, up to the first
that fails; one that fails on the unbroken code as well does not count. A test that never ends (`--limit`)
has noticed. Results are written line by line into `--out`, and what stands there is not done again. To
measure another checkout: `make coverage-all ROOT=../then`, then `--root ../then`.
"""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from coverage import CoverageData
from mutant_places import KINDS, Place, choose, find, places_of
from runner import ROOT, csv_text, parser_of

LIST = Path(__file__).with_suffix(".csv")
COLUMNS = ("number", "kind", "file", "function", "text", "what", "now_kind", "now_function", "now_text")
RESULTS = ("number", "kind", "file", "function", "line", "tests", "result", "by", "seconds")


# --- Tests ---


def tests_by_line(data: CoverageData, root: Path, file: str) -> dict[int, set[str]]:
    """The tests that ran each line of ``file``; what a set-up ran counts for every test of its file."""
    measured = {
        Path(name) if Path(name).is_absolute() else root / name: name for name in data.measured_files()
    }
    name = measured.get(root / file)
    if name is None:
        return {}
    found = {}
    for line, contexts in data.contexts_by_lineno(name).items():
        pairs = (context.rpartition("|") for context in contexts if "|" in context)
        found[line] = {test if phase == "run" else test.partition("::")[0] for test, _, phase in pairs}
    return found


class Bench:
    """A copy of a checkout, in which one file at a time is broken."""

    def __init__(self, root: Path, folder: Path, *, jobs: int, limit: int) -> None:
        self.root, self.folder, self.jobs, self.limit = root, folder, jobs, limit
        self.known_to_fail: set[str] = set()
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)

    def judge(self, place: Place, tests: set[str]) -> tuple[str, str]:
        """What became of the mutant (found, survived, untouched, timed out), and the test that found it."""
        if not tests:
            return "untouched", ""
        path = self.folder / place.file
        before, whole, broken = path.read_bytes(), place.whole(), place.broken()
        try:
            while True:
                path.write_text(broken)
                outcome, failed = self.run(tests)
                path.write_text(whole)
                if outcome == "found" and not failed and self.run(tests, "--collect-only")[0] != "survived":
                    raise RuntimeError(f"Not all tests of {place.file}:{place.line} are there: measure anew.")
                if outcome != "found" or not failed or self.run({failed})[0] != "found":
                    return outcome, failed
                self.known_to_fail.add(failed)
        finally:
            path.write_bytes(before)

    def run(self, tests: set[str], *options: str) -> tuple[str, str]:
        """Run tests up to the first that fails; its name, unless nothing could be run at all."""
        files = {test for test in tests if "::" not in test}
        names = sorted(files | {test for test in tests if test.partition("::")[0] not in files})
        names += [f"--deselect={test}" for test in sorted(self.known_to_fail)]
        (self.folder / "arguments.txt").write_text("\n".join([*options, *names]))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
        process = subprocess.Popen(
            [*command, "-n", str(self.jobs), "@arguments.txt"],
            cwd=self.folder,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            return "timed out", ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return "survived", ""
        failed = re.search(r"^(?:FAILED|ERROR) (tests.+?)(?: - .*)?$", said, re.MULTILINE)
        return "found", failed[1] if failed else ""


# --- The table ---


def table(rows: Sequence[dict[str, str]]) -> str:
    outcomes = ("found", "timed out", "survived", "untouched")
    lines = [f"{'':<8}" + "".join(f"{outcome:>11}" for outcome in outcomes)]
    for kind in (*KINDS, "all"):
        count = Counter(row["result"] for row in rows if kind in (row["kind"], "all"))
        lines.append(f"{kind:<8}" + "".join(f"{count[outcome]:>11}" for outcome in outcomes))
    lines += [
        f"{row['number']:>3} {row['result']}: {row['kind']} in {row['function']}, {row['file']}:{row['line']}"
        for row in rows
        if row["result"] in ("survived", "untouched")
    ]
    return "\n".join(lines)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def numbers(text: str) -> set[int]:
    ranges = (part.partition("-") for part in text.split(","))
    return {number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)}


def main() -> int:
    parser = parser_of(
        __doc__,
        jobs=(0, "processes that run tests"),
        limit=(3600, "seconds after which a mutant has timed out"),
        places=(False, "say where each is found, and run nothing"),
        root=(ROOT, "a checkout"),
        data=(Path, "what make coverage-all wrote; .coverage-all of the checkout"),
        out=(Path, "results; those that stand there are kept"),
        choose=(int, "write the list anew from this seed, and run nothing"),
    )
    parser.add_argument("--only", type=numbers, help="numbers of mutants, as in 1-3,7")
    options = parser.parse_args()
    root = options.root.resolve()
    places = places_of(root)
    if options.choose is not None:
        chosen = enumerate(choose(places, options.choose), 1)
        cells = ((number, *place[:5], "", "", "") for number, place in chosen)
        LIST.write_text(csv_text(dict(zip(COLUMNS, row, strict=True)) for row in cells), encoding="utf-8")
        return 0
    wanted = [row for row in read(LIST) if not options.only or int(row["number"]) in options.only]
    found = {row["number"]: find(row, places) for row in wanted}
    if options.places:
        for row in wanted:
            place = found[row["number"]]
            where = f"{place.file}:{place.line} {place.function}: {place.text}" if place else "not found"
            print(f"{row['number']:>3} {row['kind']:<7} {where}")
    if missing := [row["number"] for row in wanted if not found[row["number"]]]:
        print(f"say in {LIST.name} where these have gone: {', '.join(missing)}", file=sys.stderr)
        return 1
    if options.places:
        return 0
    if options.out is None:
        parser.error("--out says where the results are kept")
    with tempfile.TemporaryDirectory(prefix="hypac-mutants-") as folder:
        bench = Bench(root, Path(folder), jobs=options.jobs, limit=options.limit)
        data = CoverageData(str(options.data or root / ".coverage-all"))
        data.read()
        carry_out(bench, data, {number: place for number, place in found.items() if place}, options.out)
    listed = {row["number"] for row in wanted}
    print(table([row for row in read(options.out) if row["number"] in listed]))
    return 0


def carry_out(bench: Bench, data: CoverageData, places: dict[str, Place], out: Path) -> None:
    done = {row["number"] for row in read(out)}
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow(RESULTS)
        for number, place in places.items():
            if number in done:
                continue
            tests = tests_by_line(data, bench.root, place.file).get(place.line, set())
            began = time.monotonic()
            result, by = bench.judge(place, tests)
            seconds = round(time.monotonic() - began)
            where = (place.kind, place.file, place.function, place.line)
            writer.writerow((number, *where, len(tests), result, by, seconds))
            file.flush()
            print(
                f"{number:>3} {result:<9} {place.kind} in {place.function}, {len(tests)} tests, {seconds} s"
            )


if __name__ == "__main__":
    sys.exit(main())
