"""The analysis of a run with an expert: tests along the frozen chains, and what is found about people."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import isfinite
from typing import Any

from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationError
from routing.core.every_score.select import PilotCosts
from routing.core.losses import LossUnavailableError
from routing.core.reference.beside import beside, peoples_plan
from routing.core.reference.certify import ReferenceCertification, certify_with_expert
from routing.core.reference.chain import ReferenceChains
from routing.core.reference.documents import expert_certificate
from routing.core.reference.estimate import PeopleEstimate, by_annotator
from routing.core.reference.plan import ExpertPlan
from routing.core.reference.roster import Roster
from routing.core.reference.select import models_part
from routing.core.reference.sources import AskedLabels
from routing.models import Run, RunSource
from routing.runs import every_score_runs
from routing.runs.analysis_result import AnalysisResult, provenance_of
from routing.runs.chain_inputs import ChainInputs
from routing.runs.chains import no_losses
from routing.runs.expert.freeze import read_chains
from routing.runs.plan import plan_of
from routing.runs.reference import expert_plan_of
from routing.runs.roster import roster_of

PAGE = 10_000
SLICES = "slices"
"""Shape of a policy that sends each slice of the first score to its own source."""
MODELS_PART = "models_part"
PEOPLE = "people"
"""Figure of a certificate's page: how often people differ from the expert."""
REFERENCES = "references"
"""Another: what other references would have come to on the same labels."""

logger = logging.getLogger(__name__)


def analyse_with_expert(
    run: Run, run_sources: Sequence[RunSource], calibration: Calibration
) -> AnalysisResult:
    """Certify the run from its locked labels.

    Raises JobFailedError where losses are missing.
    """
    expert = expert_plan_of(run, plan_of(run))
    chains, costs = read_chains(run, expert)
    pilot = _pilot_costs(run, run_sources, expert, chains)
    try:
        found = certify_with_expert(expert, chains, calibration, pilot_costs=pilot, models_costs=costs)
    except (LossUnavailableError, CalibrationError) as error:
        raise no_losses(error) from error
    roster = roster_of(run)
    if roster is None:
        raise ValueError(f"run {run.pk} has no roster")
    provenance = provenance_of(run, run_sources, found)
    return AnalysisResult(
        found,
        expert_certificate(expert, chains, calibration, found, roster=roster, provenance=provenance),
        calibration.rows,
        partial(_figures, _Analysed(run, run_sources, expert, chains, calibration, found, roster)),
        lambda: None,  # who is right is compared in the figures, not the rule
    )


def _pilot_costs(
    run: Run, run_sources: Sequence[RunSource], expert: ExpertPlan, chains: ReferenceChains
) -> PilotCosts | None:
    if chains.scores is None:
        return None
    outside = every_score_runs.pilot_outside_draw(run, run_sources, chains.scores)
    return PilotCosts.of(expert.models_and_expert, chains.scores, outside)


@dataclass(frozen=True)
class _Analysed:
    run: Run
    run_sources: Sequence[RunSource]
    expert: ExpertPlan
    chains: ReferenceChains
    calibration: Calibration
    found: ReferenceCertification
    roster: Roster


def _figures(seen: _Analysed) -> dict[str, Any]:
    """Plain JSON: `people` with one entry for everybody and one for each annotator, by the names of the
    roster; `steps` of the tests along each chain; `references`, this run and others on the same labels.
    """
    labels = AskedLabels.of_calibration(seen.expert, seen.calibration)
    asked = [row for row in seen.calibration.rows if row.asked]
    each = by_annotator(labels, [row.annotator for row in asked], _pool_sizes(seen.run, seen.roster))
    return {
        "binary": True,
        PEOPLE: {
            "all": people_document(seen.found.people),
            "annotators": {name: people_document(one) for name, one in each.items()},
        },
        "steps": [
            {
                "chain": test.chain.name,
                "steps": test.chain.size - 1,
                "passed": max(test.verdict.prefixes.values()) - 1,
                "limits": dict(test.verdict.limits),
            }
            for test in seen.found.selection.tests
        ],
        "counts": asdict(seen.found.counts),
        **_models_part(seen, labels),
        REFERENCES: _references(seen),
    }


def _models_part(seen: _Analysed, labels: AskedLabels) -> dict[str, Any]:
    """Whether a final audit that is planned may succeed: the models' part of it is known by now."""
    final, chosen = seen.expert.final, seen.found.selection
    if final is None or chosen.by_scores is not None or not chosen.index:
        return {}
    audit = final.audit(seen.expert.plan.pool_size)
    return {MODELS_PART: asdict(models_part(seen.expert, chosen, labels, audit))}


def _references(seen: _Analysed) -> list[dict[str, Any]]:
    """Rows of `routing.core.reference.beside`; none where they cannot be computed, as they are only shown."""
    try:
        plan = peoples_plan(seen.expert)
        chains = ChainInputs.of(seen.run, seen.run_sources).chains(plan)
        rows = beside(seen.expert, seen.chains, seen.calibration, seen.found, peoples_chains=chains)
    except Exception:
        logger.exception("What other references would come to in run %s could not be computed", seen.run.pk)
        return []
    return [asdict(row) for row in rows]


def people_document(people: PeopleEstimate) -> dict[str, Any]:
    """On how many items people `differ` from the expert; `estimate` is null where nothing was seen."""
    error = people.error
    return {
        "differ": error.observed,
        "asked": error.asked,
        "estimate": error.estimate if isfinite(error.estimate) else None,
        "low": error.low,
        "high": error.high,
        "caught": people.caught,
        "shared": people.shared,
    }


def _pool_sizes(run: Run, roster: Roster) -> dict[str, int]:
    """How many items of the pool each annotator has."""
    counts: Counter[str] = Counter(dict.fromkeys(roster.names, 0))
    names = list(run.pool_items.order_by("position").values_list("item__external_id", flat=True))
    for start in range(0, len(names), PAGE):
        counts.update(roster.annotators(names[start : start + PAGE]))
    return dict(counts)
