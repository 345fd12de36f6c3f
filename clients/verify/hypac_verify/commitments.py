"""What a run committed to before its draw and before its first label, and the ledger of its project, as
certificates hold them from version 6 on (docs/statistics.md, "The two commitments", "The ledger").
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from hypac_verify.reading import (
    Document,
    Plan,
    Report,
    Row,
    UnusableError,
    canonical,
    decimal,
    lines_of,
    object_of,
    part,
)

COMMITTED = 6
"""Version of the first certificates that hold commitments."""
WHERE, LEDGER = "certificate.json, commitments", "certificate.json, ledger"
FIRST = {
    "format", "version", "number", "project", "run", "plan", "entropy", "pool", "sources", "items", "pilot",
    "chains", "reference", "ledger", "draw_from",
}  # fmt: skip
SECOND = {
    "format", "version", "number", "project", "run", "before_draw", "randomness", "draw", "pilot", "chains",
    "rechecked", "ledger",
}  # fmt: skip
NAMED = {
    "system": {"kind"},
    "nonce": {"kind"},
    "drand": {"kind", "chain", "round", "time"},
    "nist": {"kind", "time"},
}
"""What a commitment says of where the draw will come from."""
QUICKNET = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
"""drand's network of that name: a round every three seconds since FIRST_ROUND."""
FIRST_ROUND = datetime.fromtimestamp(1_692_803_367, UTC)
VALUES = {"nonce": r"\S.{6,}\S", "drand": "[0-9a-f]{64}", "nist": "[0-9a-f]{128}"}
ENTRY = {"number", "run", "kind", "alpha", "target", "pool", "commitment", "previous", "sha256"}
OF_CHAIN = ("name", "shape", "models", "share")
OF_POLICY = ("thresholds", "move", "counts", "model_cost", "people_cost")
HASH = re.compile("[0-9a-f]{64}")


def hash_of(document: object) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()


@dataclass(frozen=True)
class Commitments:
    """Both documents, and the entries of the ledger."""

    first: Document
    second: Document
    entries: list[Document]

    @property
    def hashes(self) -> tuple[str, str]:
        return hash_of(self.first), hash_of(self.second)

    @property
    def kind(self) -> str:
        return str(self.second["randomness"]["kind"])


def read_commitments(document: Document) -> Commitments:
    """Those of a certificate of version 6. Raises UnusableError."""
    both = part(document, "commitments", dict, "certificate.json")
    if both.keys() != {"before_draw", "before_labels"}:
        raise UnusableError(f"{WHERE}: entries are missing, or there are others")
    made = []
    for number, (name, keys) in enumerate((("before_draw", FIRST), ("before_labels", SECOND)), start=1):
        one = part(both, name, dict, WHERE)
        if one.keys() != keys:
            raise UnusableError(f"{WHERE}, {name}: entries are missing, or there are others")
        frame = (one["format"], one["version"], one["number"])
        if frame != ("hypac-commitment", 1, number) or any(type(entry) is not int for entry in frame[1:]):
            raise UnusableError(f"{WHERE}, {name}: no commitment that is known here")
        head = part(one, "ledger", dict, f"{WHERE}, {name}")
        if head.keys() != {"entries", "head"}:
            raise UnusableError(f"{WHERE}, {name}: 'ledger' is not the two entries")
        part(head, "entries", int, f"{WHERE}, {name}")
        made.append(one)
    first, second = made
    named, given = part(first, "draw_from", dict, WHERE), part(second, "randomness", dict, WHERE)
    kind, value = given.get("kind"), given.get("value")
    if named.get("kind") not in NAMED or named.keys() != NAMED[named["kind"]]:
        raise UnusableError(f"{WHERE}, before_draw: where the draw comes from is nothing that is known here")
    fits = value is None if kind == "system" else isinstance(value, str)
    if given.keys() != {"kind", "value"} or kind not in NAMED or not fits:
        raise UnusableError(f"{WHERE}, before_labels: 'randomness' is nothing that is known here")
    entries = part(document, "ledger", list, "certificate.json")
    for number, entry in enumerate(entries, start=1):
        if object_of(entry, LEDGER).keys() != ENTRY:
            raise UnusableError(f"{LEDGER}, entry {number}: entries are missing, or there are others")
        for name in ("number", "run"):
            part(entry, name, int, f"{LEDGER}, entry {number}")
        decimal(entry, "alpha", f"{LEDGER}, entry {number}")
    return Commitments(first, second, entries)


def drawn_number(entropy: int, made: Commitments | None) -> int:
    """What the calibration set is drawn from, where ``entropy`` is the run's own."""
    if made is None or made.kind == "system":
        return entropy
    value = made.second["randomness"]["value"].encode()
    return int.from_bytes(hashlib.sha256(bytes.fromhex(made.hashes[0]) + value).digest()[:16], "big")


