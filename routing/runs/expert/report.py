"""What the page of a run with an expert shows beside what all runs show."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import Any

from django.template.defaultfilters import floatformat
from django.utils.translation import gettext as _, ngettext

from annotation.templatetags.hypac import number, percent
from routing.core.reference.audit import ALARM
from routing.core.reference.sources import CHECKED, EXPERT, PERSON
from routing.core.reference.ways import ALONE, EVERYTHING, PEOPLES_WORD, WITH_PEOPLE
from routing.core_language import stored_in_words
from routing.models import Certificate, Run
from routing.runs.audits import AuditState, computing_in_words
from routing.runs.expert.analyse import PEOPLE, REFERENCES, SLICES
from routing.runs.expert.audit import audit_state
from routing.runs.expert.final import FinalState, final_state
from routing.runs.expert.requests import count_undecided
from routing.runs.personal_data import with_names_of_today
from routing.runs.two_people import rounded_outwards


@dataclass(frozen=True)
class Stretch:
    """Who labels the items up to this uncertainty of the first model, above the stretch before; `up_to` is
    None for the last.
    """

    up_to: float | None
    who: str


@dataclass(frozen=True)
class PeopleRow:
    """How often somebody differs from the expert: `differ` of `asked` items, as a share of all of theirs with
    its exact interval; `estimate` is None where nothing was seen. Of these the dearest model says something
    else on `caught`, and the same on `shared`.
    """

    name: str
    differ: int
    asked: int
    estimate: float | None
    low: float
    high: float
    caught: int
    shared: int


@dataclass(frozen=True)
class ReferenceRow:
    """A reference on the labels of this run; `cost` in the currency of the project, else as of
    `routing.core.reference.beside.Beside`.
    """

    name: str
    title: str
    found: bool
    cost: Decimal
    wrong: int
    seen: int
    share: float


@dataclass(frozen=True)
class ExpertReport:
    """Of a run with an expert.

    Attributes
    ----------
    stretches
        Who labels what, where the policy goes by slices of the first model's score; else empty.
    everybody, annotators
        How often people differ from the expert; None and empty where the certificate tells nothing.
    audit, audit_words
        None before the routing, and where there is none; and how it stands, in sentences.
    rechecked, seen, weight
        n_B, how many asked items the expert was to label, and how often a difference counts where annotator
        and models agree.
    references
        What other references would have come to on the same labels.
    final
        The final audit; None before the routing, and where none is planned.
    """

    stretches: list[Stretch]
    everybody: PeopleRow | None
    annotators: list[PeopleRow]
    audit: AuditState | None
    audit_words: list[str]
    rechecked: int
    seen: int
    weight: int
    references: list[ReferenceRow]
    final: FinalState | None = None

    @property
    def final_in_words(self) -> str:
        """What the final audit found, in the language of the reader; "" before its analysis."""
        found = self.final and self.final.certificate
        if not found:
            return ""
        return stored_in_words(with_names_of_today(found.audit.run, found.messages), found.sentence)

    @property
    def all_rows(self) -> list[PeopleRow]:
        return [*([self.everybody] if self.everybody else []), *self.annotators]


def expert_report(
    run: Run, certificate: Certificate, names: Sequence[str], document: Mapping[str, Any]
) -> ExpertReport:
    """`names` are those of the models, `document` is the certificate's."""
    people = people_differences(certificate)
    audit = audit_of(run)
    reference = document["reference"]
    usernames = dict(run.roster.values_list("name", "user__username"))
    return ExpertReport(
        stretches=_stretches(certificate, names) if certificate.shape == SLICES else [],
        everybody=_row("", people["all"]) if people else None,
        annotators=[
            replace(row, name=usernames.get(row.name, row.name)) for row in people_by_annotator(certificate)
        ],
        audit=audit,
        audit_words=audit_in_words(run, audit),
        rechecked=reference["rechecked"],
        seen=document["result"]["seen"],
        weight=reference["weight"] if reference["rechecked"] < document["draw"]["asked"] else 1,
        references=_references(run, certificate),
        final=final_state(run) if run.routed_at else None,
    )


def audit_of(run: Run) -> AuditState | None:
    """None before the routing, and where there is no audit."""
    return audit_state(run) if run.routed_at and run.audit_share else None


