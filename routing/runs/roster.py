"""Who labels in a run where that is fixed beforehand: chosen by a manager, checked, stored, carried out.

The salt of the run and the shares say whose each item is (routing.core.reference.roster): of single items
nothing is stored but the work that somebody is asked for.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from django.utils.translation import gettext as _

from annotation.common.ranges import of_items
from annotation.errors import InputError
from annotation.models import Item, Membership, Project, User
from annotation.permissions import ROLES_BY_ACTION, members_who_label
from annotation.ports import routing_port
from routing.core.reference.roster import EXPERT, Roster, RosterError
from routing.core.reference.roster_documents import MOST_ANNOTATORS
from routing.core_language import refusal_in_words
from routing.models import RosterEntry, Run
from routing.runs.plan_fields import PlanFields

Reference = Run.Reference
Role = RosterEntry.Role
OF_ANNOTATORS = re.compile(r"annotator-[0-9]+")
"""How certificates call annotators."""
LONGEST_SHARE = 15
"""Characters of a share as a fraction: certificates hold no numbers that are longer."""


@dataclass(frozen=True)
class People:
    """Who labels in a run.

    Attributes
    ----------
    shares : by user
        Of the work of the annotators, together 1; empty without a roster: whoever is free takes the next.
    experts : by user
        The same of the experts, in the order of their names.
    """

    shares: Mapping[User, Fraction]
    experts: Mapping[User, Fraction]

    @property
    def by_roster(self) -> bool:
        return bool(self.shares)


def people_of(project: Project, fields: PlanFields) -> People:
    """Who labels in a run with these fields: by default everybody who may, as much each.

    Raises InputError, whose `where` is "roster" or "expert", where somebody may not or the shares are none.
    """
    experts = _experts(project, fields)
    if fields.reference == Reference.PERSON and not fields.roster:
        return People({}, experts)
    members = {member.user.username: member for member in _members(project)}
    given = fields.roster or {
        name: None
        for name, member in members.items()
        if member.user not in experts and not _objection(member, fields.reference)
    }
    if not given:
        raise InputError(
            _("Nobody is left to label: invite annotators, or change the roles of members."), where="roster"
        )
    for name in given:
        _refuse(name, members.get(name), experts, fields.reference)
    names = sorted(given)
    shares = _checked_shares({name: given[name] for name in names}, experts, fields.reference)
    return People({members[name].user: shares[name] for name in names}, experts)


def shares_of_experts(fields: PlanFields) -> dict[str, Fraction]:
    """Exact shares of the experts' work by name. Raises InputError, whose `where` is "expert"."""
    return _checked_shares(fields.experts, where="expert")


def store_roster(run: Run, people: People) -> None:
    """Freeze it with the run. Certificates call annotators by numbers, and experts by their names."""
    rows = [
        RosterEntry(run=run, user=user, name=f"annotator-{number}", share=_text(share))
        for number, (user, share) in enumerate(people.shares.items(), start=1)
    ]
    rows += [
        RosterEntry(
            run=run,
            user=user,
            role=Role.EXPERT,
            name=user.username,
            share=_text(share),
        )
        for user, share in people.experts.items()
    ]
    RosterEntry.objects.bulk_create(rows)


def reference_audit_data(run: Run, people: People) -> dict[str, Any]:
    """What the audit trail says of it."""
    told: dict[str, Any] = {} if run.reference == Reference.PERSON else {"reference": run.reference}
    if people.by_roster:
        told["roster"] = {user.username: _text(share) for user, share in people.shares.items()}
    if people.experts:
        told["expert"] = [user.username for user in people.experts]
    if run.suggestions:
        told["suggestions"] = True
    return told


def roster_of(run: Run) -> Roster | None:
    """The annotators of a run; None where whoever is free takes the next item."""
    shares = _stored(run, Role.ANNOTATOR)
    return Roster(run.salt, shares) if shares else None


def experts_of(run: Run) -> Roster:
    """The experts of a run, who share their work as annotators do."""
    return Roster(run.salt, _stored(run, Role.EXPERT), EXPERT)


def annotator_ids(run: Run, role: str = Role.ANNOTATOR) -> dict[str, int]:
    """Name on the roster -> id of the user."""
    return dict(run.roster.filter(role=role).values_list("name", "user"))


def who_is_asked(run: Run) -> Callable[[Sequence[int]], list[list[int]]] | None:
    """For ids of items the ids of the people who label each, by slot; None without a roster."""
    roster = roster_of(run)
    if roster is None:
        return None
    ids = annotator_ids(run)

    def people(items: Sequence[int]) -> list[list[int]]:
        names = names_of(items)
        if run.reference == Reference.SETTLED:
            return [[ids[first], ids[second]] for first, second in roster.pairs(names)]
        return [[ids[name]] for name in roster.annotators(names)]

    return people


