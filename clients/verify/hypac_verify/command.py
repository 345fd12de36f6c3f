"""`hypac-verify FOLDER`: what is run, what is printed, and the exit codes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypac_verify import __version__, every_score, words
from hypac_verify.certificate import Checked, check_certificate, sentence
from hypac_verify.commitments import check_noted
from hypac_verify.committed_files import Said, check_files, with_answered
from hypac_verify.delivered_file import OTHERS, PARTLY_READ, READABLE
from hypac_verify.delivery import check_delivery, is_part
from hypac_verify.draw import entropy_of, salt_of, same_by
from hypac_verify.expert_labels import read_run
from hypac_verify.final_audit import check_final
from hypac_verify.manifest import check_manifest
from hypac_verify.reading import Document, Report, UnusableError, object_of, parse, whole_file
from hypac_verify.spot import asked_words, draw_spot, read_spot, refuse_part
from hypac_verify.together import compared

HOLDS, FAILS, UNUSABLE, IN_PART = 0, 1, 2, 3
TRUST = (
    "that the labels are what their people think, and that these people exist",
    "that nobody who labelled saw an answer or a score before (blindness)",
    "that answers and scores are the models' own",
)
UNPROVEN = (
    "that answers and scores were there before the draw",
    "that chains, thresholds to test, plan and draw were fixed before the first label: nothing here "
    "proves when",
    "that the ledger names every earlier run on these items",
)
"""Of certificates before version 6, and where the reader noted nothing."""
FORETOLD = (
    "that the costs foretold for each policy, by which one of those that are certified was chosen, are what "
    "the pilot showed"
)
PEOPLE_ALONE = "A data set that people labelled alone has none: no share of errors was promised of it"
VALID = "that the run was not marked invalid, here or since the delivery"
NAMES = (
    "certificate.json",
    "draw.jsonl",
    "committed.jsonl",
    "answered.jsonl",
    "pilot.jsonl",
    "final_audit.json",
    "manifest.json",
    "README.md",
    *READABLE,
    *OTHERS,
)


def find_files(paths: Sequence[Path]) -> tuple[Path, dict[str, Path]]:
    """The folder and its files by the names of a delivery, which may have project, run and delivery in front.

    Raises
    ------
    UnusableError
        A path is not there, or two files have one name.
    """
    found: dict[str, Path] = {}
    for path in paths:
        _refuse_none(path)
        try:
            entries = sorted(path.iterdir()) if path.is_dir() else [path]
        except (OSError, ValueError) as error:
            raise UnusableError(f"{path}: cannot be read ({error})") from None
        for entry in entries:
            name = next((n for n in NAMES if entry.name == n or entry.name.endswith(f"-{n}")), None)
            if name is None:
                continue
            if entry.is_symlink() and entry.is_dir():
                raise UnusableError(f"{entry.name}: a link to a folder, which no delivery has")
            if name in found:
                raise UnusableError(f"{entry.name}: there are two of {name}; name the files of one delivery")
            found[name] = entry
    folder = next((path for path in paths if path.is_dir()), paths[0].parent)
    if "certificate.json" not in found:
        raise UnusableError(f"there is no certificate.json. {PEOPLE_ALONE}")
    if "draw.jsonl" not in found:
        raise UnusableError("there is no draw.jsonl")
    return folder, found


def _refuse_none(path: Path) -> None:
    """Raise UnusableError for a path that is not there, and for an archive."""
    if not os.path.lexists(path):
        raise UnusableError(f"{path}: there is no such folder or file")
    if path.suffix.lower() == ".zip" and path.is_file():
        raise UnusableError(f"{path}: unpack this archive, and name the folder that comes out of it")


@dataclass(frozen=True)
class Noted:
    """What the reader noted when it was shown: hashes of commitments, and a file of entries of the ledger."""

    commitments: Sequence[str] = ()
    heads: Path | None = None


NOTHING = Noted()


def check(
    paths: Sequence[Path], say: Callable[[str], object] = lambda _: None, noted: Noted = NOTHING
) -> tuple[Report, Checked, dict[str, Path]]:
    """Check everything that is there; ``say`` is told of what takes long. Raises UnusableError."""
    try:
        return _check(paths, Report(say=say), noted)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        OSError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        # Everything is looked at before it is used; this is for what nobody thought of.
        raise UnusableError(
            f"a file holds what no delivery holds ({type(error).__name__}: {error})"
        ) from error


def _check(paths: Sequence[Path], report: Report, noted: Noted) -> tuple[Report, Checked, dict[str, Path]]:
    folder, found = find_files(paths)
    card = _card(found)
    checked = check_certificate(found, report, part_of=is_part(card))
    said = dict[str, Said]()
    if checked.made is not None:
        pool = checked.document["pool"]
        said, pilot = check_files(checked.made, checked.plan, checked.rows, pool, found, report)
        _check_pilot_costs(checked, pilot, report)
        said = with_answered(said, found.get("answered.jsonl"), checked.plan, checked.rows, report)
    check_noted(checked.made, noted.commitments, noted.heads, report)
    held = check_manifest(folder, found.get("manifest.json"), found, report)
    audited = _check_final(found["final_audit.json"], checked, report) if "final_audit.json" in found else {}
    if card is None:
        report.unchecked.append("the data card: there is no README.md")
    names = [name for name in READABLE if name in found]
    labels = [check_delivery(found[name], name, checked, card, report, audited, said) for name in names]
    for name, other in zip(names[1:], labels[1:], strict=True):
        if differing := len(labels[0] ^ other):
            report.fault(f"{name}: its labels and sources are not those of {names[0]} ({differing} rows)")
    _say_of_hashes(found, held, report)
    if not names:
        report.unchecked.append("the delivered file: none that can be read is here")
    return report, checked, found


def _say_of_hashes(found: dict[str, Path], held: set[str], report: Report) -> None:
    """What is not read, or not all of it: that the manifest holds it, or that nothing does."""
    unread = {name: name for name in OTHERS} | PARTLY_READ
    here = [name for name in unread if name in found]
    if by_hash := [unread[name] for name in here if name in held]:
        report.notes.append(
            f"Held by size and SHA-256 of manifest.json alone, not read: {', '.join(by_hash)}."
        )
    report.unchecked += [
        f"{unread[name]}: not read, and no manifest.json has a SHA-256 to hold it against"
        for name in here
        if name not in held
    ]


def _check_pilot_costs(checked: Checked, pilot: dict[str, Said], report: Report) -> None:
    """What policies on every score cost on the pilot, where it is there and there are any."""
    document, plan = checked.document, checked.plan
    if report.faults or not pilot or not ("scores" in document or plan.rule == "every_score"):
        return
    asked = {row.item_id for row in checked.rows if row.asked}
    answers = {name: said.answers for name, said in pilot.items() if name not in asked}
    salt = salt_of(entropy_of(document))
    if "scores" in document:
        plan = read_run(document, plan).models_and_expert
    every_score.check_pilot(document.get("scores", document), plan, answers, salt, report)


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


def on_trust(report: Report, checked: Checked, noted: Noted) -> list[str]:
    """What no file can show, and what only those could whose hash was noted in time."""
    trust = (*TRUST, *((words.OF_LOSSES,) if checked.plan.measured else ()))
    if (made := checked.made) is None:
        return [*trust, *UNPROVEN, FORETOLD, VALID]
    answers, fixed, ledger = UNPROVEN
    first, second = (hash_ in noted.commitments for hash_ in made.hashes)
    return [
        *trust,
        *([] if first else [answers]),
        *([] if first and second else [fixed]),
        *([] if report.ledger_known else [ledger]),
        *([] if report.pilot_costs and checked.plan.rule == "every_score" else [FORETOLD]),
        VALID,
    ]


def level_of(checked: Checked) -> str:
    """The probability that the promise leaves open, after all draws on these items."""
    return words.odds(checked.plan)["alpha"]


def told(report: Report, checked: Checked, noted: Noted = NOTHING) -> str:
    """The report as text."""
    parts = [f"Certificate {checked.certificate_id}, version {checked.document['version']}", ""]
    if not report.faults:
        parts += [f"It says: {words.one_line(sentence(checked.document))}", ""]
        if checked.plan.alpha_spent:
            parts += [
                f"After all draws on these items it may be wrong with probability {level_of(checked)}.",
                "",
            ]
    more = [f"... and {report.left_out} more"] if report.left_out else []
    for title, lines in (
        ("Checked:", report.checked),
        ("Does not hold:", [*report.faults, *more]),
        ("Not checked:", report.unchecked),
        ("To know:", report.notes),
        ("On trust:", on_trust(report, checked, noted)),
    ):
        if lines:
            parts += [title, *(f"  - {words.one_line(line)}" for line in lines), ""]
    return "\n".join([*parts, VERDICTS[code_of(report)]])


def document(report: Report, checked: Checked, noted: Noted = NOTHING) -> Document:
    """The same for programs."""
    return {
        "certificate": checked.certificate_id,
        "version": checked.document["version"],
        "code": code_of(report),
        "sentence": sentence(checked.document),
        "alpha": level_of(checked),
        "commitments": [] if checked.made is None else list(checked.made.hashes),
        "checked": report.checked,
        "faults": report.faults,
        "faults_left_out": report.left_out,
        "not_checked": report.unchecked,
        "notes": report.notes,
        "on_trust": on_trust(report, checked, noted),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found, return the exit code (docs/verify.md)."""
    options = _parser().parse_args(arguments)
    noted = Noted(tuple(text.strip().lower() for text in options.commitment), options.heads)
    folders = [path for path in options.paths if path.is_dir()]
    several = len(folders) > 1 and len(folders) == len(options.paths)
    try:
        if options.to and options.spot is None:
            raise UnusableError("--to is where the items of --spot go: say how many, --spot K")
        if several and (options.spot is not None or options.filled or options.commitment):
            raise UnusableError("--spot, --filled and --commitment are for one delivery at a time")
        code, lines, result = (_several if several else _one)(options, noted)
    except UnusableError as error:
        if options.json:
            print(json.dumps({"code": UNUSABLE, "error": str(error)}))
        _say(f"hypac-verify: {error}")
        return UNUSABLE
    print(
        json.dumps(result, indent=2)
        if options.json
        else words.printable("\n".join(lines), sys.stdout.encoding)
    )
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hypac-verify",
        description="Check a delivery of HyPAC and its certificate, with nothing of HyPAC installed.",
        epilog="Exit codes: 0 what is promised about errors and every figure of the result was checked and "
        "holds; 1 something does not hold; 2 a file cannot be read; 3 it holds as far as it could be "
        "checked, and what was not is listed.",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="a delivered folder, or its files; several folders: deliveries of one project",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--commitment",
        action="append",
        default=[],
        metavar="HEX",
        help="hash of a commitment that you noted when the run showed it; may be repeated",
    )
    parser.add_argument(
        "--heads",
        type=Path,
        metavar="FILE",
        help="lines with number and hash of ledger entries that you noted",
    )
    parser.add_argument("--spot", type=int, metavar="K", help="draw K delivered items for you to label")
    parser.add_argument("--to", type=Path, metavar="CSV", help="with --spot: write them to this new file")
    parser.add_argument("--filled", type=Path, metavar="CSV", help="that file with your labels: test them")
    parser.add_argument("--version", action="version", version=__version__)
    return parser


