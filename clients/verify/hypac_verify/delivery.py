"""The delivered file: each item once, its route by thresholds, scores and tie-breaks, labels and counts
(docs/deliveries.md, "Columns").
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

from hypac_verify.certificate import Checked, sentence
from hypac_verify.committed_files import Said
from hypac_verify.delivered_file import EXPERT, PERSON, SAW, SETTLED_BY, SHOWN, WAITS, Delivered, rows_of
from hypac_verify.draw import entropy_of, pool_hash, salt_of, tie_break
from hypac_verify.reading import Key, Report, Row
from hypac_verify.score_chains import Chain, item_said
from hypac_verify.words import plain


@dataclass
class Counts:
    """Of one file."""

    rows: int = 0
    by_source: Counter[str] = field(default_factory=Counter)
    by_reason: Counter[str] = field(default_factory=Counter)
    passed_on: int = 0
    unseen: int = 0
    no_score: int = 0
    before: int = 0
    people_before: int = 0
    otherwise: int = 0
    later: int = 0
    later_by_people: int = 0


def is_part(card: str | None) -> bool:
    """Whether a data card says that its delivery is a part of the items."""
    return card is not None and "**A part: " in card


class Routes:
    """What the chosen policy says of each item, as far as the first model's score tells it, and what the run
    had committed to of the others'.

    A model without a usable answer passes an item on, which no column shows but U = 1 of the first one.
    """

    def __init__(self, checked: Checked, said: Mapping[str, Said]) -> None:
        self._said = said
        self._policy, self._models = checked.policy, checked.plan.models
        self._names = checked.names
        self._salt = salt_of(entropy_of(checked.document))
        self._expert = checked.by_expert
        document = checked.document
        self._scored = document.get("scored") or document.get("scores", {}).get("scored") or []

    @property
    def known(self) -> bool:
        return self._policy is not None and self._names is not None

    def key(self, row: Delivered) -> Key:
        return row.uncertainty or 0.0, tie_break(self._salt, row.external_id)

    def fault(self, row: Delivered, counts: Counts, *, person_too: bool = False) -> str:
        """Why a row without a label of the draw does not follow from the policy; '' if it may. With
        ``person_too`` a person may stand in a model's place.
        """
        if row.uncertainty is None:
            counts.no_score += 1
            return ""
        allowed, nominal = self._allowed(self.key(row))
        answered = False
        if nominal is None and (sent := self._by_every_score(row)) is not None:
            allowed, nominal = {sent}, sent
            answered = sent < self._models
        if nominal is None:
            counts.unseen += 1
        if row.source is None and answered and row.reason not in WAITS:
            return "it has no label, and the thresholds send it to a model that has answered"
        if row.source is None:
            waits = nominal is None or nominal >= self._models or row.uncertainty == 1.0 or nominal > 0
            return "" if waits else "it has no label, and the thresholds send it to the first model"
        people = {PERSON: self._models, EXPERT: self._models + 2}
        by = people[row.source] if row.source in people else (self._names or []).index(row.source)
        in_place = person_too and by == self._models and any(source < self._models for source in allowed)
        if by not in allowed and not in_place:
            return f"its label is by {row.source!r}, and the thresholds send it to another source"
        counts.passed_on += nominal is not None and by != nominal and nominal < self._models and by in allowed
        return ""

    def _allowed(self, key: Key) -> tuple[set[int], int | None]:
        """Sources that may have labelled an item with this key, and the one that it was sent to, None where
        later models' scores decide. Models from 0, people K, the expert K + 2.
        """
        policy, k = self._policy, self._models
        assert policy is not None  # noqa: S101 - `known` was asked
        last = k + 2 if self._expert else k
        unusable = key[0] == 1.0
        if policy.shape == "slices":
            place = next((i for i, end in enumerate(policy.ends) if key <= end), len(policy.ends) - 1)
            nominal = policy.sources[place]
            if nominal < k:
                return self._passed_on(nominal, last, unusable), nominal
            return ({k, k + 2} if nominal in (k, k + 1) else {k + 2}), nominal
        t = policy.thresholds
        if policy.shape == "first_score":
            nominal = sum(limit is None or key > limit for limit in t)
            return (
                self._passed_on(nominal, last, unusable) if nominal < k else {last}
            ), nominal if nominal < k else last
        first, at = policy.models[0], policy.models[-1]
        if first:
            return {first, at, last}, None
        if t[0] is not None and key <= t[0]:
            return ({0, at, last} if unusable else {0}), 0
        if policy.shape == "own" or t[1] is None or key > t[1]:
            return {last}, last
        return {at, last}, None

    def _by_every_score(self, row: Delivered) -> int | None:
        """Where a policy on every score sends an item; None where a model that it looks at answered only
        after the run's first commitment.
        """
        policy, k, said = self._policy, self._models, self._said.get(row.external_id)
        if policy is None or said is None or len(self._scored) != k:
            return None
        first = None if said.answers[0] is None else (said.answers[0][0], said.u)
        answers = [one if model in policy.models else None for model, one in enumerate(said.answers)]
        item = item_said(row.external_id, [first, *answers[1:]], self._scored, self._salt)
        chain = Chain("", policy.shape, policy.models, None, (policy.thresholds,))
        source, called = chain.source(0, item, item.usable)
        if any(said.answers[model] is None for model in {policy.models[0], *called}):
            return None
        return source if source < k or not self._expert else k + 2

    def _passed_on(self, nominal: int, last: int, unusable: bool) -> set[int]:
        """From its model on; the first one has an answer to every item with U below 1."""
        return {0} if nominal == 0 and not unusable else set(range(nominal, self._models)) | {last}


def check_delivery(
    path: Path,
    name: str,
    checked: Checked,
    card: str | None,
    report: Report,
    audited: Mapping[str, str],
    said: Mapping[str, Said],
) -> set[tuple[str, str | None, str | None]]:
    """One delivered file against certificate, draw, data card, the labels that a final audit drew, and what
    models had said of each item before the draw.
    """
    before, counts, routes = len(report.faults), Counts(), Routes(checked, said)
    drawn = {row.item_id: row for row in checked.rows}
    part_of = is_part(card)
    labels = set[tuple[str, str | None, str | None]]()
    seen, pool, keys, left = set[str](), list[str](), list[Key](), dict(drawn)
    for row in rows_of(path, name):
        where = f"{name}, item {row.external_id!r}"
        if row.external_id in seen:
            report.fault(f"{where}: it stands there twice")
            continue
        seen.add(row.external_id)
        labels.add((row.external_id, row.label, row.source))
        counts.rows += 1
        for fault in _row_faults(row, checked, counts):
            report.fault(f"{where}: {fault}")
        if row.certificate_id is None:
            if row.external_id in drawn:
                report.fault(f"{where}: it was drawn, and no certificate covers it")
            scored = row.uncertainty is not None and row.taken_in is None
            if row.asked or row.p_i is not None or scored:
                report.fault(f"{where}: no certificate covers it, and it has a score or was asked about")
            if row.taken_in is not None and checked.plan.target != "population":
                report.fault(
                    f"{where}: it was taken in after the draw, and the promise is not about new items"
                )
            if row.taken_in is None and row.source in (checked.names or []) and row.run == checked.run:
                report.fault(f"{where}: no certificate covers it, and it has a model's label of this run")
            continue
        if fault := _otherwise_than_said(row, said.get(row.external_id), checked):
            report.fault(f"{where}: {fault}")
        if row.taken_in is not None:
            for fault in _later_faults(row, drawn, checked, routes, counts):
                report.fault(f"{where}: {fault}")
            continue
        pool.append(row.external_id)
        if audited.get(row.external_id, row.label) != row.label:
            report.fault(f"{where}: it does not carry the label that the final audit left it")
        of_draw = left.pop(row.external_id, None)
        if of_draw is not None and of_draw.asked and (fault := _asked_fault(row, of_draw, checked)):
            report.fault(f"{where}: {fault}")
        # An item whose label was asked for and not given goes where its score sends it, as any other.
        if of_draw is None or of_draw.label is None:
            otherwise = _labelled_otherwise(row, checked)
            counts.otherwise += otherwise
            known = routes.known and not otherwise
            told = row.source is None or row.source in {PERSON, EXPERT, *(checked.names or [])}
            # Where the expert did not look, all agree, and her annotator's label stands for the model's.
            agreed = of_draw is not None and of_draw.person is not None and None not in of_draw.answers
            if known and told and (fault := routes.fault(row, counts, person_too=agreed)):
                report.fault(f"{where}: {fault}")
        if row.p_i != (None if of_draw is None else _spelt(of_draw)) or row.asked != (
            of_draw is not None and of_draw.asked
        ):
            report.fault(f"{where}: 'asked' or 'p_i' is not that of the draw")
        if of_draw is not None and (row.uncertainty or 0.0) != of_draw.u:
            report.fault(f"{where}: its uncertainty is not that of the draw")
        if not part_of and of_draw is not None and of_draw.position != len(pool) - 1:
            report.fault(f"{where}: it is not at its place in the pool")
        if checked.plan.target != "population" or of_draw is None:
            keys.append(routes.key(row))
    if (unknown := audited.keys() - set(pool)) and not part_of:
        report.fault(f"{name}: {len(unknown)} items of the final audit are not there")
    _check_whole(name, checked, pool, left, keys, report, part_of=part_of, before=counts.people_before)
    _check_card(name, counts, card, checked, report)
    _say(name, counts, checked, routes, report, holds=len(report.faults) == before, pool=len(pool))
    return labels


def _otherwise_than_said(row: Delivered, said: Said | None, checked: Checked) -> str:
    """Why score or answer are not those that the run had committed to; '' if they are, or came later."""
    if said is None:
        return ""
    if (row.uncertainty or 0.0) != (said.u or 0.0):
        return "its uncertainty is not what was committed to before the draw"
    names = checked.names or []
    answer = said.answers[names.index(row.source)] if row.source in names else None
    if answer is not None and answer[0] != row.label:
        return "its label is not the model's answer (committed.jsonl, answered.jsonl)"
    return ""


def _spelt(row: Row) -> str:
    return plain(Decimal(row.p.numerator) / Decimal(row.p.denominator))


def _row_faults(row: Delivered, checked: Checked, counts: Counts) -> Iterator[str]:
    """What does not fit within one row."""
    if row.shown:
        yield row.shown
    if row.source is None:
        counts.by_reason[row.reason or ""] += 1
        if row.label is not None or not row.reason or row.annotator or row.settled_by:
            yield "a blank with a label or without a reason"
    else:
        counts.by_source[row.source] += 1
        if row.label is None or row.reason is not None:
            yield "a label that is missing or has a reason to be"
        if (row.source in (PERSON, EXPERT)) != (row.annotator is not None) and row.settled_by != "imported":
            yield "'annotator' does not fit its source"
    names = checked.names
    if row.source is not None and names is not None and row.source not in {PERSON, EXPERT, *names}:
        yield f"the certificate knows no source {row.source!r}"
    if row.settled_by is not None and (
        row.settled_by not in SETTLED_BY or row.source not in (PERSON, EXPERT)
    ):
        yield "'settled_by' says something else"
    if row.expert_saw is not None and (row.expert_saw not in SAW or not checked.by_expert):
        yield "'expert_saw' says something else"
    if row.suggestion is not None and not _may_be_suggested(row, checked):
        yield "'suggestion' says something else"
    if row.certificate_id not in (None, checked.certificate_id):
        yield "it names another certificate than this one"
    if row.certificate_id is not None and row.settled_by == "imported":
        yield "its label came with it, and the certificate covers it"
    if row.certificate_id is None and row.source is not None:
        counts.before += 1
        counts.people_before += row.source in (PERSON, EXPERT) and row.settled_by != "imported"
    if row.source in set(names or ()) and checked.run is not None and row.run != checked.run:
        yield "a model's label of another run"


def _may_be_suggested(row: Delivered, checked: Checked) -> bool:
    """Whether a label may say what was shown with it: people gave it in this run, which shows suggestions."""
    return (
        checked.document["provenance"].get("suggestions_shown") is True
        and row.source == PERSON
        and (checked.run is None or row.run == checked.run)
        and row.suggestion in SHOWN
    )


def _later_faults(
    row: Delivered, drawn: Mapping[str, Row], checked: Checked, routes: Routes, counts: Counts
) -> Iterator[str]:
    """What does not fit of an item that was taken in after the draw."""
    counts.later += 1
    if checked.plan.target != "population":
        yield "it was taken in after the draw, and what is promised is not about new items"
    if row.external_id in drawn or row.asked or row.p_i is not None:
        yield "it was taken in after the draw, and stands in it"
    if not routes.known or row.source not in {None, PERSON, EXPERT, *(checked.names or [])}:
        return
    fault = routes.fault(row, counts)
    if row.audited and row.source != PERSON:
        yield "an audit asked people about it, and its label is by nobody"
    elif row.audited:
        counts.later_by_people += 1
    elif fault:
        yield fault


def _labelled_otherwise(row: Delivered, checked: Checked) -> bool:
    """Whether somebody had labelled the item before, so that it was not this run that asked."""
    return row.source in (PERSON, EXPERT) and checked.run is not None and row.run != checked.run


def _asked_fault(row: Delivered, of_draw: Row, checked: Checked) -> str:
    """Why an asked item does not carry the draw's label; '' if it does."""
    if row.source is not None and checked.run is not None and row.run != checked.run:
        return "its label is of another run"
    if of_draw.label is None and row.source in (checked.names or []):
        model = (checked.names or []).index(row.source)
        later = of_draw.called[model : model + 1] == (False,)  # it was asked once the draw was written
        if not later and of_draw.answers[model : model + 1] != (row.label,):
            return "it does not carry the model's answer that the draw has"
    if not checked.by_expert:
        if of_draw.label is not None and (row.label, row.source) != (of_draw.label, PERSON):
            return "it does not carry the label that the draw has"
        if of_draw.label is not None and row.suggestion not in (None, "none"):
            return "people label the draw without a suggestion, and it says that one was shown"
        return (
            "" if of_draw.label is not None or row.source != PERSON else "nobody could label it by the draw"
        )
    if of_draw.label is not None:
        return (
            ""
            if (row.label, row.source) == (of_draw.label, EXPERT)
            else "it does not carry the expert's label"
        )
    if row.source == PERSON and row.label != of_draw.person:
        return "it does not carry its annotator's label"
    return ""


