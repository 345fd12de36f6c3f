"""How often two people differ, from the items of a run's calibration set that several were asked about: the
figure, made once with the certificate from the labels as they were locked, and what pages say of it.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from annotation.common.value_reader import as_text
from annotation.models import Label, Project, WorkItem
from annotation.templatetags.hypac import number, percent
from routing.core.losses.zero_one import ZeroOne
from routing.core.plan import Plan
from routing.core.reference.estimate import CONFIDENCE
from routing.core.reference.overlap import SharedItem, TwoPeople, two_people_differ
from routing.models import DrawItem, Run

FIGURE = "two_people"
"""Name among the figures of a certificate."""


def two_people_of(run: Run, plan: Plan) -> dict[str, Any]:
    """The figure as plain JSON: `items` that were put to several people, on how many the two `differ`, how
    many are `unknown` as fewer than two answered; `estimate`, `low` and `high` in [0, 1] of the pool, None
    where nothing is known.

    Raises LossError where the loss between two labels cannot be computed.
    """
    found = two_people_differ(
        shared_items(run),
        pool_size=run.pool_size,
        salt=run.salt,
        loss=plan.loss_function(),
        p_min=plan.p_min,
    )
    return _plain(found)


def shared_items(run: Run) -> list[SharedItem]:
    """The asked items that were put to several people, in draw order, with what each person had said when the
    labels were locked: a correction from before then counts, a reviewer's decision is no person's answer. Nor
    is that of whoever decides where two differ, and is asked only there: as a third answer it would agree
    with one of them, and hide a part of what differs.
    """
    batch = run.calibration_batch
    if batch is None or batch.locked_at is None:
        raise ValueError("The calibration labels are not locked.")
    several = WorkItem.objects.filter(batch=batch, slot=1).values("item")
    labels = Label.objects.filter(
        work_item__batch=batch, item__in=several, created_at__lte=batch.locked_at
    ).order_by("version")
    if batch.third_decides:
        labels = labels.filter(work_item__slot__lt=2)
    said: dict[int, dict[int, str]] = defaultdict(dict)
    for item, slot, value in labels.values_list("item_id", "work_item__slot", "value").iterator(
        chunk_size=2_000
    ):
        said[item][slot] = as_text(value)
    drawn = DrawItem.objects.filter(draw__run=run, item__in=several).order_by("order")
    return [
        SharedItem(name, tuple(text for _, text in sorted(said[item].items())), probability.normalize())
        for item, name, probability in drawn.values_list("item_id", "item__external_id", "probability")
    ]


def _plain(found: TwoPeople) -> dict[str, Any]:
    share, known = found.share, found.share.asked > found.unknown
    return {
        "items": share.asked,
        "differ": share.observed,
        "unknown": found.unknown,
        "estimate": None if math.isnan(share.estimate) else share.estimate,
        "low": share.low if known else None,
        "high": share.high if known else None,
    }


def sentences_of(run: Run, figures: Mapping[str, Any]) -> list[str]:
    """What is said of it, beside the certificate whose figures these are, in the language that is on."""
    figure = figures.get(FIGURE)
    if run.by_expert:
        return _against_the_expert(run, figures)
    if run.overlap == 1 or (figure and not figure["items"]):
        return [
            _(
                "How often two of our people differ is not known here: no item of the calibration set was "
                "put to two of them. To learn it, have two people label a share of the items in the next "
                "run: settings of the project, “Several people per item”."
            )
        ]
    if not figure:
        return [_("How often two of our people differ was not computed with this result.")]
    if figure["estimate"] is None:
        return [
            _(
                "How often two of our people differ is not known: no item of the calibration set that was "
                "put to several of them has two answers."
            )
        ]
    said = [
        _("Two of our people differ on %(share)s (%(low)s to %(high)s) of the items.")
        % {
            "share": percent(figure["estimate"]),
            "low": percent(rounded_outwards(figure["low"], math.floor)),
            "high": percent(rounded_outwards(figure["high"], math.ceil)),
        },
        _bound_and_blindness(run),
        _(
            "Counted on items of the calibration set, drawn at random, that two people labelled without "
            "seeing each other's answer: they differ on %(differ)s of %(known)s. The range is exact, with "
            "%(confidence)s confidence."
        )
        % {
            "differ": number(figure["differ"]),
            "known": number(figure["items"] - figure["unknown"]),
            "confidence": percent(CONFIDENCE),
        },
    ]
    if figure["unknown"]:
        said.append(
            _("A second answer is missing for %(unknown)s more; the range holds whatever it would have been.")
            % {"unknown": number(figure["unknown"])}
        )
    if run.p_min is not None:
        said.append(
            _(
                "Items were asked about with different probabilities; as many of them count as make this a "
                "sample in which every item had the same chance."
            )
        )
    if run.measured_elsewhere:
        said.append(
            _("Two labels differ where they are not the same text: nobody measures a loss of people.")
        )
    elif run.loss != ZeroOne.name:
        said.append(_("Two labels differ where the loss between them is not 0."))
    return said


def _against_the_expert(run: Run, figures: Mapping[str, Any]) -> list[str]:
    """How often people differ from the expert, where one is the reference."""
    people = figures.get("people", {}).get("all")
    if not people or people["estimate"] is None:
        return []
    return [
        _("People's labels differ from the expert's on %(share)s (%(low)s to %(high)s) of the items.")
        % {
            "share": percent(people["estimate"]),
            "low": percent(rounded_outwards(people["low"], math.floor)),
            "high": percent(rounded_outwards(people["high"], math.ceil)),
        },
        _(
            "Seen on %(differ)s of %(asked)s asked items; on %(shared)s of these the dearest model says the "
            "same as the person. The range is exact, with %(confidence)s confidence."
        )
        % {
            "differ": number(people["differ"]),
            "asked": number(people["asked"]),
            "shared": number(people["shared"]),
            "confidence": percent(CONFIDENCE),
        },
        _("On the other %(caught)s it says something else: a second look finds these.")
        % {"caught": number(people["caught"])},
    ]


def _bound_and_blindness(run: Run) -> str:
    """What the figure says of one label, where it does, and of what it knows nothing."""
    if not run.sorts_labels:
        # With a tolerance, one label may differ from the commonest on more items than two people do.
        return _("Mistakes that most people make alike are not seen.")
    return _(
        "A single label differs from what most of our people would say on at most that share; "
        "mistakes that most people make alike are not seen."
    )


def newest_run(project: Project) -> Run | None:
    """The newest analysed run that has the figure, or without one the newest that is analysed: whose labels
    are locked, so that nobody labels in its calibration set any more.
    """
    analysed = (
        project.runs.filter(certificate__isnull=False).select_related("certificate").order_by("-number")
    )
    told = Q(overlap__gt=1) | Q(reference=Run.Reference.EXPERT)
    return analysed.filter(told).first() or analysed.first()


def rounded_outwards(share: float, rounded: Callable[[float], int]) -> float:
    """An end of a range in whole thousandths, as pages show it, so that what is shown still holds."""
    return float(rounded(round(share * 1000, 9)) / 1000)
