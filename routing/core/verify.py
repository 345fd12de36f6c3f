"""Recompute a certificate from its two published files, without the database.

    python -m routing.core.verify CERTIFICATE.json DRAW.jsonl [--final FINAL_AUDIT.json]

Recomputed are: which pool positions were drawn and whom people were asked about (from the entropy), the
tie-breaks (from the salt and the item ids), the losses (from labels and answers), the observed errors of
every policy, the tests, the choice, the thresholds and the words; under `split_fixed_sequence` also the
chain, from the slices and the first labels; where an expert is the reference, n_B, the critical values, whose
items the asked ones are, what the expert was to label, and people's error.  Taken as given are: the scores
and answers of the models, the labels of the people, losses that were measured elsewhere, the chains or
slices, which were fixed before the draw, what the policies of `every_score` cost on the pilot and on which
items models were called, what models cost where an expert is the reference, probabilities of asking that
vary, the hash of the pool, what stands under "provenance", that commitments were shown when they were made
(the files whose roots they hold are not read here), and in a certificate of version 1 the expected costs, and
the bound that is shown beside items that nobody could label.

Of a final audit: which places were drawn, both parts of its test, and the words; taken as given are the
labels that could be drawn, of which there is only a hash, and what annotators and expert said of those drawn.

Exit code 0: everything agrees.  1: something differs, line by line.  2: a file cannot be read.  141: what
read the lines, as ``| head`` does, did not read all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import isclose
from pathlib import Path
from typing import Any

from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationError, CalibrationRow
from routing.core.certificate import COMMITTED, EVERY_SCORE, Document, certificate_document
from routing.core.certify import DEARER, Certification, certify
from routing.core.commitment import commitment_differences
from routing.core.console import unread_output
from routing.core.correctness import SAYS_WHAT_IS_RIGHT, before_version_3
from routing.core.documents import (
    DocumentError,
    parse_chains,
    parse_document,
    parse_draw,
    parse_plan,
    parse_slices,
)
from routing.core.drawn import draw_differences, drawn_from
from routing.core.every_score.certify import certify_every_score
from routing.core.every_score.documents import read_pilot_costs, read_score_chains, score_certificate
from routing.core.losses import imported_paths, measured_elsewhere
from routing.core.messages import say
from routing.core.plan import Plan, validate
from routing.core.reference import final
from routing.core.reference.documents import read_expert_plan, read_kind
from routing.core.reference.plan import validate_expert_plan
from routing.core.reference.recompute import again_with_expert, refuse_other_rows
from routing.core.reference.settled import settled_certificate
from routing.core.reference.words import EXPERT, SETTLED
from routing.core.rules import every_score, split_fixed_sequence

AGREES, DIFFERS, UNREADABLE = 0, 1, 2
SHOWN = 50
"""Differences printed before the rest is only counted."""
LARGEST_POOL = 10**8
"""Items of a pool whose draw is recomputed: it takes up to 40 bytes for each."""
TOLERANCE = 1e-9
FIGURES = {
    "cost",
    "estimate",
    "expected_net_cost",
    "expected_net_saving",
    "expected_routing_saving",
    "model_cost",
    "observed",
    "observed_errors",
    "observed_first",
    "observed_first_low",
    "observed_low",
    "people_cost",
    "pilot_paid",
    "pointwise_upper_bound",
    "weighted",
}
"""Sums and bounds of floats, whose last digit may depend on the machine: equal within `TOLERANCE`.  All else,
thresholds above all, must be the same to the last digit."""


def verify(certificate: bytes, draw: bytes, *, allowed_imports: Collection[str] = ()) -> list[str]:
    """What differs between a certificate and what its draw gives, one sentence each; empty if nothing does.

    Parameters
    ----------
    allowed_imports
        Python objects, as "package.module:attribute", that a loss named in the certificate may import.

    Raises
    ------
    DocumentError
        A file is malformed, or its loss would run code that is not allowed.
    """
    document = parse_document(certificate)
    rows = parse_draw(draw)
    plan = parse_plan(document)
    _refuse_imports(plan, allowed_imports)
    if plan.loss != measured_elsewhere.NAME and any(row.losses for row in rows):
        raise DocumentError(f"draw: a line has measured losses, and those of {plan.loss!r} are computed")
    kind, uses_every_score = read_kind(document), plan.rule == every_score.RULE.name
    if kind == EXPERT:
        refuse_other_rows(document, rows)
    else:
        _refuse_rows(document, plan, rows, uses_every_score)
    entropy, provenance = _provenance(document)
    if plan.pool_size > LARGEST_POOL:
        raise DocumentError(f"certificate: its pool of {plan.pool_size} items is too large to draw from here")
    try:
        if kind == EXPERT:
            validate_expert_plan(read_expert_plan(document, plan)[0])
        else:
            validate(plan)
        differences = list(draw_differences(plan, rows, entropy, drawn_from(document, entropy)))
        differences += _commitment_differences(document, plan, rows)
    except (ValueError, MemoryError) as error:
        raise DocumentError(f"certificate: its plan cannot be carried out: {error}") from None
    if [row.order for row in rows] != sorted(row.order for row in rows):
        differences.append("draw: its lines are not in the order of the draw")
    try:
        calibration = Calibration.from_rows(rows)
        if kind == EXPERT:
            again, more = again_with_expert(document, plan, calibration, provenance)
            differences += more
        elif uses_every_score:
            again = _again_every_score(document, plan, calibration, provenance)
        else:
            again = _again(document, plan, calibration, provenance)
    except DocumentError:
        raise
    except CalibrationError as error:
        return [*differences, f"draw: it does not fit the plan, so nothing was tested: {error}"]
    except ValueError as error:
        return [*differences, f"certificate: nothing could be tested: {error}"]
    try:
        return [*differences, *document_differences(document, again)]
    except RecursionError:
        raise DocumentError("certificate: what stands in it is nested too deeply") from None


def verify_final(
    audit: bytes, certificate: bytes, draw: bytes, *, allowed_imports: Collection[str] = ()
) -> list[str]:
    """The same of the certificate of a final audit and what was drawn for it; the run's own is looked at by
    `verify`.

    Raises
    ------
    DocumentError
        A file is malformed, or the run has no expert.
    """
    stated, document = final.read_final(audit), parse_document(certificate)
    plan = parse_plan(document)
    _refuse_imports(plan, allowed_imports)
    if read_kind(document) != EXPERT:
        raise DocumentError("certificate: no expert is its reference, so it has no final audit")
    try:
        calibration = Calibration.from_rows(parse_draw(draw))
        again, odd = final.recomputed(
            stated, document, plan, calibration, sha256=hashlib.sha256(certificate).hexdigest()
        )
    except DocumentError:
        raise
    except ValueError as error:
        return [f"final audit: nothing could be tested: {error}"]
    return [
        *odd,
        *(line.replace("certificate:", "final audit:", 1) for line in document_differences(stated, again)),
    ]


def _refuse_rows(
    document: Document, plan: Plan, rows: Sequence[CalibrationRow], uses_every_score: bool
) -> None:
    """Raise where version and rows are not those of the plan's rule, an ordinary one."""
    version = document["version"]
    if version <= EVERY_SCORE and uses_every_score != (version == EVERY_SCORE):
        raise DocumentError(f"certificate: the rule {plan.rule!r} has no certificate of this version")
    if any(row.annotator for row in rows):
        raise DocumentError("draw: a line names an annotator, and no expert is the reference")
    if not uses_every_score and any(row.own or row.called for row in rows):
        raise DocumentError(f"draw: the rule {plan.rule!r} looks at no score of a later model")
    if uses_every_score and not all(row.called for row in rows if row.asked):
        raise DocumentError("draw: a line does not say which models were asked about its item ('called')")


