"""How long `hypac-verify` takes, and which forgeries it finds.

    python benchmarks/verify.py speed [--size 100000]
    python benchmarks/verify.py forgeries [--edits 10000] [--seed 1] [--write benchmarks/forgeries.csv]

`speed` makes a delivery of so many items with 0-1 losses without a server, and checks it in a process of its
own on one core. `forgeries` makes the deliveries of `testbed.delivered`, edits them at random as
`testbed.forgeries` does, and prints what was found; with --write it writes the fields in which an edit need
not be found.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "clients" / "verify")]
UNTESTED = ("learnt", "another bound")
AT_ONCE = 200
"""Edits that are made before they are checked, on all cores."""


def speed(size: int) -> None:
    print("| delivery | items | asked | exit code | seconds | MiB |\n|---|---|---|---|---|---|")
    for kind in ("first score", "every score", "expert, r = 1"):
        with tempfile.TemporaryDirectory() as folder:
            asked = made(Path(folder), kind, size)
            began, command = time.perf_counter(), [sys.executable, "-m", "hypac_verify", folder, "--json"]
            before = {**os.environ, "PYTHONPATH": str(ROOT / "clients" / "verify")}
            done = subprocess.run(command, env=before, capture_output=True, text=True, check=False)
            seconds = time.perf_counter() - began
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            if done.returncode not in (0, 3):
                sys.exit(done.stdout + done.stderr)
            print(
                f"| {kind} | {size:,} | {asked:,} | {done.returncode} | {seconds:.1f} | {memory:.0f} |",
                flush=True,
            )


def made(folder: Path, kind: str, size: int) -> int:
    """Write certificate, draw and labels of a run of two models; how many items were asked about."""
    import numpy as np

    from routing.core.sampling import make_salt, tie_breaks

    rng, salt = np.random.default_rng(1), make_salt(7)
    items = [f"item-{place}" for place in range(size)]
    u = rng.random((size, 2))
    wrong = rng.random((size, 2)) < [0.4, 0.2] * u**2
    answers = np.where(wrong, "x", "y").astype(object)
    v = np.column_stack([tie_breaks(salt, items, model=model) for model in (1, 2)])
    make = _expert if kind.startswith("expert") else _ordinary
    certificate, draw, sources, people = make(kind, items, u, v, answers)
    certificate = _committing(folder, certificate, draw, items, u, answers)
    (folder / "certificate.json").write_bytes(certificate)
    (folder / "draw.jsonl").write_bytes(draw)
    rows = [json.loads(line) for line in draw.splitlines()]
    with (folder / "labels.jsonl").open("w") as file:
        file.writelines(_lines(items, u[:, 0], answers, sources, people, rows, certificate))
    return sum(row["asked"] for row in rows)


def _committing(
    folder: Path, certificate: bytes, draw: bytes, items: list[str], u: Any, answers: Any
) -> bytes:
    """The certificate of a run that committed to all of it before; writes what its commitments are of."""
    from routing.core import draw_pilot
    from routing.core.certificate import canonical_bytes, document_hash
    from routing.core.commitment import before_draw, before_labels, fixed_chains, item_line, lines_document
    from routing.core.documents import parse_draw, parse_plan
    from routing.core.ledger import DRAW, ledger_entry

    document = json.loads(certificate)
    document["plan"]["alpha_spent"] = "0"
    plan, provenance = parse_plan(document), document["provenance"]
    piloted = draw_pilot(pool_size=len(items), size=plan.pilot, entropy=7).tolist()
    later = set(piloted)

    def line(place: int, *, early: bool) -> bytes:
        first, second = ((str(answers[place, k]), float(u[place, k])) for k in (0, 1))
        known = [first, second if place in later or not early else None]
        return item_line(items[place], "0" * 64, first[1], known)

    lines = [line(place, early=True) for place in range(len(items))]
    pilot = [line(place, early=True) for place in piloted]
    since = [line(place, early=False) for place in range(len(items)) if place not in later]
    (folder / "answered.jsonl").write_bytes(b"".join(one + b"\n" for one in since))
    (folder / "committed.jsonl").write_bytes(b"".join(one + b"\n" for one in lines))
    (folder / "pilot.jsonl").write_bytes(b"".join(one + b"\n" for one in pilot))
    reference = dict(document.get("reference", {}))
    rechecked = reference.pop("rechecked", None)
    reference.pop("replaced", None)
    first = before_draw(
        project="bench",
        run=1,
        plan=plan,
        entropy=7,
        pool_hash=document["pool"]["hash"],
        sources=provenance["sources"],
        items=lines_document(lines),
        pilot=lines_document(pilot),
        chains=fixed_chains(document, plan.rule),
        reference=reference or None,
        ledger={"entries": 0, "head": ""},
        draw_from={"kind": "system"},
    )
    own = ledger_entry(
        number=1, run=1, kind=DRAW, alpha=plan.alpha, target=plan.target, pool=document["pool"]["hash"],
        commitment=document_hash(first), previous="",
    )  # fmt: skip
    second = before_labels(
        first,
        randomness={"kind": "system", "value": None},
        rows=parse_draw(draw),
        pilot=None,
        chains=None,
        rechecked=rechecked,
        ledger={"entries": 1, "head": own["sha256"]},
    )
    both = {"before_draw": first, "before_labels": second}
    return canonical_bytes({**document, "version": 6, "commitments": both, "ledger": [own]})


def _plan(size: int, rule: str) -> Any:
    from testbed.settings import plan_of

    return plan_of(
        size, min(size // 20, 5000), p="0.9", costs=("0.001", "0.03", "1"), rule=rule, pilot_size=200
    )


def _provenance(items: list[str]) -> dict[str, Any]:
    from routing.core.sampling import pool_hash

    return {
        "entropy": 7,
        "pool_hash": pool_hash(items),
        "project": "bench",
        "run": 1,
        "alpha_ledger": [{"run": 1, "alpha": "0.05"}],
        "alpha_total": "0.05",
        "sources": [{"name": "fast"}, {"name": "slow"}],
    }


def _ordinary(kind: str, items: list[str], u: Any, v: Any, answers: Any) -> tuple[bytes, bytes, Any, str]:
    """Certificate, draw, the place of each item's source, and what people are called."""
    import numpy as np

    from routing.core import draw_calibration, draw_pilot
    from routing.core.calibration import Calibration
    from routing.core.calibration_rows import CalibrationRow
    from routing.core.certificate import certificate_document, certificate_files
    from routing.core.certify import certify
    from routing.core.chain import build_chains
    from routing.core.every_score.build import build_score_chains
    from routing.core.every_score.certify import certify_every_score
    from routing.core.every_score.documents import score_certificate
    from routing.core.every_score.items import ScoredItems
    from routing.core.every_score.select import PilotCosts
    from routing.core.keys import Key
    from routing.core.pilot import PilotData
    from routing.core.route import route

    every = kind == "every score"
    plan = _plan(len(items), "every_score" if every else "fixed_sequence")
    draw = draw_calibration(pool_size=len(items), m=plan.m, p=plan.p, entropy=7)
    at = draw_pilot(pool_size=len(items), size=plan.pilot, entropy=7)
    pilot = PilotData.of(u[at, 0], v[at, 0], answers[at].tolist(), u[at])
    asked = dict(zip(draw.positions.tolist(), draw.asked.tolist(), strict=True))
    rows = Calibration.from_rows(
        CalibrationRow(
            item_id=items[place],
            position=place,
            order=order,
            asked=asked[place],
            p=plan.p,
            u=float(u[place, 0]),
            v=int(v[place, 0]),
            label="y" if asked[place] else None,
            answers=tuple(answers[place]) if asked[place] else (),
            own=(Key(float(u[place, 1]), int(v[place, 1])),) if every and asked[place] else (),
            called=(True, True) if every and asked[place] else (),
        )
        for order, place in enumerate(draw.positions.tolist())
    )
    provenance = _provenance(items)
    if not every:
        chains = build_chains(plan, u=u[:, 0], v=v[:, 0], pilot=pilot)
        found = certify(plan, chains, rows)
        document = certificate_document(plan, rows, found, provenance=provenance)
        return *certificate_files(document, rows), route(u[:, 0], v[:, 0], found.thresholds), "person"
    of_scores = build_score_chains(plan, u=u[:, 0], v=v[:, 0], pilot=pilot)
    scored = ScoredItems.of(u, v, scored=of_scores.scored)
    outside = np.array([place for place in at.tolist() if not asked.get(place)])
    costs = PilotCosts.of(plan, of_scores, scored.rows(outside))
    certified = certify_every_score(plan, of_scores, rows, pilot=costs, names=["fast", "slow"])
    document = score_certificate(plan, of_scores, rows, certified, pilot=costs, provenance=provenance)
    selection = certified.selection
    sources = selection.chain.only(selection.index).delivers(scored)[0]
    return *certificate_files(document, rows), sources, "person"


