"""How far people agree in a run by people: the figure, from its labels as they are now, and the sentences of
it. Nothing is certified there; this is what is known.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from annotation.common.value_reader import as_text
from annotation.labelling.alike import Alike
from annotation.models import Item, WorkItem
from annotation.review import compared_items
from annotation.review.compared_items import Unit, answers_to, compared_units
from annotation.templatetags.hypac import number, percent
from routing.core.reference.estimate import CONFIDENCE, overlap_disagreement
from routing.core.reference.overlap import SharedItem, one_pair
from routing.models import Run
from routing.runs.two_people import rounded_outwards

SECOND = 1
"""The slot of a work item that only items have of which several people are asked."""

NOTHING_KNOWN: Mapping[str, Any] = {"items": 0}


def people_agreement(run: Run) -> dict[str, Any]:
    """As plain JSON: `asked`, the items of the run; `items` that were put to several people, of which `used`
    are looked at, all or a random sample; on how many of these two people `differ`, how many are `unknown` as
    fewer than two answered; `estimate`, `low` and `high` in [0, 1] of all items of the run, None where
    nothing is known. The range is exact for a simple random sample, which `used` may not quite be where
    answers are long (`compared_units`).

    Which items are put to several people is decided by a hash, so that they are a simple random sample of the
    run's. Two answers differ where their stored forms do and, as with boxes, the run's loss finds a
    difference. Of more than two answers one pair counts, chosen by a hash. What a reviewer decided is no
    person's answer.
    """
    several = WorkItem.objects.filter(batch=run.routed_batch_id, slot=SECOND)
    asked = list(several.values_list("batch_id", "item_id"))
    units = sorted(compared_units(run.project, asked, secret=run.salt))
    names = dict(
        Item.objects.filter(pk__in=[item for _, item in units]).values_list("pk", "external_id").iterator()
    )
    said: dict[Unit, dict[int, str]] = defaultdict(dict)
    rows = answers_to(units).values_list("work_item__batch", "item", "work_item__slot", "value")
    for batch, item, slot, value in rows.iterator(chunk_size=2_000):
        said[batch, item][slot] = as_text(value)
    shared = [
        SharedItem(names[unit[1]], tuple(text for _, text in sorted(said[unit].items())))
        for unit in units
        if unit[1] in names  # else it is removed at this moment
    ]
    pairs = [pair for pair in one_pair(shared, salt=run.salt) if pair is not None]
    alike = Alike(run.project, batch=run.routed_batch_id)
    differ = sum(first != second and not alike.by_loss(first, second) for first, second in pairs)
    unknown = len(shared) - len(pairs)
    share = overlap_disagreement(
        pool_size=run.pool_size, pairs=len(shared), different=differ, unknown=unknown
    )
    return {
        "asked": run.pool_size,
        "items": len(asked),
        "used": len(shared),
        "differ": differ,
        "unknown": unknown,
        "estimate": share.estimate if pairs and not math.isnan(share.estimate) else None,
        "low": share.low if pairs else None,
        "high": share.high if pairs else None,
    }


def nothing_certified() -> str:
    """What a delivery of people's labels promises."""
    return _(
        "People labelled these items, and no model did. Nothing is certified about them: there is no draw by "
        "which mistakes that most people make alike could be counted."
    )


def agreement_in_words(figure: Mapping[str, Any]) -> list[str]:
    """The figure in sentences, in the language that is on."""
    if not figure["items"]:
        return [
            _(
                "How often two of these people differ is not known: each item was put to one of them. To "
                "learn it, have two people label a share of the items."
            )
        ]
    used = figure.get("used", figure["items"])  # deliveries of before have looked at all
    values = {"used": number(used), "items": number(figure["items"])}
    if figure["estimate"] is None and used < figure["items"]:
        return [
            _(
                "How often two of these people differ is not known yet: none of the %(used)s items that are "
                "looked at (of %(items)s) has two answers."
            )
            % values
        ]
    if figure["estimate"] is None:
        return [
            _(
                "How often two of these people differ is not known yet: no item that was put to several of "
                "them has two answers."
            )
        ]
    differ, known = figure["differ"], used - figure["unknown"]
    if used < min(figure["items"], compared_items.MAX_ITEMS):
        counted = _(
            "Counted on %(known)s items with answers by two people, on %(differ)s of which they differ; "
            "these were drawn at random from the %(items)s that two were asked about, so many as the length "
            "of their answers allows. The range is exact, with %(confidence)s confidence, if people differ "
            "as often where answers are long as where they are short."
        )
    elif used < figure["items"]:
        counted = _(
            "Counted on %(known)s items with answers by two people, on %(differ)s of which they differ; "
            "these were drawn at random from the %(items)s that two were asked about. The range is exact, "
            "with %(confidence)s confidence."
        )
    elif used == figure["asked"]:
        counted = _(
            "Counted on %(known)s items with answers by two people, on %(differ)s of which they differ; two "
            "were asked about every item. The range is exact, with %(confidence)s confidence."
        )
    else:
        counted = _(
            "Counted on %(known)s items with answers by two people, on %(differ)s of which they differ; "
            "which items two were asked about was decided by chance. The range is exact, with %(confidence)s "
            "confidence."
        )
    values |= {"known": number(known), "differ": number(differ)}
    said = [
        _("Two of these people differ on %(share)s (%(low)s to %(high)s) of the %(asked)s items.")
        % {
            "share": percent(figure["estimate"]),
            "low": percent(rounded_outwards(figure["low"], math.floor)),
            "high": percent(rounded_outwards(figure["high"], math.ceil)),
            "asked": number(figure["asked"]),
        },
        counted % {**values, "confidence": percent(CONFIDENCE)},
    ]
    if figure["unknown"]:
        said.append(
            _("A second answer is missing for %(unknown)s more; the range holds whatever it would have been.")
            % {"unknown": number(figure["unknown"])}
        )
    return said
