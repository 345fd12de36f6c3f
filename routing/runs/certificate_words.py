"""What a certificate's page says of what it rests on, what it does not promise and what would break it."""

from collections.abc import Sequence

from django.template.defaultfilters import floatformat
from django.utils.translation import gettext as _, ngettext

from annotation.templatetags.hypac import number, percent
from routing.core_language import translated
from routing.models import Run
from routing.runs.covered_items import erased_items_of
from routing.runs.labelled_elsewhere import calibration_labels_from_elsewhere
from routing.runs.personal_data import erased_experts
from routing.runs.queries import RunReport

Reference = Run.Reference


def evidence_of(run: Run, report: RunReport) -> list[str]:
    """From which labels it follows, in paragraphs."""
    return [_drawn(run, report), *([_missing(run, report)] if report.unanswered else [])]


def _drawn(run: Run, report: RunReport) -> str:
    drawn = (
        _("%(drawn)s of %(pool)s items were drawn at random, and people were asked about %(asked)s of them.")
        if calibration_labels_from_elsewhere(run)
        else _(
            "%(drawn)s of %(pool)s items were drawn at random, and people were asked about %(asked)s of them "
            "without seeing any answer of a model."
        )
    )
    said = [drawn % {"drawn": number(run.m), "pool": number(run.pool_size), "asked": number(report.asked)}]
    if run.reference == Reference.SETTLED:
        said.append(_("Two people labelled each of these, and a third those on which they differ."))
    if run.by_expert and report.expert:
        said.append(
            _(
                "The expert labelled, not knowing why, those on which annotator and models do not all say "
                "the same, and %(rechecked)s in any case: %(seen)s in all."
            )
            % {"rechecked": number(report.expert.rechecked), "seen": number(report.expert.seen)}
        )
    said.append(_observed(run, report))
    return " ".join(filter(None, said))


def _observed(run: Run, report: RunReport) -> str:
    if report.observed_errors is None:
        return ""
    observed = floatformat(report.observed_errors)
    if not report.binary or report.allowed_errors is None:
        return _(
            "With the chosen thresholds their loss against people's labels on these came to %(observed)s."
        ) % {"observed": observed}
    values = {"observed": observed, "allowed": number(report.allowed_errors)}
    if run.by_expert and report.expert and report.expert.weight > 1:
        said = _(
            "What the chosen policy makes of these differs from the expert's labels on %(observed)s, each "
            "counted %(weight)s times where annotator and models agree; the test allowed %(allowed)s."
        )
        return said % {**values, "weight": report.expert.weight}
    if run.by_expert:
        said = _(
            "What the chosen policy makes of these differs from the expert's labels on %(observed)s; "
            "the test allowed %(allowed)s."
        )
    elif run.reference == Reference.SETTLED:
        said = _(
            "With the chosen thresholds the models differed from what these people gave on %(observed)s of "
            "these; the test allowed %(allowed)s."
        )
    else:
        said = _(
            "With the chosen thresholds the models differed from people on %(observed)s of these; "
            "the test allowed %(allowed)s."
        )
    return said % values


def _missing(run: Run, report: RunReport) -> str:
    count = report.unanswered or 0
    if run.by_expert:
        said = ngettext(
            "Of %(shown)s of the asked items the annotator gave no answer. It counts as an error wherever "
            "people would label it.",
            "Of %(shown)s of the asked items the annotator gave no answer. They count as errors wherever "
            "people would label them.",
            count,
        )
    else:
        said = ngettext(
            "%(shown)s of the asked items could be labelled by nobody. It counts as an error of the models.",
            "%(shown)s of the asked items could be labelled by nobody. They count as errors of the models.",
            count,
        )
    return said % {"shown": number(count)}


def erased_in_words(run: Run) -> list[str]:
    """What was erased since the certificate was made, which itself stays byte for byte."""
    said = []
    if erased := erased_experts(run):
        words = ngettext(
            "The name of the expert was erased: here it is %(name)s. The certificate, its plan and "
            "files of deliveries still have the name: their hashes are known outside and must go on fitting.",
            "The names of experts were erased: here they are %(name)s. The certificate, its plan and "
            "files of deliveries still have the names: their hashes are known outside and must go on "
            "fitting.",
            len(erased),
        )
        said.append(words % {"name": ", ".join(sorted(erased.values()))})
    if count := erased_items_of(run).count():
        words = ngettext(
            "The content of %(count)s item that it covers was erased since. Its name, labels and hashes are "
            "kept, so that the certificate can still be recomputed.",
            "The content of %(count)s items that it covers was erased since. Their names, labels and hashes "
            "are kept, so that the certificate can still be recomputed.",
            count,
        )
        said.append(words % {"count": number(count)})
    return said


