"""The plan of a run, term by term, in the language of the reader."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.utils.translation import gettext as _

from annotation.templatetags.hypac import money
from routing.core.bounds import BOUNDS
from routing.core.exact import percent, plain
from routing.core.rules import RULES, split_fixed_sequence
from routing.core.scores import SCORES
from routing.core_language import translated
from routing.models import RosterEntry, Run
from routing.runs.personal_data import erased_experts
from routing.runs.plan_options import loss_title
from routing.runs.roster import experts_of

NONE = Decimal(0)


def plan_in_words(run: Run) -> list[tuple[str, str]]:
    if run.by_people:
        return _people_run_in_words(run)
    people = (
        _("with the probability in the column %(column)s; %(least)s at the least, %(mean)s on average")
        % {"column": run.p_column, "least": plain(run.p_min), "mean": plain(run.p)}
        if run.p_min is not None
        else plain(run.p)
    )
    score_title = translated(SCORES.get(run.score).title) if run.score in SCORES else run.score
    terms = [
        (_epsilon_in_words(run), percent(run.epsilon)),
        (_("How often that may be missed (alpha)"), percent(run.alpha)),
        (
            _("What it is promised of (target)"),
            _("This data set") if run.by_expert else run.get_target_display(),
        ),
        (_("Items (N)"), f"{run.pool_size:,}"),
        (_("Calibration set (m)"), f"{run.m:,}"),
        (_("People are asked with probability (p)"), people),
        (
            _("How thresholds are chosen (rule)"),
            _("Three chains over all sources, each tested in order at a third of alpha")
            if run.by_expert
            else f"{_rule_title(run.rule)} ({run.rule})",
        ),
        (
            _("Bound"),
            f"{translated(BOUNDS.get(run.bound).title)} ({run.bound})" if run.bound in BOUNDS else run.bound,
        ),
        (_("What counts as an error (loss)"), _in_words(loss_title(run.loss), run.loss, run.loss_params)),
        (_("Uncertainty score"), _in_words(score_title, run.score, run.score_params)),
        (_("Price of a label by a person"), money(run.human_cost, run.project.currency)),
    ]
    if run.whole_size is not None:
        terms.insert(
            4,
            (
                _("Items of the delivered data set, what people labelled before included"),
                f"{run.whole_size:,}",
            ),
        )
    if run.rule == split_fixed_sequence.RULE.name:
        terms.insert(-4, (_("Part of the labels that the chain is learnt from"), plain(run.split_share)))
    terms += _reference_in_words(run)
    if run.later_audit_share is not None:
        terms.append(
            (
                _("Share of later items that people label, too, to see whether models get worse"),
                percent(run.later_audit_share),
            )
        )
    if run.draw_from != Run.DrawFrom.SYSTEM:
        terms.append((_("Where the draw comes from"), run.get_draw_from_display()))
    if run.overlap > 1:
        terms.append((_("People asked about an item"), _people_in_words(run)))
    if run.suggestions:
        terms.append((_("Suggestions of models on routed items"), _("shown to whoever labels them")))
    return terms


def _people_run_in_words(run: Run) -> list[tuple[str, str]]:
    chosen = run.how_chosen
    terms = [
        (_("Who labels"), _("People, all items of the run, without any model")),
        (_("Items (N)"), f"{run.pool_size:,}"),
    ]
    if chosen["sample"] is not None:
        terms.append(
            (_("How they were chosen"), _("at random from %(found)s") % {"found": f"{chosen['found']:,}"})
        )
    if chosen["filters"]:
        filters = "; ".join(f"{name} = {value}" for name, value in sorted(chosen["filters"].items()))
        terms.append((_("Filters of the table of items"), filters))
    terms.append((_("Price of a label by a person"), money(run.human_cost, run.project.currency)))
    if run.overlap > 1:
        terms.append((_("People asked about an item"), _people_in_words(run)))
    return terms


def _epsilon_in_words(run: Run) -> str:
    if not run.binary:
        return _mean_loss_in_words(run)
    if run.by_expert:
        return _("At most so many labels may differ from the expert's (epsilon)")
    if run.reference == Run.Reference.SETTLED:
        return _("At most so many labels may differ from what two people, and a third, give (epsilon)")
    return _("At most so many labels may differ from people's (epsilon)")


def _mean_loss_in_words(run: Run) -> str:
    if run.by_expert:
        return _("Mean loss against the expert's labels, at most (epsilon)")
    if run.reference == Run.Reference.SETTLED:
        return _("Mean loss against what two people, and a third, give, at most (epsilon)")
    return _("Mean loss against people's labels, at most (epsilon)")


def _reference_in_words(run: Run) -> list[tuple[str, str]]:
    if run.reference == Run.Reference.PERSON:
        return _roster_in_words(run)
    terms = [(_("Whose label is right"), str(run.get_reference_display())), *_roster_in_words(run)]
    if run.by_expert:
        terms += [
            *_experts_in_words(run),
            (_("Price of a label by the expert"), money(run.expert_cost, run.project.currency)),
            (
                _("Share of the asked items that the expert labels in any case"),
                percent(run.recheck_share or NONE),
            ),
            (
                _("Share of people's later labels that the expert looks at, too"),
                percent(run.audit_share or NONE),
            ),
            (
                _("Share of people's labels there that may differ from the expert's"),
                percent(run.accepted_error or NONE),
            ),
        ]
    if run.final_sample is not None:
        terms += [
            (_("Labels by people that the final audit draws"), f"{run.final_sample:,}"),
            (
                _("Share of all items that models may get wrong in the final audit"),
                percent(run.final_models_error or NONE),
            ),
            (
                _("How often the final audit's certificate may be wrong (alpha)"),
                f"{plain(run.final_models_alpha or NONE)} + {plain(run.final_people_alpha or NONE)}",
            ),
        ]
    return terms


def _roster_in_words(run: Run) -> list[tuple[str, str]]:
    rows = run.roster.filter(role=RosterEntry.Role.ANNOTATOR).select_related("user")
    if not rows:
        return []
    shares = ((row.user.username, Fraction(row.share)) for row in rows)
    return [(_("Who labels, each with a share of the items"), _with_shares(shares))]


def _with_shares(shares: Iterable[tuple[str, Fraction]]) -> str:
    parts = ((name, round(Decimal(share.numerator) / share.denominator, 3)) for name, share in shares)
    return ", ".join(f"{name} {percent(part)}" for name, part in parts)


def _experts_in_words(run: Run) -> list[tuple[str, str]]:
    erased = erased_experts(run)
    shares = [(erased.get(name, name), share) for name, share in experts_of(run).shares]
    if len(shares) == 1:
        return [(_("Expert"), shares[0][0])]
    return [
        (_("Experts, each with a share of the items"), _with_shares(shares)),
        (_("Who is right of several experts"), _("The one whose item it is; nobody compares them")),
    ]


def _people_in_words(run: Run) -> str:
    if run.overlap_share == 1:
        return str(run.overlap)
    return _("%(people)s on %(share)s of the items, one on the others") % {
        "people": run.overlap,
        "share": percent(run.overlap_share),
    }


def _in_words(title: str, name: str, params: dict[str, Any]) -> str:
    """With the parameters that were chosen; what was fitted is in the certificate."""
    given = ", ".join(
        f"{key} = {value}" for key, value in params.items() if not isinstance(value, dict | list)
    )
    words = title if title == name else f"{title} ({name})"
    return f"{words}: {given}" if given else words


def _rule_title(name: str) -> str:
    return translated(RULES.get(name).title) if name in RULES else name