def fixed_chains(document: Document, rule: str) -> Document:
    """What of chains and slices was fixed before the labels; a chain that is learnt from them was not."""
    fixed: Document = {name: document[name] for name in ("scored", "lazy", "slices") if name in document}
    if rule != "split_fixed_sequence":
        fixed["chains"] = [
            {
                **{name: chain[name] for name in OF_CHAIN if name in chain},
                "policies": [
                    {name: policy[name] for name in OF_POLICY if name in policy}
                    for policy in part(chain, "policies", list, "certificate.json, chains")
                ],
            }
            for chain in part(document, "chains", list, "certificate.json")
        ]
    if "scores" in document:
        fixed["scores"] = fixed_chains(part(document, "scores", dict, "certificate.json"), rule)
    return fixed


def check_commitments(
    document: Document, made: Commitments, plan: Plan, rows: Sequence[Row], report: Report
) -> None:
    """Both are what certificate and draw say, and the second follows the first."""
    before, population = len(report.faults), plan.target == "population"
    first, second, provenance = made.first, made.second, document["provenance"]
    reference = dict(document.get("reference", {}))
    rechecked = reference.pop("rechecked", None)
    reference.pop("replaced", None)
    chains = hash_of(fixed_chains(document, plan.rule))
    digest = hashlib.sha256()
    for row in rows:
        digest.update(row.blank + b"\n")
    run = {"project": provenance.get("project"), "run": provenance.get("run")}
    for name, one, found in (
        (
            "before_draw",
            first,
            {
                **run,
                "plan": document["plan"],
                "entropy": document["draw"]["entropy"],
                "pool": document["pool"],
                "sources": provenance.get("sources"),
                "reference": reference or None,
                "chains": None if population else chains,
            },
        ),
        (
            "before_labels",
            second,
            {
                **run,
                "before_draw": made.hashes[0],
                "draw": {
                    "rows": len(rows),
                    "asked": sum(row.asked for row in rows),
                    "sha256": digest.hexdigest(),
                },
                "chains": chains if population else None,
                "rechecked": rechecked,
            },
        ),
    ):
        for key, value in found.items():
            if canonical(one[key]) != canonical(value):
                report.fault(f"{WHERE}, {name}: {key!r} is not what certificate and draw say")
    if (first["pilot"] is None) != population or (second["pilot"] is None) == population:
        report.fault(f"{WHERE}: the pilot stands in the other commitment")
    given, named = second["randomness"], first["draw_from"]
    if given["kind"] != named["kind"]:
        report.fault(f"{WHERE}: the draw comes from {given['kind']!r}, and {named['kind']!r} was named")
    elif made.kind != "system" and not re.fullmatch(VALUES[made.kind], given["value"]):
        report.fault(f"{WHERE}: no {made.kind} has such a value")
    if made.kind == "drand" and named["chain"] == QUICKNET and named["time"] != time_of(named["round"]):
        report.fault(f"{WHERE}: round {named['round']} of drand does not come at {named['time']}")
    later = sum(len(row.later) for row in rows)
    if later and document.get("lazy") is not True:
        report.fault("draw.jsonl: answers came after the second commitment, and the rule asks nobody then")
    elif later:
        report.notes.append(
            f"{later} answers of later models came after the second commitment: they are on trust."
        )
    report.notes.append(_told_of_draw(made))
    if len(report.faults) == before:
        report.checked.append(
            "the commitments: plan, chains, roster and where the draw comes from are those of the first, the "
            "draw and what models had said of it those of the second"
        )


