"""What a certificate does not say, and what would break it, in words."""

from django.utils.translation import gettext as _

from annotation.templatetags.hypac import percent
from routing.models import Run


def limits_of(run: Run) -> list[str]:
    """What nobody is promised by a certificate of this run."""
    target = {
        Run.Target.DATASET: _(
            "It counts what people labelled as right. Their own mistakes are not seen, and come on top."
        ),
        Run.Target.POOL: _(
            "It takes what people answered for the drawn items as the truth. Their mistakes are not seen."
        ),
        Run.Target.POPULATION: _(
            "It holds for items from the same source alone, which the same models answer."
        ),
    }[Run.Target(run.target)]
    later = (
        []
        if run.target == Run.Target.POPULATION
        else [_("It says nothing of items that were added after the run had been started.")]
    )
    return [
        _("It may be wrong by bad luck of the draw, but at most with probability %(alpha)s (alpha).")
        % {"alpha": percent(run.alpha, 4)},
        _(
            "It speaks about all items together. One kind of label or a group of items may be wrong more "
            "often."
        ),
        target,
        *later,
        _("The savings are an account of prices and counts. They are not certified."),
    ]


def what_breaks_it() -> list[str]:
    return [
        _("A label of the calibration set is changed after the analysis. The run is then marked invalid."),
        _(
            "Labels come from another model, version or prompt than the plan names. HyPAC refuses to route "
            "by such answers; labels that are changed after the delivery it cannot see."
        ),
        _("Whoever labelled the calibration set had seen what the models said. HyPAC hides it until then."),
        _(
            "Epsilon, alpha or the thresholds are chosen again once the result is known. Another look needs "
            "a run of its own, with its own share of alpha."
        ),
    ]