def _check_whole(
    name: str,
    checked: Checked,
    pool: list[str],
    left: dict[str, Row],
    keys: list[Key],
    report: Report,
    *,
    part_of: bool,
    before: int,
) -> None:
    """All items of the pool are there, in its order, and lie where the certificate counts them."""
    if part_of:
        report.unchecked.append(
            f"{name}: a part of the items, as its data card says; what is certified is about all"
        )
        return
    if len(pool) != checked.plan.pool_size or left:
        report.fault(f"{name}: {len(pool)} items of the certificate's {checked.plan.pool_size} are there")
        return
    # How many labels may differ is a share of the whole data set, so none of it may be made up.
    if before < checked.plan.whole_size - checked.plan.pool_size:
        report.fault(
            f"{name}: {before} labels by people from before the run are there, and the plan counts "
            f"{checked.plan.whole_size - checked.plan.pool_size} in the data set"
        )
    if checked.document["pool"]["hash"] != pool_hash(pool):
        report.fault(f"{name}: its items are not those of the pool, in their order (pool.hash)")
    keys.sort()
    if not checked.tested:
        return
    if checked.by_expert:
        slices = checked.document["slices"]
        ends = [tuple(end) for end in slices["ends"][:-1]]
        places = [0, *(bisect_right(keys, end) for end in ends), len(keys)]
        if [second - first for first, second in pairwise(places)] != slices["sizes"]:
            report.fault(f"{name}: its scores do not lie in the slices as the certificate counts them")
    elif checked.plan.rule in ("fixed_sequence", "multi_chain"):
        for chain in checked.document["chains"]:
            for policy in chain["policies"]:
                limits = [tuple(limit) if limit else (-1.0, 0) for limit in policy["thresholds"]]
                places = [0, *(bisect_right(keys, limit) for limit in limits), len(keys)]
                if [second - first for first, second in pairwise(places)] != policy["counts"]:
                    report.fault(f"{name}: its scores do not fit the counts of a policy of {chain['name']!r}")
                    return


