"""`hypac-verify FOLDER`: what is run, what is printed, and the exit codes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from hypac_verify import __version__
from hypac_verify.certificate import Checked, check_certificate, sentence
from hypac_verify.delivered_file import OTHERS, READABLE
from hypac_verify.delivery import check_delivery
from hypac_verify.draw import same_by
from hypac_verify.final_audit import check_final
from hypac_verify.manifest import check_manifest
from hypac_verify.reading import Document, Report, UnusableError, object_of, parse, whole_file
from hypac_verify.spot import draw_spot, read_spot, refuse_part

HOLDS, FAILS, UNUSABLE, IN_PART = 0, 1, 2, 3
TRUST = (
    "that the labels are what their people think, and that these people exist",
    "that nobody who labelled saw an answer or a score before (blindness)",
    "that answers and scores are the models' own, and were there before the draw",
    "that chains, thresholds to test, plan and draw were fixed before the first label: nothing here "
    "proves when",
    "that the ledger names every earlier run on these items",
    "that the costs foretold for each policy, by which one of those that are certified was chosen, are what "
    "the pilot showed",
    "that the run was not marked invalid, here or since the delivery",
)
NAMES = (
    "certificate.json",
    "draw.jsonl",
    "final_audit.json",
    "manifest.json",
    "README.md",
    *READABLE,
    *OTHERS,
)


def find_files(paths: Sequence[Path]) -> tuple[Path, dict[str, Path]]:
    """The folder and its files by the names of a delivery, which may have run and delivery in front.

    Raises
    ------
    UnusableError
        A path is not there, or two files have one name.
    """
    found: dict[str, Path] = {}
    for path in paths:
        try:
            entries = sorted(path.iterdir()) if path.is_dir() else [path]
        except (OSError, ValueError) as error:
            raise UnusableError(f"{path}: cannot be read ({error})") from None
        for entry in entries:
            name = next((n for n in NAMES if entry.name == n or entry.name.endswith(f"-{n}")), None)
            if name is None:
                continue
            if name in found:
                raise UnusableError(f"{entry.name}: there are two of {name}; name the files of one delivery")
            found[name] = entry
    folder = next((path for path in paths if path.is_dir()), paths[0].parent)
    for name in ("certificate.json", "draw.jsonl"):
        if name not in found:
            raise UnusableError(f"there is no {name}")
    return folder, found


def check(
    paths: Sequence[Path], say: Callable[[str], object] = lambda _: None
) -> tuple[Report, Checked, dict[str, Path]]:
    """Check everything that is there; ``say`` is told of what takes long. Raises UnusableError."""
    try:
        return _check(paths, Report(say=say))
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        # Everything is looked at before it is used; this is for what nobody thought of.
        raise UnusableError(
            f"a file holds what no delivery holds ({type(error).__name__}: {error})"
        ) from error


def _check(paths: Sequence[Path], report: Report) -> tuple[Report, Checked, dict[str, Path]]:
    folder, found = find_files(paths)
    checked = check_certificate(found["certificate.json"], found["draw.jsonl"], report)
    check_manifest(folder, found.get("manifest.json"), found, report)
    audited = _check_final(found["final_audit.json"], checked, report) if "final_audit.json" in found else {}
    card = _card(found)
    if card is None:
        report.unchecked.append("the data card: there is no README.md")
    names = [name for name in READABLE if name in found]
    for name in names:
        check_delivery(found[name], name, checked, card, report, audited)
    for name in OTHERS:
        if name in found:
            report.unchecked.append(f"{name}: this format is not read; {', '.join(READABLE)} are")
    if not names:
        report.unchecked.append("the delivered file: none that can be read is here")
    # The place for commitments made before the draw, and for heads of a linked ledger, once there are any.
    return report, checked, found


def _card(found: dict[str, Path]) -> str | None:
    """README.md, where it is there."""
    try:
        return whole_file(found["README.md"]).decode() if "README.md" in found else None
    except UnicodeDecodeError as error:
        raise UnusableError(f"README.md: no UTF-8 ({error})") from None


def _check_final(path: Path, checked: Checked, report: Report) -> dict[str, str]:
    """The labels that its items have to have."""
    audit = object_of(parse(whole_file(path), path.name), path.name)
    same = same_by(checked.plan)
    if checked.outcome is None or same is None:
        report.unchecked.append("final_audit.json: the run's own tests could not be made again")
        return {}
    try:
        return check_final(audit, checked.certificate_id, checked.outcome, same, report)
    except ValueError as error:
        report.fault(f"final_audit.json: it cannot be tested: {str(error)[:200]}")
        return {}


def code_of(report: Report) -> int:
    return FAILS if report.faults else IN_PART if report.unchecked else HOLDS


VERDICTS = {
    HOLDS: "HOLDS: what is promised about errors was checked, and every figure of the result.",
    FAILS: "DOES NOT HOLD.",
    IN_PART: "NOT ALL OF IT WAS CHECKED: what was checked holds, and what was not stands above.",
}


def told(report: Report, checked: Checked) -> str:
    """The report as text."""
    parts = [f"Certificate {checked.certificate_id}, version {checked.document['version']}", ""]
    if not report.faults:
        parts += [f"It says: {sentence(checked.document)}", ""]
    more = [f"... and {report.left_out} more"] if report.left_out else []
    for title, lines in (
        ("Checked:", report.checked),
        ("Does not hold:", [*report.faults, *more]),
        ("Not checked:", report.unchecked),
        ("To know:", report.notes),
        ("On trust, always:", TRUST),
    ):
        if lines:
            parts += [title, *(f"  - {line}" for line in lines), ""]
    return "\n".join([*parts, VERDICTS[code_of(report)]])


def document(report: Report, checked: Checked) -> Document:
    """The same for programs."""
    return {
        "certificate": checked.certificate_id,
        "version": checked.document["version"],
        "code": code_of(report),
        "sentence": sentence(checked.document),
        "checked": report.checked,
        "faults": report.faults,
        "faults_left_out": report.left_out,
        "not_checked": report.unchecked,
        "notes": report.notes,
        "on_trust": list(TRUST),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found, return the exit code (docs/verify.md)."""
    parser = argparse.ArgumentParser(
        prog="hypac-verify",
        description="Check a delivery of HyPAC and its certificate, with nothing of HyPAC installed.",
        epilog="Exit codes: 0 what is promised about errors and every figure of the result was checked and "
        "holds; 1 something does not hold; 2 a file cannot be read; 3 it holds as far as it could be "
        "checked, and what was not is listed.",
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="FOLDER", help="a delivered folder, or its files"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--spot", type=int, metavar="K", help="draw K delivered items for you to label")
    parser.add_argument("--to", type=Path, metavar="CSV", help="with --spot: write them to this new file")
    parser.add_argument(
        "--filled", type=Path, metavar="CSV", help="the same file with your labels: test them"
    )
    parser.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args(arguments)
    try:
        report, checked, found = check(options.paths, lambda words: print(words, file=sys.stderr))
        result = document(report, checked)
        lines = [] if options.json else [told(report, checked)]
        name = next((name for name in READABLE if name in found), None)
        if (options.spot is not None or options.filled) and name is None:
            raise UnusableError("--spot and --filled need a delivered file")
        if options.spot is not None or options.filled:
            refuse_part(_card(found))
        if options.spot is not None and name is not None:
            rows = draw_spot(found[name], name, options.spot, options.to)
            result["spot"] = [row.external_id for row in rows]
            lines += ["", f"Label these {len(rows)} items yourself, before you look at the delivered labels:"]
            lines += [f"  {row.external_id}" for row in rows]
        if options.filled and name is not None:
            spot = read_spot(options.filled, found[name], name, checked)
            result["spot_check"] = {
                "items": spot.items, "errors": spot.errors, "passes": spot.passes, "breaks": spot.breaks,
                "words": spot.words,
            }  # fmt: skip
            lines += ["", spot.words]
    except UnusableError as error:
        if options.json:
            print(json.dumps({"code": UNUSABLE, "error": str(error)}))
        print(f"hypac-verify: {error}", file=sys.stderr)
        return UNUSABLE
    print(json.dumps(result, indent=2) if options.json else "\n".join(lines))
    return code_of(report)


def run() -> None:
    """The command; a pipe behind it may end early."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    raise SystemExit(code)
