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
from annotation.models import Label, WorkItem
from annotation.templatetags.hypac import number, percent
from routing.core.reference.estimate import CONFIDENCE, overlap_disagreement
from routing.core.reference.overlap import SharedItem, one_pair
from routing.models import Run
from routing.runs.two_people import rounded_outwards

SECOND = 1
"""The slot of a work item that only items have of which several people are asked."""

NOTHING_KNOWN: Mapping[str, Any] = {"items": 0}


def people_agreement(run: Run) -> dict[str, Any]:
    """As plain JSON: `asked`, the items of the run; `items` that were put to several people, on how many two
    of them `differ`, how many are `unknown` as fewer than two answered; `estimate`, `low` and `high` in
    [0, 1] of all items of the run, None where nothing is known.

    Which items are put to several people is decided by a hash, so that they are a simple random sample of the
    run's. Two answers differ where their stored forms do and, as with boxes, the run's loss finds a
    difference. Of more than two answers one pair counts, chosen by
    a hash. What a reviewer decided is no person's answer.
    """
    several = WorkItem.objects.filter(batch=run.routed_batch_id, slot=SECOND)
    names = dict(several.values_list("item_id", "item__external_id"))
    said: dict[int, dict[int, str]] = defaultdict(dict)
    labels = Label.objects.filter(
        work_item__batch=run.routed_batch_id, item__in=several.values("item"), superseded_by__isnull=True
    )
    for item, slot, value in labels.values_list("item_id", "work_item__slot", "value").iterator(
        chunk_size=2_000
    ):
        said[item][slot] = as_text(value)
    shared = [
        SharedItem(name, tuple(text for _, text in sorted(said[pk].items()))) for pk, name in names.items()
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
        "items": len(shared),
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
    if figure["estimate"] is None:
        return [
            _(
                "How often two of these people differ is not known yet: no item that was put to several of "
                "them has two answers."
            )
        ]
    differ, known = figure["differ"], figure["items"] - figure["unknown"]
    counted = (
        _(
            "Counted on %(known)s items with answers by two people, on %(differ)s of which they differ; two "
            "were asked about every item. The range is exact, with %(confidence)s confidence."
        )
        if figure["items"] == figure["asked"]
        else _(
            "Counted on %(known)s items with answers by two people, on %(differ)s of which they differ; "
            "which items two were asked about was decided by chance. The range is exact, with %(confidence)s "
            "confidence."
        )
    )
    said = [
        _("Two of these people differ on %(share)s (%(low)s to %(high)s) of the %(asked)s items.")
        % {
            "share": percent(figure["estimate"]),
            "low": percent(rounded_outwards(figure["low"], math.floor)),
            "high": percent(rounded_outwards(figure["high"], math.ceil)),
            "asked": number(figure["asked"]),
        },
        counted % {"known": number(known), "differ": number(differ), "confidence": percent(CONFIDENCE)},
    ]
    if figure["unknown"]:
        said.append(
            _("A second answer is missing for %(unknown)s more; the range holds whatever it would have been.")
            % {"unknown": number(figure["unknown"])}
        )
    return said