def _expert(kind: str, items: list[str], u: Any, v: Any, answers: Any) -> tuple[bytes, bytes, Any, str]:
    from routing.core import (
        ExpertPlan,
        PilotData,
        Roster,
        annotated_rows,
        build_reference_chains,
        certificate_files,
        certify_with_expert,
        draw_calibration,
        draw_pilot,
        expert_certificate,
        with_expert,
    )
    from routing.core.sampling import make_salt

    run = ExpertPlan(_plan(len(items), "fixed_sequence"), "3", "1", expert="Eve")  # type: ignore[arg-type]
    roster = Roster.even(make_salt(7), ["Ada", "Bo"], experts=["Eve"])
    at = draw_pilot(pool_size=len(items), size=run.plan.pilot, entropy=7)
    pilot = PilotData.of(u[at, 0], v[at, 0], answers[at].tolist())
    chains = build_reference_chains(run, u=u[:, 0], v=v[:, 0], pilot=pilot)
    draw = draw_calibration(pool_size=len(items), m=run.plan.m, p=run.plan.p, entropy=7)
    people = dict.fromkeys(items, "y")
    rows = annotated_rows(
        run, draw, roster, items=items, u=u[:, 0], v=v[:, 0], answers=answers.tolist(), people=people
    )
    rows = with_expert(run, rows, people)
    found = certify_with_expert(run, chains, rows, pilot=pilot)
    document = expert_certificate(run, chains, rows, found, roster=roster, provenance=_provenance(items))
    return *certificate_files(document, rows), found.sources(u[:, 0], v[:, 0]), "expert"


