"""What somebody who plans a run should know beforehand, in sentences in the language that is on."""

from collections.abc import Sequence
from decimal import Decimal

from django.utils.translation import gettext as _

from annotation.models import Project
from annotation.permissions import members_who_label
from annotation.templatetags.hypac import duration
from routing.core.correctness import odds_of
from routing.core.exact import plain
from routing.core.plan import Plan, cost_warnings
from routing.core.reference.plan import HALF, ExpertPlan
from routing.core_language import message_in_words
from routing.models import Source
from routing.runs.later.plan import warning_of_later_audit
from routing.runs.reference import ReferenceChoice
from routing.runs.suggestions import warnings_of_suggestions
from routing.sources.usability import SourcesUsability
from routing.sources.warnings import source_warnings

ENOUGH_FOR_LESS = 900
"""Asked items from which an r below one half is worth it (docs/references.md)."""


def plan_warnings(
    project: Project,
    plan: Plan,
    *,
    spent: Decimal,
    sources: Sequence[Source],
    looked: SourcesUsability,
    reference: ReferenceChoice,
    expert: ExpertPlan | None,
    later_audit_share: Decimal | None,
    seconds: int,
    models: Decimal,
    budget: Decimal | None,
) -> tuple[str, ...]:
    """`spent` is what earlier draws on these items took of alpha, `seconds` are what an annotator needs for a
    label, `models` is what models are expected to cost before the thresholds are known.
    """
    return (
        *map(message_in_words, cost_warnings(plan)),
        *_sorted_by_price(sources),
        *source_warnings(project, sources, looked),
        *_too_few_people(project, reference),
        *warnings_of_suggestions(project, wanted=reference.suggestions),
        *_of_expert(expert, seconds),
        *warning_of_later_audit(later_audit_share, plan.loss_function()),
        *_spent(plan, spent),
        *_beyond(budget, models, project.currency),
    )


def _spent(plan: Plan, spent: Decimal) -> tuple[str, ...]:
    if not spent:
        return ()
    return (
        _(
            "Earlier draws on these items have spent %(spent)s of alpha. With this one the certificate says "
            "%(odds)s, as somebody might have drawn until one looked good."
        )
        % {"spent": plain(spent), "odds": odds_of(plan.alpha, spent)["odds"]},
    )


def _too_few_people(project: Project, reference: ReferenceChoice) -> tuple[str, ...]:
    if reference.overlap == 1:
        return ()
    members = members_who_label(project.pk).count()
    if members >= reference.overlap:
        return ()
    return (
        _(
            "%(wanted)s people are to label an item, and only %(members)s may label in this project: a "
            "manager will have to decide about every such item."
        )
        % {"wanted": reference.overlap, "members": members},
    )


def _of_expert(expert: ExpertPlan | None, seconds: int) -> tuple[str, ...]:
    """What one should know before a run with an expert, in sentences; a label takes annotators `seconds`."""
    if expert is None:
        return ()
    asked = int(expert.plan.expected_labels)
    waits = _(
        "The expert has nothing to do until annotators have labelled the calibration set, about %(time)s "
        "of their work: tell her when to expect it."
    ) % {"time": duration(asked * seconds)}
    if expert.recheck_share >= HALF or asked >= ENOUGH_FOR_LESS:
        return (waits,)
    return (
        waits,
        _(
            "r = %(share)s is for %(enough)s asked items or more, and about %(asked)s are asked here: each "
            "mistake that people and models share counts %(weight)s times, so that few of them leave little "
            "to certify. Choose r = %(usual)s, or ask about more items."
        )
        % {
            "share": plain(expert.recheck_share),
            "enough": ENOUGH_FOR_LESS,
            "asked": f"{asked:,}",
            "weight": expert.weight,
            "usual": plain(HALF),
        },
    )


def _beyond(budget: Decimal | None, models: Decimal, currency: str) -> tuple[str, ...]:
    if budget is None or models <= budget:
        return ()
    return (
        _(
            "The models are expected to cost about %(models)s %(currency)s before the thresholds are "
            "known, more than the budget of %(budget)s %(currency)s: the run will stop there until "
            "the budget is raised."
        )
        % {"models": plain(models.quantize(Decimal("0.01"))), "currency": currency, "budget": plain(budget)},
    )


def _sorted_by_price(sources: Sequence[Source]) -> tuple[str, ...]:
    """That the models do not come in the order of their places, in a sentence."""
    if [source.position for source in sources] == sorted(source.position for source in sources):
        return ()
    names = ", ".join(source.name for source in sources)
    return (_("The models are taken in the order of their prices: %(names)s.") % {"names": names},)