def who_is_the_expert(run: Run) -> Callable[[Sequence[int]], list[list[int]]]:
    """For ids of items the ids of the experts whose they are."""
    experts, ids = experts_of(run), annotator_ids(run, Role.EXPERT)
    return lambda items: [[ids[name]] for name in experts.annotators(names_of(items))]


def decider_of(run: Run, item_id: int) -> int | None:
    """Who decides where the two people of an item differ; None where nobody of the roster does."""
    roster = roster_of(run)
    if roster is None or run.reference != Reference.SETTLED:
        return None
    return annotator_ids(run)[roster.deciders(names_of([item_id]))[0]]


def names_of(items: Sequence[int]) -> list[str]:
    """External ids of items, by which hashes know them, in the order given."""
    found = dict(Item.objects.filter(of_items("pk", items)).values_list("pk", "external_id"))
    return [found[item] for item in items]


def may_be_experts(project: Project) -> list[User]:
    """Members who would see neither what models nor what other people said."""
    return [member.user for member in _members(project) if member.role == Membership.Role.ANNOTATOR]


def _members(project: Project) -> list[Membership]:
    return list(members_who_label(project.pk).select_related("user", "project").order_by("user__username"))


def _experts(project: Project, fields: PlanFields) -> dict[User, Fraction]:
    if fields.reference != Reference.EXPERT:
        return {}
    allowed = {user.username: user for user in may_be_experts(project)}
    for name in fields.experts:
        if name not in allowed:
            raise InputError(
                _(
                    "%(name)s cannot be the expert. That is a member with the role of an annotator, who sees "
                    "neither what models answer nor what others label."
                )
                % {"name": name},
                where="expert",
            )
        if OF_ANNOTATORS.fullmatch(name):
            raise InputError(
                _(
                    "Certificates call annotators so: an expert of the name %(name)s would be taken for one "
                    "of them."
                )
                % {"name": name},
                where="expert",
            )
        if words := routing_port().blind_objection(project=project, user=allowed[name]):
            raise InputError(words, where="expert")
    return {allowed[name]: share for name, share in sorted(shares_of_experts(fields).items())}


def _objection(member: Membership, reference: str) -> str:
    """Why a member cannot be on the roster, in a sentence; "" where nothing is in the way."""
    if member.role in ROLES_BY_ACTION["predictions.view"]:
        return _(
            "%(name)s may see what models answer (%(role)s): on the roster are annotators and reviewers."
        ) % {"name": member.user.username, "role": member.get_role_display()}
    if reference != Reference.PERSON and member.role in ROLES_BY_ACTION["review"]:
        # Who sees what the expert says of routed items could tell which of theirs are audited.
        return _(
            "%(name)s may see what others label (%(role)s): where one person's word is not enough, "
            "annotators alone are on the roster."
        ) % {"name": member.user.username, "role": member.get_role_display()}
    return routing_port().blind_objection(project=member.project, user=member.user)


def _refuse(name: str, member: Membership | None, experts: Mapping[User, Fraction], reference: str) -> None:
    if member is None:
        raise InputError(
            _("%(name)s may not label in this project: no active member of that name may.") % {"name": name},
            where="roster",
        )
    if member.user not in experts and (words := _objection(member, reference)):
        raise InputError(words, where="roster")


def _checked_shares(
    given: Mapping[str, Fraction | None],
    experts: Mapping[User, Fraction] | None = None,
    reference: str = "",
    *,
    where: str = "roster",
) -> dict[str, Fraction]:
    """Exact shares by name: as given, or, where nobody has one, equal ones."""
    if len(given) > MOST_ANNOTATORS:
        raise InputError(
            _("%(count)s people are too many: a certificate names at most %(most)s. Choose who labels.")
            % {"count": f"{len(given):,}", "most": f"{MOST_ANNOTATORS:,}"},
            where=where,
        )
    if all(share is None for share in given.values()):
        given = dict.fromkeys(given, Fraction(1, len(given)))
    exact = {name: share for name, share in given.items() if share is not None}
    if missing := [name for name in given if name not in exact]:
        raise InputError(
            _("%(name)s has no share of the work: give everybody one, or nobody.") % {"name": missing[0]},
            where=where,
        )
    if long := [name for name, share in exact.items() if len(_text(share)) > LONGEST_SHARE]:
        raise InputError(
            _("The share of %(name)s is too fine: write a few digits.") % {"name": long[0]}, where=where
        )
    try:
        roster = Roster.of("", exact, experts=[user.username for user in experts or ()])
        if reference == Reference.SETTLED:
            roster.pairs([])
    except RosterError as error:
        raise InputError(refusal_in_words(error), where=where) from None
    return exact


def _stored(run: Run, role: str) -> tuple[tuple[str, Fraction], ...]:
    rows = run.roster.filter(role=role).values_list("name", "share")
    return tuple(sorted((name, Fraction(share)) for name, share in rows))


def _text(share: Fraction) -> str:
    return f"{share.numerator}/{share.denominator}"