def _lines(
    items: list[str],
    u: Any,
    answers: Any,
    sources: Any,
    people: str,
    rows: list[dict[str, Any]],
    certificate: bytes,
) -> Iterator[str]:
    import hashlib

    drawn, identity = {row["item_id"]: row for row in rows}, hashlib.sha256(certificate).hexdigest()
    by = ["fast", "slow", "person", "person", "expert"]
    for place, item in enumerate(items):
        row = drawn.get(item)
        asked = row is not None and row["asked"]
        source = people if asked else by[int(sources[place])]
        human = source in ("person", "expert")
        yield (
            json.dumps(
                {
                    "text": f"text {place}",
                    "external_id": item,
                    "label": "y" if human else answers[place, int(sources[place])],
                    "label_name": None,
                    "source": source,
                    "annotator": "Ada" if human else None,
                    "settled_by": None,
                    "uncertainty": float(u[place]),
                    "p_i": None if row is None else row["p"],
                    "asked": asked,
                    "run": 1,
                    "certificate_id": identity,
                    "reason": None,
                    "expert_saw": None,
                }
            )
            + "\n"
        )


def forgeries(edits: int, seed: int, to: Path | None) -> None:
    from benchmarks.runner import installation

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
                told = code == 3 and unchecked != usual[kind][1]
                codes["said to be unchecked" if told else str(code)] += 1
                if code in (0, 3) and not told:
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
        with to.open("w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(("field", "why", "edits_not_found"))
            lines.writerows((field, why, passed[field]) for field, why in WITHOUT_MEANING.items())


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "forgeries"])
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if options.what == "speed":
        speed(options.size)
    else:
        forgeries(options.edits, options.seed, options.write)


if __name__ == "__main__":
    main()
