"""Beside what a run found: what the other shape of thresholds would have come to, on the same labels.

Its chains are built from the same pool and pilot, and tested on the same asked items, as if it had been the
rule of the run.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from routing.core.calibration import Calibration
from routing.core.certify import Certification, certify
from routing.core.every_score.certify import ScoreCertification, certify_every_score
from routing.core.every_score.select import PilotCosts
from routing.core.exact import percent
from routing.core.keys import Threshold
from routing.core.messages import declare, gettext_noop, say, sentences, to_json
from routing.core.plan import Plan
from routing.core.rules import every_score, fixed_sequence
from routing.models import Run, RunSource
from routing.runs import every_score_runs
from routing.runs.chain_inputs import ChainInputs
from routing.runs.chains import limits_of, thresholds_to_json
from routing.runs.usable_answers import table_of_answers


def compare_with_other_rule(
    run: Run, run_sources: Sequence[RunSource], plan: Plan, calibration: Calibration
) -> dict[str, Any] | None:
    """A row of `comparisons` (routing.runs.diagnostics): of a run of `every_score` what `fixed_sequence`
    would have certified, of another run the reverse. None where there is one model, where no later one has
    a score, and where the models have not answered all asked items, so that nobody knows.
    """
    if len(run_sources) == 1 or not all(all(row.called) for row in calibration.rows if row.asked):
        return None
    inputs = ChainInputs.of(run, run_sources)
    if plan.rule == every_score.RULE.name:
        other = replace(plan, rule=fixed_sequence.RULE.name)
        found = certify(other, inputs.chains(other), _without_keys(calibration))
        return _row(other, found, found.thresholds, own=False)
    other = replace(plan, rule=every_score.RULE.name)
    chains = inputs.score_chains(other)
    if not any(chains.scored[1:]):
        return None
    pilot = PilotCosts.of(other, chains, every_score_runs.pilot_outside_draw(run, run_sources, chains))
    score = certify_every_score(other, chains, _with_keys(run, run_sources, calibration), pilot=pilot)
    chosen = score.selection.chain
    positions = [place + 1 for place in chosen.models]
    limits = limits_of(chosen.shape, positions, score.thresholds, len(run_sources))
    return _row(other, score, limits, own=True)


def _row(
    plan: Plan, found: Certification | ScoreCertification, limits: Sequence[Threshold], *, own: bool
) -> dict[str, Any]:
    said = [say("compare.beside", net=percent(round(Decimal(found.expected.net_saving), 3)))]
    return {
        "rule": plan.rule,
        "bound": plan.bound_rule().name,
        "thresholds": thresholds_to_json(tuple(limits)),
        "own_scores": own,
        "routing_saving": found.expected.routing_saving,
        "observed_errors": found.observed_errors if found.certified else 0.0,
        "upper_bound": found.pointwise_upper_bound,
        "holds_level": True,
        "sentence": sentences(said),
        "messages": {"sentence": to_json(said)},
    }


def _without_keys(calibration: Calibration) -> Calibration:
    return Calibration.from_rows([replace(row, own=(), called=()) for row in calibration.rows])


def _with_keys(run: Run, run_sources: Sequence[RunSource], calibration: Calibration) -> Calibration:
    names = {row.item_id: row for row in calibration.rows if row.asked}
    asked = [
        (item, name)
        for item, name in run.draw.items.filter(asked=True).values_list("item", "item__external_id")
        if name in names
    ]
    _answers, scores = table_of_answers(run, run_sources, [item for item, _name in asked])
    told = every_score_runs.calibration_row_fields(run, run_sources, asked, scores)
    by_name = {name: told[item] for item, name in asked}
    return Calibration.from_rows([replace(row, **by_name.get(row.item_id, {})) for row in calibration.rows])


SAYS = {
    "compare.beside": gettext_noop(
        "Chosen before the draw, it would have been expected to save %(net)s, everything paid counted."
    ),
}
declare(SAYS)