def limitations_of(
    run: Run, beside: str, people: Sequence[str] = (), how_labelled: Sequence[str] = ()
) -> list[str]:
    """What nobody is promised by a certificate of this run.

    `people` says what is known of how often people differ, or err, `how_labelled` what they could see
    meanwhile.
    """
    target = {
        Run.Target.DATASET: _("It says nothing of items that were added after the run had been started."),
        Run.Target.POOL: _("It says nothing of items that were added after the run had been started."),
        Run.Target.POPULATION: _(
            "It holds for items from the same source alone, which the same models answer."
        ),
    }[Run.Target(run.target)]
    group = (
        _(
            "It speaks about all items together. Of one kind of label, or of a group of items, a larger "
            "share may differ from what the expert would say."
        )
        if run.by_expert
        else _(
            "It speaks about all items together. Of one kind of label, or of a group of items, a larger "
            "share may differ from what people would say."
        )
    )
    return [
        translated(beside),
        *([" ".join(people)] if people else []),
        *([" ".join(how_labelled)] if how_labelled else []),
        _bad_luck(run),
        group,
        target,
        _("The savings are an account of prices and counts. They are not certified."),
    ]


def _bad_luck(run: Run) -> str:
    if not run.alpha_spent:
        return _(
            "It may be wrong by bad luck of the draw, but at most with probability %(alpha)s (alpha)."
        ) % {"alpha": percent(run.alpha, 4)}
    return _(
        "It may be wrong by bad luck of the draw, but at most with probability %(total)s: %(alpha)s of this "
        "run (alpha), and the rest of earlier draws on these items."
    ) % {"total": percent(run.alpha_with_earlier, 4), "alpha": percent(run.alpha, 4)}


def what_breaks_it(run: Run) -> list[str]:
    """What makes it say more than is true, found out by HyPAC or not."""
    said = [
        _(
            "Labels come from another model, version or prompt than the plan names. HyPAC refuses to route "
            "by such answers; labels that are changed after the delivery it cannot see."
        ),
        _(
            "Epsilon, alpha or the thresholds are chosen again once the result is known. Another look needs "
            "a run of its own, with its own share of alpha."
        ),
    ]
    changed = _(
        "A label of the calibration set is changed after the analysis. The run is then marked invalid."
    )
    seen = _("Whoever labelled the calibration set had seen what the models said. HyPAC hides it until then.")
    if run.measured_elsewhere:
        said.append(
            _(
                "The losses are not what the program gives that the plan names, or it went by more than one "
                "label and one answer. HyPAC cannot see that."
            )
        )
    if run.reference == Reference.SETTLED:
        return [changed, seen, _of_two_people(), *said]
    if run.target == Run.Target.POPULATION:
        return [changed, said[0], seen, _of_later_items(), *said[1:]]
    if not run.by_expert:
        return [changed, said[0], seen, *said[1:]]
    return [
        _(
            "A label of the expert's, or of an annotator's in the calibration set, is changed after it was "
            "locked. The run is then marked invalid."
        ),
        _(
            "The expert had seen what models or annotators said, or why she was asked; or annotators what "
            "models or each other said. HyPAC shows none of it to whoever labels in the run."
        ),
        _(
            "The instructions are changed before everything is labelled. HyPAC refuses to change the "
            "guidelines until then; what people are told elsewhere it cannot see."
        ),
        _(
            "People label the items that are routed to them worse than those of the calibration set. The "
            "audit, where there is one, sounds an alarm when that shows, and the run is marked invalid."
        ),
        *said,
    ]


def _of_later_items() -> str:
    return _(
        "Later items come from elsewhere, or models err more on them. The audit of later items, where there "
        "is one, sounds an alarm when that shows, and the run is marked invalid."
    )


def _of_two_people() -> str:
    return _("The people who label an item had seen each other's answers. HyPAC shows them to neither.")
