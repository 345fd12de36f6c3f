"""Chains of policies: fixed before the first label can exist, and as JSON and back, exactly."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.errors import HypacError
from annotation.jobs.context import JobContext
from annotation.words import Words
from routing.core.certificate import slices_document
from routing.core.chain import Chain, Policy, cut_slices
from routing.core.every_score.chain import CASCADE, FIRST_SCORE
from routing.core.every_score.documents import chains_document
from routing.core.keys import Key, Threshold, Thresholds
from routing.core.losses import LossUnavailableError
from routing.core.messages import CoreError, from_json, to_json
from routing.core.rules import every_score, split_fixed_sequence
from routing.core_language import message_in_words
from routing.models import Run, RunSource
from routing.runs.chain_inputs import ChainInputs
from routing.runs.expert.freeze import frozen_chains
from routing.runs.plan import plan_of

NO_LOSSES = failures.register(
    "losses_failed",
    lambda params: (
        _("The losses could not be computed: %(error)s.")
        % {"error": message_in_words(from_json(params["error"]))}
    ),
)


def no_losses(error: CoreError) -> HypacError:
    """Why the losses of a run could not be computed; another attempt may help where a server failed."""
    permanent = not isinstance(error, LossUnavailableError)
    return NO_LOSSES.error(permanent=permanent, error=to_json([error.said]))


def fix_chains(context: JobContext, run: Run, run_sources: Sequence[RunSource]) -> None:
    """Fix the chains, or the slices along which one is to be learnt, before the first label can exist."""
    run.refresh_from_db()
    if run.chains is not None:
        return
    context.progress(stage=Words(gettext_noop("Chains of policies")))
    plan, inputs = plan_of(run), ChainInputs.of(run, run_sources)
    fixed: dict[str, Any]
    try:
        if run.by_expert:
            fixed = {"chains": frozen_chains(run, plan, inputs)}
        elif plan.rule == every_score.RULE.name:
            fixed = {"chains": chains_document(inputs.score_chains(plan))}
        elif plan.rule == split_fixed_sequence.RULE.name:
            slices = cut_slices(plan, u=inputs.u, v=inputs.v, reference=inputs.reference)
            fixed = {"chains": [], "slices": slices_document(slices)}
        else:
            fixed = {"chains": chains_to_json(inputs.chains(plan))}
    except LossUnavailableError as error:
        raise no_losses(error) from error
    with context.chunk():
        Run.objects.filter(pk=run.pk, chains__isnull=True).update(**fixed)
    run.refresh_from_db()


def thresholds_to_json(thresholds: Thresholds) -> list[dict[str, Any] | None]:
    """Per model source {"u": ..., "v": ...}, or None: nothing goes there."""
    return [None if key is None else {"u": key.u, "v": key.v} for key in thresholds]


def thresholds_from_json(data: Sequence[dict[str, Any] | None]) -> Thresholds:
    return tuple(None if key is None else Key(float(key["u"]), int(key["v"])) for key in data)


def limits_of(shape: str, positions: Sequence[int], thresholds: Sequence[Any], models: int) -> list[Any]:
    """Of each of so many models up to which key its answers are kept, or None: of a shape other than
    `FIRST_SCORE` on its own score. `positions` count from 1.
    """
    if shape == FIRST_SCORE:
        return list(thresholds)
    limits = [None] * models
    limits[positions[0] - 1] = thresholds[0]
    if shape == CASCADE:
        limits[positions[1] - 1] = thresholds[2]
    return limits


def at_or_below(threshold: Threshold) -> Q:
    """Items of a pool whose key is not above the threshold; None takes nothing."""
    if threshold is None:
        return Q(pk__in=[])
    return Q(u__lt=threshold.u) | Q(u=threshold.u, v__lte=threshold.v)


def chains_to_json(chains: Sequence[Chain]) -> list[dict[str, Any]]:
    return [
        {
            "name": chain.name,
            "policies": [
                {
                    "thresholds": thresholds_to_json(policy.thresholds),
                    "counts": list(policy.counts),
                    "model_cost": policy.model_cost,
                    "people_cost": policy.people_cost,
                }
                for policy in chain.policies
            ],
        }
        for chain in chains
    ]


def chains_from_json(data: Sequence[dict[str, Any]]) -> tuple[Chain, ...]:
    return tuple(
        Chain(
            name=chain["name"],
            policies=tuple(
                Policy(
                    thresholds=thresholds_from_json(policy["thresholds"]),
                    counts=tuple(policy["counts"]),
                    model_cost=float(policy["model_cost"]),
                    people_cost=float(policy["people_cost"]),
                )
                for policy in chain["policies"]
            ),
        )
        for chain in data
    )
