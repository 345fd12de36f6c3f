"""The certificate of a final audit (docs/statistics.md, "The final audit")."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

from hypac_verify import words
from hypac_verify.draw import Same, drawn, entropy_of
from hypac_verify.expert import Outcome
from hypac_verify.expert_labels import Run, models_part, read_final
from hypac_verify.reading import (
    Document,
    Report,
    UnusableError,
    compare,
    object_of,
    part,
)
from hypac_verify.tails import (
    last_true,
    tail,
)

AUDIT = "final_audit.json"


def check_final(
    audit: Document, certificate: str, outcome: Outcome, same: Same, report: Report
) -> dict[str, str]:
    """The certificate of a final audit: its draw, both parts of its test, and its words.

    Returns the label that each drawn item has to have in the delivered file, mended where it had to be.

    Parameters
    ----------
    certificate
        SHA-256 of the run's own.
    """
    run, plan = outcome.run, outcome.run.plan
    if run.final is None or outcome.number < 0:
        report.fault(f"{AUDIT}: the run's certificate names no final audit, or asks no annotator")
        return {}
    sample, error, _, two = read_final(run.final, plan)
    frame = part(audit, "frame", dict, AUDIT)
    size = part(frame, "size", int, f"{AUDIT}, frame")
    rows = [object_of(row, AUDIT) for row in part(audit, "rows", list, AUDIT)]
    if not 1 <= size <= plan.pool_size:
        raise UnusableError(f"{AUDIT}, frame: its size is none")
    for row in rows:
        if row.keys() != {"place", "item_id", "label", "expert"} or type(row["place"]) is not int:
            raise UnusableError(f"{AUDIT}: a row is no drawn label")
        part(row, "item_id", str, AUDIT)
        part(row, "label", str, AUDIT)
        part(row, "expert", (str, type(None)), AUDIT)
    if len(rows) != min(sample, size):  # before so many are drawn, which takes long
        report.fault(f"{AUDIT}: it has {len(rows)} rows, and {min(sample, size)} are drawn")
        return {}
    places, _ = drawn(entropy_of({"draw": frame}), size, len(rows), Fraction(1))
    if [row["place"] for row in rows] != places or len({row["item_id"] for row in rows}) < len(rows):
        report.fault(f"{AUDIT}: its rows are not those that the entropy draws, each item once")
    unanswered = sum(row["expert"] is None for row in rows)
    differ = sum(row["expert"] is not None and not same(row["expert"], row["label"]) for row in rows)
    budget = floor(error * plan.pool_size)
    chain = outcome.chains[outcome.number]
    verdict = models_part(run, outcome.labels, chain)
    losses = [(*outcome.labels.weighted(p)[: plan.models], 0, 0, 0) for p in range(len(outcome.labels.rows))]
    observed = chain.totals(outcome.labels.keys, losses)[outcome.index]
    left, most = plan.budget - budget, len(rows) - unanswered + 1
    allowed = last_true(lambda d: tail(size, left + d + 1, len(rows), d + unanswered) <= two, -1, most)
    holds = (verdict.eligible[outcome.index], differ <= allowed)
    numbers = {"observed": observed, "allowed": verdict.allowed[outcome.index], "budget": budget}
    people = {
        "budget": left,
        "sampled": len(rows),
        "differ": differ,
        "unanswered": unanswered,
        "allowed": allowed,
    }
    if audit.get("kind") != "final_audit" or type(audit.get("version")) is not int:
        raise UnusableError(f"{AUDIT}: no certificate of a final audit")
    found = {
        "kind": "final_audit",
        "version": 1,
        "certificate": certificate,
        "plan": {**run.final, "epsilon": plan.words["epsilon"], "pool_size": plan.pool_size},
        "frame": {"size": size, "hash": part(frame, "hash", str, AUDIT), "entropy": frame["entropy"]},
        "rows": rows,
        "result": {
            "certified": all(holds),
            "budget": plan.budget,
            "models": {**numbers, "holds": holds[0]},
            "people": {**people, "holds": holds[1]},
            "sentence": " ".join(_said(run, people, budget, size, holds)),
        },
    }
    before = len(report.faults)
    compare(audit, found, AUDIT, report)
    if len(report.faults) == before:
        report.checked.append(
            f"the final audit: its draw of {len(rows)}, both parts of its test, and its sentence"
        )
        report.notes.append(f"Final audit: {found['result']['sentence']}")  # type: ignore[index]
    return {row["item_id"]: row["label"] if row["expert"] is None else row["expert"] for row in rows}


def _said(run: Run, people: Document, budget: int, size: int, holds: tuple[bool, bool]) -> list[str]:
    plan, who, final = run.plan, words.one_of(run.names), run.final or {}
    numbers = words.odds(plan)
    seen = (
        f"Of {size:,} delivered labels by people that {who} had not given, {people['sampled']:,} were drawn: "
        f"{people['differ']} differ from hers, and {people['unanswered']} she could not tell, which count "
        "as wrong."
    )
    if all(holds):
        alpha = Decimal(final["models_alpha"]) + Decimal(final["people_alpha"])
        return [
            f"At most {numbers['share']} of the delivered labels of the run's {plan.pool_size:,} items "
            "differ from "
            f"what {who} would give, blind, with probability at least {words.percent(1 - alpha)} over the "
            "random "
            f"draws (alpha = {words.plain(alpha)}).",
            "This holds however often people err on the items that were routed to them: labels of theirs "
            "were drawn "
            "once all of them were given.",
            seen,
        ]
    said = [
        f"That at most {numbers['share']} of the labels are wrong could not be certified without the "
        "assumption "
        "that people label later items as they labelled the calibration set.",
        seen,
    ]
    if not holds[0]:
        said.append(f"The calibration set does not show that models get at most {budget:,} items wrong.")
    if not holds[1]:
        said.append(
            f"The sample does not show that people leave at most {plan.budget - budget:,} items wrong: at "
            "most "
            f"{max(people['allowed'], 0)} labels might have differed."
        )
    return [*said, "The run's own certificate stands as it is."]
