"""The plan of a run, term by term, in the language of the reader."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.templatetags.hypac import money
from routing.core.bounds import BOUNDS
from routing.core.exact import percent, plain
from routing.core.rules import RULES, split_fixed_sequence
from routing.core.scores import SCORES
from routing.core_language import translated
from routing.models import Run
from routing.runs.plan_options import loss_title


def plan_in_words(run: Run) -> list[tuple[str, str]]:
    people = (
        _("with the probability in the column %(column)s; %(least)s at the least, %(mean)s on average")
        % {"column": run.p_column, "least": plain(run.p_min), "mean": plain(run.p)}
        if run.p_min is not None
        else plain(run.p)
    )
    score_title = translated(SCORES.get(run.score).title) if run.score in SCORES else run.score
    terms = [
        (_("At most so many labels may differ from people's (epsilon)"), percent(run.epsilon)),
        (_("How often that may be missed (alpha)"), percent(run.alpha)),
        (_("What it is promised of (target)"), run.get_target_display()),
        (_("Items (N)"), f"{run.pool_size:,}"),
        (_("Calibration set (m)"), f"{run.m:,}"),
        (_("People are asked with probability (p)"), people),
        (_("How thresholds are chosen (rule)"), f"{_rule_title(run.rule)} ({run.rule})"),
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
    if run.overlap > 1:
        terms.append((_("People asked about an item"), _people_in_words(run)))
    return terms


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