def time_of(number: object) -> str:
    """When a round of QUICKNET comes; "" of what is no round."""
    if not isinstance(number, int) or not 1 <= number <= 10**10:
        return ""
    return (FIRST_ROUND + 3 * timedelta(seconds=number - 1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _told_of_draw(made: Commitments) -> str:
    named, value = made.first["draw_from"], made.second["randomness"]["value"]
    if made.kind == "system":
        return "The draw is on trust: it comes from the server of whoever made it."
    if made.kind == "nonce":
        return (
            f"The draw comes from the first commitment and the text {value!r}: ask whoever is said to have "
            "chosen it whether that is theirs, and when they gave it."
        )
    where = f"round {named['round']} of the chain {named['chain']}" if made.kind == "drand" else "the pulse"
    return (
        f"The draw comes from the first commitment and {where} of {made.kind}, {named['time']}, {value}: "
        "look up there whether that is its value."
    )


def check_ledger(document: Document, made: Commitments, plan: Plan, report: Report) -> None:
    """Linked, with this run's own entry, and what the sentence says of earlier draws."""
    before, previous, entries = len(report.faults), "", made.entries
    for number, entry in enumerate(entries, start=1):
        rest = {name: value for name, value in entry.items() if name != "sha256"}
        if entry["number"] != number or entry["previous"] != previous or entry["sha256"] != hash_of(rest):
            report.fault(f"{LEDGER}, entry {number}: it is not linked to the one before, or was changed")
        if entry["kind"] not in ("draw", "final_audit"):
            report.fault(f"{LEDGER}, entry {number}: nothing else than draws and final audits spends alpha")
        previous = entry["sha256"]
    heads = ["", *(entry["sha256"] for entry in entries)]
    first, second = made.first["ledger"], made.second["ledger"]
    for head in (first, second):
        if not 0 <= head["entries"] < len(heads) or heads[head["entries"]] != head["head"]:
            report.fault(f"{LEDGER}: it does not go on from what was committed to")
            return
    own = entries[second["entries"] - 1] if second["entries"] > first["entries"] else {}
    said = {
        "run": document["provenance"].get("run"),
        "kind": "draw",
        "alpha": plan.words["alpha"],
        "target": plan.target,
        "pool": document["pool"]["hash"],
        "commitment": made.hashes[0],
    }
    if any(own.get(name) != value for name, value in said.items()):
        report.fault(f"{LEDGER}: the run's own entry does not say what it drew")
    if sum(entry["kind"] == "draw" and entry["run"] == said["run"] for entry in entries) != 1:
        report.fault(f"{LEDGER}: a run draws once")
    _check_shared(document, entries[: second["entries"]], entries, plan, report)
    if len(report.faults) == before:
        runs = len({entry["run"] for entry in entries})
        report.checked.append(f"the ledger: {len(entries)} entries of {runs} runs, each linked to the last")


def _check_shared(
    document: Document, until: Sequence[Document], entries: Sequence[Document], plan: Plan, report: Report
) -> None:
    """What runs on these items have spent is what the ledger charges them with."""
    provenance, where = document["provenance"], "certificate.json, provenance"
    shared = {
        part(object_of(entry, where), "run", int, where): decimal(entry, "alpha", where)
        for entry in part(provenance, "alpha_ledger", list, where)
    }
    known = {entry["run"] for entry in entries}
    if plan.target == "population" and shared.keys() != known:
        report.fault(f"{where}: what is said of new items has to count every run of the ledger")
    for run, alpha in shared.items():
        if sum((Fraction(entry["alpha"]) for entry in entries if entry["run"] == run), Fraction(0)) != alpha:
            report.fault(f"{where}: run {run} is not charged with what the ledger says")
    spent = sum((Fraction(entry["alpha"]) for entry in until[:-1] if entry["run"] in shared), Fraction(0))
    if plan.alpha_spent != spent:
        report.fault("certificate.json, plan.alpha_spent: it is not what the ledger says was spent before")
    apart = sorted(known - shared.keys())
    if apart:
        report.notes.append(
            f"That the runs {', '.join(map(str, apart))} of the ledger share no item with this one, and so "
            "take nothing from it, is on trust."
        )


def check_noted(made: Commitments | None, noted: Sequence[str], heads: Path | None, report: Report) -> None:
    """What the reader noted when it was shown, against the certificate; ``noted`` in small letters."""
    for text in noted:
        if not HASH.fullmatch(text):
            raise UnusableError(f"--commitment {text[:80]}: 64 hexadecimal digits are wanted")
        if made is None:
            report.fault(f"the commitment {text}: this certificate has none, it is older than commitments")
        elif text not in made.hashes:
            report.fault(f"the commitment {text} is none of this certificate's")
        else:
            when = ("before the draw", "before the first label")[made.hashes.index(text)]
            report.checked.append(f"the commitment {text}, which you noted, is the one {when}")
    if not noted and made is not None:
        report.notes.append(
            "The commitments are not confirmed: whoever noted one when it was shown gives it as --commitment."
        )
    if heads is not None:
        _check_heads(made, heads, report)
    elif made is not None:
        report.notes.append("Whether the ledger is complete cannot be checked without --heads.")


def _check_heads(made: Commitments | None, heads: Path, report: Report) -> None:
    entries, noted, compared = made.entries if made else [], 0, set[int]()
    for number, line in lines_of(heads):
        words = line.decode("ascii", "replace").lower().split()
        if not words:
            continue
        if len(words) != 2 or not words[0].isdecimal() or len(words[0]) > 9 or not HASH.fullmatch(words[1]):
            raise UnusableError(
                f"{heads.name}, line {number}: the number of an entry and its hash are wanted"
            )
        noted += 1
        place = int(words[0])
        if not 1 <= place <= len(entries):
            report.notes.append(
                f"Entry {place} of the ledger is not in this certificate, which ends with {len(entries)}."
            )
            continue
        compared.add(place)
        if entries[place - 1]["sha256"] != words[1]:
            report.fault(f"{LEDGER}: entry {place} is not the one that you noted")
    if not noted:
        raise UnusableError(f"{heads.name}: it has no entry, on a line its number and its hash")
    if compared:
        report.checked.append(f"the ledger against {len(compared)} entries that you noted")
    # An entry holds all before it: that of the run's own draw, or a later one, shows that none is left out.
    own = made.second["ledger"]["entries"] if made else 0
    report.ledger_known = bool(compared) and max(compared) >= own
    if compared and not report.ledger_known:
        report.notes.append(
            f"The entries that you noted end with {max(compared)}, before this run's own draw, {own}: "
            "whether one between is left out cannot be checked."
        )