def _say(line: str) -> None:
    print(words.printable(words.one_line(line), sys.stderr.encoding), file=sys.stderr)


def _several(options: argparse.Namespace, noted: Noted) -> tuple[int, list[str], Document]:
    """Each delivery, and what their ledgers say together."""
    lines, results, every, codes = list[str](), list[Document](), list[Checked](), list[int]()
    for folder in options.paths:
        report, checked, _ = check([folder], _say, noted)
        results.append({"folder": str(folder), **document(report, checked, noted)})
        lines += [words.one_line(f"{folder}"), "", told(report, checked, noted), ""]
        every.append(checked)
        codes.append(code_of(report))
    faults, notes = compared(every)
    lines += ["Together:", *(f"  - {words.one_line(line)}" for line in (*faults, *notes))]
    order = (HOLDS, IN_PART, FAILS)
    code = max([*codes, FAILS if faults else HOLDS], key=order.index)
    return code, lines, {"code": code, "deliveries": results, "faults": faults, "notes": notes}


def _one(options: argparse.Namespace, noted: Noted) -> tuple[int, list[str], Document]:
    """One delivery, with what is to be labelled of it, or was."""
    report, checked, found = check(options.paths, _say, noted)
    result, lines = document(report, checked, noted), [told(report, checked, noted)]
    name = next((name for name in READABLE if name in found), None)
    if options.spot is not None or options.filled:
        if name is None:
            raise UnusableError("--spot and --filled need a delivered file")
        refuse_part(_card(found))
    if options.spot is not None and name is not None:
        rows = draw_spot(found[name], name, options.spot, options.to, _card(found))
        result["spot"] = [row.external_id for row in rows]
        lines += ["", *asked_words(rows, checked.plan)]
    if options.filled and name is not None:
        spot = read_spot(options.filled, found[name], name, checked)
        result["spot_check"] = {
            "items": spot.items, "errors": spot.errors, "passes": spot.passes, "breaks": spot.breaks,
            "words": spot.words,
        }  # fmt: skip
        lines += ["", spot.words]
    return code_of(report), lines, result


def run() -> None:
    """The command; a pipe behind it may end early."""
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("hypac-verify: stopped", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    raise SystemExit(code)