def _again(document: Document, plan: Plan, calibration: Calibration, provenance: dict[str, Any]) -> Document:
    """The certificate anew, from its chains or slices and the draw, in the words of its version."""
    chains, slices = parse_chains(document), parse_slices(document)
    learns = plan.rule == split_fixed_sequence.RULE.name
    certification = certify(plan, () if learns else chains, calibration, slices=slices)
    again = certificate_document(plan, calibration, certification, provenance=provenance, slices=slices)
    if document["version"] < SAYS_WHAT_IS_RIGHT:
        again["version"] = document["version"]
        again["result"]["sentence"] = before_version_3(certification.said)
    if read_kind(document) == SETTLED:
        return settled_certificate(plan, certification, again)
    if document["version"] == 1:
        _as_version_1(document, again, certification)
    return again


def _again_every_score(
    document: Document, plan: Plan, calibration: Calibration, provenance: dict[str, Any]
) -> Document:
    """The same for `every_score`."""
    chains, pilot = read_score_chains(document), read_pilot_costs(document)
    certification = certify_every_score(
        plan, chains, calibration, pilot=pilot, names=_names(provenance, plan.sources - 1)
    )
    again = score_certificate(plan, chains, calibration, certification, pilot=pilot, provenance=provenance)
    if read_kind(document) == SETTLED:
        return settled_certificate(plan, certification, again)
    return again


def _names(provenance: Mapping[str, Any], models: int) -> list[str]:
    """Of the models, as the sentence calls them; empty where the certificate names none."""
    sources = provenance.get("sources", [])
    if not isinstance(sources, list) or not all(isinstance(entry, dict) for entry in sources):
        raise DocumentError("certificate: provenance.sources is no list of objects")
    if sources and len(sources) != models:
        raise DocumentError(f"certificate: provenance.sources names {len(sources)} of {models} models")
    return [str(entry.get("name")) for entry in sources]


def _refuse_imports(plan: Plan, allowed: Collection[str]) -> None:
    for path in imported_paths(plan.loss, plan.loss_params):
        if path not in allowed:
            raise DocumentError(
                f"certificate: its loss {plan.loss!r} runs the code of {path!r}, which is not part of this "
                f"program; look at that code, and if you trust it, add --allow-loss {path}"
            )