PARTIAL = {
    "**This delivery is partial: people have not labelled everything yet.**",
    *(
        "What is certified is a share of the whole, once people have labelled the rest. Of the labels that "
        f"are here so far, a larger share may {more} still to come."
        for more in (
            "be wrong: those by people, which count as right, are",
            "differ from what a person would give: those by people, which count as right, are",
            "differ from what the expert would give: hers are",
        )
    ),
}

"""What a data card says before the sentence of a delivery that is not complete."""


def _check_card(name: str, counts: Counts, card: str | None, checked: Checked, report: Report) -> None:
    """README.md counts what is in the file, and says what the certificate says."""
    if card is None:
        return
    lines = card.splitlines()
    numbers = [f"- Rows: {counts.rows}", f"- Without a label: {counts.by_reason.total()}"]
    for title, found in (("Without a label", counts.by_reason), ("Labels by source", counts.by_source)):
        start = next((i for i, line in enumerate(lines) if line.startswith(f"- {title}:")), None)
        told = set[str]()
        for line in lines[start + 1 :] if start is not None else []:
            if not line.startswith("  - "):
                break
            told.add(line)
        if told != {f"  - {_code(key)}: {number}" for key, number in found.items()}:
            report.fault(f"README.md: '{title}' are not those of {name}")
    for line in (*numbers, f"- Certificate: {checked.certificate_id}", sentence(checked.document)):
        if line not in lines:
            report.fault(
                f"README.md: it does not say {line[:120]!r}, which follows from {name} and certificate"
            )
    for once in ("- Certificate:", "- Rows:"):
        if sum(line.startswith(once) for line in lines) > 1:
            report.fault(f"README.md: {once!r} stands there twice")
    said = sentence(checked.document)
    before = lines[: lines.index(said)] if said in lines else []
    if before and not before[0].startswith("# "):
        report.fault("README.md: its first line is no title")
    invalid = any(line.startswith("**This run is marked invalid") for line in lines)
    # Of a part and of an invalid run more is said, and nothing of it holds.
    if not is_part(card) and not invalid and any(line and line not in PARTIAL for line in before[1:]):
        report.fault("README.md: something else stands between its title and the sentence")
    report.note("Other words of README.md, its title among them, are not checked.")
    if invalid:
        report.fault("README.md: the run is marked invalid; its certificate no longer holds")


