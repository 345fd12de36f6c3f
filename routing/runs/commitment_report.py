"""What a run has committed to, as pages and programs show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from routing.common.states import OPEN
from routing.models import Commitment, Draw, Run
from routing.models.commitments import BEFORE_DRAW
from routing.runs.beacons import BEACONS
from routing.runs.commitment_queries import document_of
from routing.runs.commitments import waits_for_value
from routing.runs.plan_options import Option


@dataclass(frozen=True)
class CommitmentReport:
    """What there is to show.

    Attributes
    ----------
    commitments
        Those that were made, at most two.
    named
        Where the draw is to come from, as the first commitment says it.
    value
        What it came from; None of this server, and before it was drawn.
    waits
        Whether somebody has to give that value, or have it asked for again.
    address
        Where the value of a beacon can be looked up; "" of others.
    hidden
        Whether the documents are not given out yet (`document_to_show`).
    """

    commitments: Sequence[Commitment]
    named: dict[str, Any]
    value: str | None
    waits: bool
    address: str
    hidden: bool

    @property
    def from_words(self) -> str:
        """Where the draw comes from, in a sentence in the language that is on."""
        kind = self.named.get("kind", Run.DrawFrom.SYSTEM)
        if kind == Run.DrawFrom.NONCE:
            return _(
                "The draw comes from a text that somebody else chooses once the first commitment is shown."
            )
        if kind in BEACONS:
            return _(
                "The draw comes from a value of a public beacon that was not there before %(time)s, after "
                "the first commitment was shown."
            ) % {"time": self.named["time"]}
        return _("The draw comes from this server: that nobody chose it is on trust.")


def commitment_report(run: Run) -> CommitmentReport | None:
    """None of a run that has made no commitment, or not yet."""
    made = list(run.commitments.select_related("run"))
    if not made or made[0].number != BEFORE_DRAW:
        return None
    named = document_of(made[0])["draw_from"]
    randomness = Draw.objects.filter(run=run).values_list("randomness", flat=True).first() or {}
    beacon = BEACONS.get(named["kind"])
    return CommitmentReport(
        made,
        named,
        randomness.get("value"),
        waits_for_value(run),
        beacon.address(named) if beacon else "",
        hidden=run.state in OPEN,
    )


def draw_menu() -> list[Option]:
    """Where the draw may come from, as a menu."""
    about = {
        Run.DrawFrom.SYSTEM: _("At once. That this server did not choose the draw is taken on trust."),
        Run.DrawFrom.NONCE: _(
            "The run shows a hash of what it will draw from, and waits. You pass it on, and type in what the "
            "other one answers: whoever verifies the certificate can ask them."
        ),
        Run.DrawFrom.DRAND: _(
            "The run names a round that comes half a minute later and asks the beacon for it. Anybody can "
            "look it up."
        ),
        Run.DrawFrom.NIST: _("The same with a pulse of the beacon of NIST, one a minute."),
    }
    return [
        Option(
            name=kind.value,
            title=str(kind.label),
            summary=about[kind],
            recommended=kind == Run.DrawFrom.SYSTEM,
        )
        for kind in Run.DrawFrom
    ]
