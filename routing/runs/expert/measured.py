"""How often people err by what an earlier run with an expert found: told where a person's label is right."""

import json
import math
from dataclasses import dataclass

from django.utils.translation import gettext as _

from annotation.templatetags.hypac import number, percent
from routing.core.reference.estimate import CONFIDENCE
from routing.models import Certificate, Run
from routing.runs.two_people import rounded_outwards


@dataclass(frozen=True)
class MeasuredError:
    """On which share of the items of run `run` people's labels differ from its expert's: `differ` of `asked`
    were seen to, `low` and `high` are the exact ends. `holds`: whether that run is not marked invalid.
    """

    run: int
    differ: int
    asked: int
    estimate: float
    low: float
    high: float
    holds: bool


def last_measured(run: Run) -> MeasuredError | None:
    """What the newest run before this one that had an expert says; None where none did, and where people are
    not right in this one.
    """
    if run.reference != Run.Reference.PERSON:
        return None
    found = Certificate.objects.filter(
        run__project=run.project_id, run__reference=Run.Reference.EXPERT, run__number__lt=run.number
    )
    for certificate in found.select_related("run").order_by("-run__number"):
        people = json.loads(certificate.document)["result"]["people"]
        if people["estimate"] is not None:
            return MeasuredError(
                run=certificate.run.number,
                differ=people["wrong"],
                asked=people["asked"],
                estimate=people["estimate"],
                low=people["low"],
                high=people["high"],
                holds=not certificate.run.invalid_reasons,
            )
    return None


def measured_in_words(run: Run) -> list[str]:
    """The same in sentences, in the language that is on."""
    found = last_measured(run)
    if found is None:
        return []
    said = [
        _(
            "People's error was last measured at %(share)s (%(low)s to %(high)s): in run %(run)s they "
            "differed from its expert on %(differ)s of %(asked)s asked items. The range is exact, with "
            "%(confidence)s confidence, and holds for the items of that run."
        )
        % {
            "share": percent(found.estimate),
            "low": percent(rounded_outwards(found.low, math.floor)),
            "high": percent(rounded_outwards(found.high, math.ceil)),
            "run": found.run,
            "differ": number(found.differ),
            "asked": number(found.asked),
            "confidence": percent(CONFIDENCE),
        }
    ]
    if not found.holds:
        said.append(_("That run was marked invalid since."))
    return said