def _code(text: str) -> str:
    """As a data card writes what people typed."""
    return "`" + " ".join(text.replace("`", "'").split()) + "`"


def _say(
    name: str,
    counts: Counts,
    checked: Checked,
    routes: Routes,
    report: Report,
    *,
    holds: bool,
    pool: int,
) -> None:
    """What is left open, and what holds."""
    if not routes.known:
        report.unchecked.append(
            f"{name}: the route of each item; the certificate does not say enough of its sources"
        )
    if counts.unseen:
        report.unchecked.append(
            f"{name}: the route of {counts.unseen} items; scores of later models decide it, which no file "
            "here holds"
        )
    if counts.otherwise:
        report.unchecked.append(
            f"{name}: the route of {counts.otherwise} items, whose labels are by people of another run or of "
            "none"
        )
    if counts.no_score:
        report.unchecked.append(f"{name}: the route of {counts.no_score} items, which have no score")
    if counts.passed_on:
        report.notes.append(
            f"{name}: {counts.passed_on} items have a label by a later source than their thresholds say. "
            "A model "
            "without a usable answer passes an item on; that it had none is on trust."
        )
    waiting = sum(counts.by_reason[reason] for reason in WAITS)
    if waiting:
        report.notes.append(
            f"{name} is partial: {waiting} items wait for a label. What is certified holds once they have "
            "one."
        )
    if counts.later:
        report.notes.append(
            f"{name}: {counts.later} items were taken in after the draw. They are not in it: what is "
            "promised of them rests on the certificate's target, that they come from the same source."
        )
    if counts.later_by_people:
        report.notes.append(
            f"{name}: {counts.later_by_people} of these are labelled by people whom an audit asked, in "
            "place of the model that the thresholds name."
        )
    whole, of_run = checked.plan.whole_size, checked.plan.pool_size
    if counted := min(counts.people_before, whole - of_run):
        report.note(
            f"{counted} items were labelled by people before the run. The promise is about {whole} items: "
            f"{of_run} of the run's pool, and {whole - of_run} such, which count as right and are in no test."
        )
    if counts.before > counted:
        report.notes.append(
            f"{name}: {counts.before - counted} labels of items that the certificate does not cover."
        )
    if holds:
        blanks = counts.by_reason.total()
        by = ", ".join(f"{source} {number}" for source, number in sorted(counts.by_source.items()))
        items = f"{counts.rows} items once each, {_of_what(counts, checked, pool, counted)}"
        report.checked.append(f"{name}: {items}; labels by {by or 'nobody'}; {blanks} blank")


def _of_what(counts: Counts, checked: Checked, pool: int, counted: int) -> str:
    """Which items of a file are there, so that no number is taken for that of the promise."""
    if pool == counts.rows == checked.plan.pool_size:
        return "all of the run's pool"
    whole = "" if pool == checked.plan.pool_size else f" of {checked.plan.pool_size}"
    parts = {
        f"of the run's pool{whole}": pool,
        "labelled by people before the run": counted,
        "taken in after the draw": counts.later,
        "that the certificate does not cover": counts.rows - pool - counted - counts.later,
    }
    return ", ".join(f"{number} {what}" for what, number in parts.items() if number)