def _as_version_1(stated: dict[str, Any], again: dict[str, Any], found: Certification) -> None:
    """Take as stated what version 1 computed in another way, and what nothing rests on.

    These are the expected costs, and beside items that nobody could label the bound that is shown.
    """
    before, result = stated.get("result"), again["result"]
    if not isinstance(before, dict):
        return
    names = ["expected_net_cost", "expected_net_saving", "expected_routing_saving"]
    if again["draw"]["unanswered"]:
        names.append("pointwise_upper_bound")
    for name in names:
        result[name] = before.get(name, result[name])
    said = [message for message in found.said if message.code != DEARER]
    either = (before_version_3(said), before_version_3([*said, say(DEARER)]))
    if before.get("sentence") in either:
        result["sentence"] = before["sentence"]


def _provenance(document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The entropy, and the provenance from which an equal document is built."""
    draw, pool, kept = document.get("draw"), document.get("pool"), document.get("provenance")
    if not isinstance(draw, dict) or not isinstance(pool, dict) or not isinstance(kept, dict):
        raise DocumentError("certificate: 'draw', 'pool' or 'provenance' is missing or no object")
    text = draw.get("entropy")
    if not isinstance(text, str) or not text.isdecimal() or len(text) > 1000:
        raise DocumentError(f"certificate: draw.entropy is no whole number in text: {str(text)[:60]!r}")
    apart = {name: document[name] for name in ("commitments", "ledger") if name in document}
    return int(text), {**kept, **apart, "entropy": text, "pool_hash": pool.get("hash", "")}


def _commitment_differences(document: Document, plan: Plan, rows: Sequence[CalibrationRow]) -> Iterable[str]:
    if document["version"] < COMMITTED:
        if any(row.later for row in rows):
            raise DocumentError("draw: a line says who answered later, and there are no commitments")
        return ()
    return commitment_differences(document, plan, rows)


def document_differences(
    stated: object, computed: object, path: str = "", *, tolerance: float = TOLERANCE
) -> Iterator[str]:
    """Where two JSON values differ, one sentence per leaf; `FIGURES` by more than ``tolerance``."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        for key in sorted(stated.keys() | computed.keys()):
            where = f"{path}.{key}" if path else key
            if key not in stated:
                yield f"certificate: {where} is missing, recomputed {_short(computed[key])}"
            elif key not in computed:
                yield f"certificate: {where} is not part of a certificate"
            else:
                yield from document_differences(stated[key], computed[key], where, tolerance=tolerance)
    elif isinstance(stated, list) and isinstance(computed, list) and len(stated) == len(computed):
        for index, (one, other) in enumerate(zip(stated, computed, strict=True)):
            yield from document_differences(one, other, f"{path}[{index}]", tolerance=tolerance)
    elif not _equal(stated, computed, within=tolerance if path.rpartition(".")[2] in FIGURES else None):
        yield f"certificate: {path} is {_short(stated)}, recomputed {_short(computed)}"


def _equal(stated: object, computed: object, *, within: float | None) -> bool:
    if isinstance(stated, bool) or isinstance(computed, bool):
        return stated is computed
    if isinstance(stated, int | float) and isinstance(computed, int | float):
        whole = isinstance(stated, int) and isinstance(computed, int)
        if stated == computed or within is None or whole:
            return stated == computed
        try:
            return isclose(stated, computed, rel_tol=within, abs_tol=within)
        except OverflowError:  # of hundreds of digits
            return False
    return type(stated) is type(computed) and stated == computed


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: print what differs, return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m routing.core.verify",
        description="Recompute a HyPAC certificate from its published files.",
    )
    parser.add_argument("certificate", type=Path, help="the certificate (JSON)")
    parser.add_argument("draw", type=Path, help="the draw (draw.jsonl)")
    parser.add_argument(
        "--allow-loss",
        metavar="MODULE:NAME",
        action="append",
        default=[],
        help="let a loss that the certificate names run this code; may be repeated",
    )
    parser.add_argument("--final", type=Path, help="the certificate of its final audit (final_audit.json)")
    options = parser.parse_args(arguments)
    try:
        certificate, draw = options.certificate.read_bytes(), options.draw.read_bytes()
        differences = verify(certificate, draw, allowed_imports=options.allow_loss)
        if options.final:
            audit = options.final.read_bytes()
            differences += verify_final(audit, certificate, draw, allowed_imports=options.allow_loss)
    except OSError as error:
        print(f"cannot read {error.filename}: {error.strerror}", file=sys.stderr)
        return UNREADABLE
    except DocumentError as error:
        print(f"cannot read this: {error}", file=sys.stderr)
        return UNREADABLE
    for line in differences[:SHOWN]:
        print(line)
    if len(differences) > SHOWN:
        print(f"... and {len(differences) - SHOWN} more")
    if differences:
        print(f"DIFFERS: {len(differences)} {'difference' if len(differences) == 1 else 'differences'}")
        return DIFFERS
    print("OK: the certificate follows from its draw")
    if options.final:
        print("OK: the final audit follows from it and what was drawn")
    if parse_document(certificate)["version"] == 1:
        print("It is of version 1: its expected costs and savings were not checked")
    return AGREES


if __name__ == "__main__":
    with unread_output():
        code = main()
    raise SystemExit(code)
