"""How long `hypac-verify` takes, and which forgeries it finds.

    .venv/bin/python benchmarks/verify.py speed [--size 100000] [--runs 3]
    .venv/bin/python benchmarks/verify.py forgeries [--edits 10000] [--seed 1] [--write FILE]

`speed` has the jobs of the application make deliveries of so many items with 0-1 losses, and checks each in a
process of its own. `forgeries` makes the deliveries of `testbed.delivered`, edits them at random as
`testbed.forgeries` does, and prints what was found; with --write it writes the fields in which an edit need
not be found.
"""

import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from itertools import islice
from pathlib import Path
from statistics import median

from runner import ROOT, Table, csv_text, installation, machine, parser_of

sys.path.insert(0, str(ROOT / "clients" / "verify"))
UNTESTED = ("learnt", "another bound")
AT_ONCE = 200
"""Edits that are made before they are checked, on all cores."""
ASKED = b'"asked":true'
CHECK = """
import sys, runner
from hypac_verify.command import main
code = main(sys.argv[1:])
print(runner.peak_mib(), file=sys.stderr)
sys.exit(code)
"""
PATHS = {"PYTHONPATH": os.pathsep.join([str(ROOT / "clients" / "verify"), str(ROOT / "benchmarks")])}
KINDS = ("first score", "every score", "expert, r = 1")


def speed(size: int, runs: int) -> None:
    print(f"{machine()}, medians of {runs} runs")
    table = Table("delivery", "items", "asked", "exit code", "seconds", "MiB")
    with installation() as var:
        for kind in KINDS:
            files, folder = delivery_of(kind, size), var / "delivered" / kind
            folder.mkdir(parents=True)
            for name, content in files.items():
                (folder / name).write_bytes(content)
            checks = [checked(folder) for _ in range(runs)]
            asked = files["draw.jsonl"].count(ASKED)
            code, seconds, mib = (median(figures) for figures in zip(*checks, strict=True))
            table.row(kind, f"{size:,}", f"{asked:,}", f"{code:.0f}", f"{seconds:.1f}", f"{mib:.0f}")


def checked(folder: Path) -> tuple[int, float, float]:
    """Exit code, seconds and MiB of a verifier in a process of its own."""
    command = [sys.executable, "-c", CHECK, str(folder), "--json"]
    began = time.perf_counter()
    done = subprocess.run(command, env=os.environ | PATHS, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode not in (0, 3):
        sys.exit(done.stdout + done.stderr)
    return done.returncode, seconds, float(done.stderr.split()[-1])


def delivery_of(kind: str, size: int) -> dict[str, bytes]:
    """The files of a run of two models whose answers are recorded."""
    from bulk_world import make

    from testbed.delivered import delivered
    from testbed.experts import ExpertWorld

    world = make(size)
    plan = {"epsilon": Decimal("0.05"), "alpha": Decimal("0.05"), "p": Decimal("0.9")}
    plan |= {"m": min(size // 20, 5000)}
    if not kind.startswith("expert"):
        rule = "every_score" if kind == "every score" else "fixed_sequence"
        return delivered(world, world.complete(**plan, rule=rule), ("jsonl",))
    here = ExpertWorld(world=world)
    run = here.routed(here.start(**plan, recheck_share=Decimal(1)))
    if batch := run.routed_batch:
        world.fill(batch, lambda work_item: (here.expert, here.answer(here.expert, work_item.item)))
    return here.delivered(run)


def forgeries(edits: int, seed: int, to: Path | None) -> None:
    with installation():
        from testbed.delivered import KINDS
        from testbed.forgeries import WITHOUT_MEANING, put_right, random_edit, without_meaning

        kinds = {name: put_right(_one_file(make())) for name, make in KINDS.items() if name not in UNTESTED}
    draws, codes, passed, unlisted = random.Random(seed), Counter[str](), Counter[str](), list[str]()

    def random_edits() -> Iterator[tuple[str, str, str, dict[str, bytes]]]:
        left = edits
        while left:
            kind = draws.choice(sorted(kinds))
            if edit := random_edit(kinds[kind], draws):
                yield (kind, *edit)
                left -= 1

    # Processes of their own: this one has Django and threads in it.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        usual = dict(zip(kinds, pool.map(found_of, kinds.values()), strict=True))
        every = random_edits()
        while part := list(islice(every, AT_ONCE)):
            checked = pool.map(found_of, [files for *_, files in part], chunksize=5)
            for (kind, field, what, files), (code, unchecked) in zip(part, checked, strict=True):
                noticed = code == 3 and unchecked != usual[kind][1]
                codes["said to be unchecked" if noticed else str(code)] += 1
                if code in (0, 3) and not noticed:
                    passed[entry := without_meaning(field, kinds[kind], files)] += 1
                    if not entry:
                        unlisted.append(f"{kind}: {field} ({what})")
    print(
        f"{codes.total():,} edits of {len(kinds)} deliveries (seed {seed}): {codes['1']:,} do not hold, "
        f"{codes['2']:,} cannot be read, {codes['said to be unchecked']:,} make the verifier say that "
        f"something is not checked, {codes['0'] + codes['3']:,} are not found."
    )
    if unlisted:
        sys.exit("not found, and not in the list:\n" + "\n".join(unlisted))
    if to is not None:
        fields = WITHOUT_MEANING.items()
        rows = ({"field": name, "why": why, "edits_not_found": passed[name]} for name, why in fields)
        to.write_text(csv_text(rows), encoding="utf-8")


def _one_file(files: dict[str, bytes]) -> dict[str, bytes]:
    """With two files of the labels an edit of one would be found by the other."""
    return {name: data for name, data in files.items() if name != "labels.csv"}


def found_of(files: dict[str, bytes]) -> tuple[int, list[str]]:
    """The exit code for these files, and what is not checked."""
    from hypac_verify.command import check, code_of
    from hypac_verify.reading import UnusableError

    with tempfile.TemporaryDirectory() as made_folder:
        folder = Path(made_folder)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        try:
            report, _, _ = check([folder])
        except UnusableError:
            return 2, []
    return code_of(report), report.unchecked


def main() -> None:
    parser = parser_of(
        __doc__,
        size=(100_000, "items of each delivery whose check is timed"),
        runs=(3, "checks of each"),
        edits=(10_000, "forgeries"),
        seed=(1, "of the forgeries"),
        write=(Path, "the file that the fields are written to in which an edit need not be found"),
    )
    parser.add_argument("what", choices=["speed", "forgeries"])
    options = parser.parse_args()
    if options.what == "speed":
        speed(options.size, options.runs)
    else:
        forgeries(options.edits, options.seed, options.write)


if __name__ == "__main__":
    main()