def audit_in_words(run: Run, state: AuditState | None) -> list[str]:
    """How the audit of people's later labels stands, and what of them is not decided yet, in sentences in the
    language that is on.
    """
    return [*_audit_in_words(run, state), *_undecided_in_words(run)]


def _undecided_in_words(run: Run) -> list[str]:
    count = count_undecided(run)
    words = ngettext(
        "Of %(count)s item it is not decided yet whether the expert labels it, too: the loss of its label is "
        "still being computed.",
        "Of %(count)s items it is not decided yet whether the expert labels them, too: the losses of their "
        "labels are still being computed.",
        count,
    )
    return [words % {"count": number(count)}] if count else []


def _audit_in_words(run: Run, state: AuditState | None) -> list[str]:
    accepted = percent(run.accepted_error or 0)
    if not run.audit_share:
        return [
            _(
                "There is no audit: that people label the items that are routed to them as they label those "
                "of the calibration set is taken on trust."
            )
        ]
    if state is None:
        return [
            _(
                "The audit begins with the routing: the expert looks at %(share)s of people's labels, too, "
                "and it warns where they err on more than %(accepted)s."
            )
            % {"share": percent(run.audit_share), "accepted": accepted}
        ]
    counts = {name: number(getattr(state, name)) for name in ("audited", "marked", "differ")}
    alarm = (
        _("It sounded an alarm: what was still open went to the expert, and the run is marked invalid.")
        if run.audit_alarm_at
        else _("It has sounded no alarm.")
    )
    return [
        _("The expert looked at %(audited)s of %(marked)s items that were marked, and differs on %(differ)s.")
        % counts,
        _("The evidence that people err on more than %(accepted)s is %(wealth)s; at %(alarm)s it warns.")
        % {"accepted": accepted, "wealth": floatformat(state.wealth, 1), "alarm": floatformat(ALARM)},
        alarm,
        *computing_in_words(state),
    ]


def _references(run: Run, certificate: Certificate) -> list[ReferenceRow]:
    titles = {
        WITH_PEOPLE: _("An expert with people"),
        PEOPLES_WORD: _("One person's word"),
        ALONE: _("An expert alone with the models"),
        EVERYTHING: _("An expert for everything"),
    }
    return [
        ReferenceRow(**{**row, "title": titles[row["name"]], "cost": round(Decimal(row["cost"]), 2)})
        for row in certificate.figures.get(REFERENCES, [])
    ]


def people_differences(certificate: Certificate) -> dict[str, Any]:
    """How often people differ from the expert, as it was computed with the result; empty where it was not."""
    found: dict[str, Any] = certificate.figures.get(PEOPLE) or {}
    return found


def people_by_annotator(certificate: Certificate) -> list[PeopleRow]:
    """By the names of the roster, as the certificate has them."""
    return [
        _row(name, row) for name, row in sorted(people_differences(certificate).get("annotators", {}).items())
    ]


def rank_nobody() -> str:
    """What to know of figures by annotator."""
    return _("A few dozen items rank nobody: do not choose people by these figures.")


def _row(name: str, found: Mapping[str, Any]) -> PeopleRow:
    """The ends of the range in whole thousandths, as they are shown, so that it still holds."""
    ends = {
        "low": rounded_outwards(found["low"], math.floor),
        "high": rounded_outwards(found["high"], math.ceil),
    }
    return PeopleRow(name, **{**found, **ends})


def source_names(models: Sequence[str]) -> list[str]:
    """Of all sources, the models first, in the language of the reader."""
    after = {
        PERSON: _("People"),
        CHECKED: _("People, and the expert where %(model)s says otherwise") % {"model": models[-1]},
        EXPERT: _("The expert"),
    }
    return [*models, *(after[place] for place in (PERSON, CHECKED, EXPERT))]


def _stretches(certificate: Certificate, models: Sequence[str]) -> list[Stretch]:
    names = source_names(models)
    groups = [list(group) for _, group in groupby(certificate.thresholds, key=lambda one: one["source"])]
    last = len(groups) - 1
    return [
        Stretch(None if place == last else float(group[-1]["u"]), names[group[-1]["source"] - 1])
        for place, group in enumerate(groups)
    ]
