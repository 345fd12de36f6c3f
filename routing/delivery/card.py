"""The data card of a delivery: what is in it, what is promised, and what is not.

No time, so that it stays the same.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _, override

from annotation.templatetags.hypac import percent
from routing.core.correctness import left_open_by
from routing.delivery.about_data import about_data
from routing.delivery.formats.base import Writer
from routing.labels.page import Page
from routing.models import Delivery, Run
from routing.runs.expert.final import final_certificate_of
from routing.runs.expert.measured import measured_in_words
from routing.runs.expert.report import (
    PeopleRow,
    audit_in_words,
    audit_of,
    people_by_annotator,
    rank_nobody,
)
from routing.runs.given_losses import losses_in_words
from routing.runs.labelled_elsewhere import elsewhere_in_words
from routing.runs.later.report import later_audit_in_words, later_audit_of
from routing.runs.personal_data import erased_experts
from routing.runs.suggestion_counts import suggestions_in_words
from routing.runs.two_people import sentences_of


@dataclass
class Counts:
    """Rows written so far, and items that were looked at for them. `gone`: items of the delivery that this
    one builds on that are no longer in the project. `before`: labels of items that are not in the run's pool.
    `erased`: rows of items whose content was erased.
    """

    rows: int = 0
    items: int = 0
    by_source: Counter[str] = field(default_factory=Counter)
    by_reason: Counter[str] = field(default_factory=Counter)
    imported: int = 0
    before: int = 0
    gone: int = 0
    erased: int = 0

    @property
    def blanks(self) -> int:
        return self.by_reason.total()

    def add(self, page: Page) -> None:
        self.rows += len(page)
        self.items += page.looked_at
        self.erased += sum(page.erased)
        labels, reasons, sources = (page.columns[name] for name in ("label", "reason", "source"))
        rows = zip(labels, reasons, sources, strict=True)
        blank, given = [], []
        for label, reason, source in rows:
            if label is None:
                blank.append(reason or "")
            else:
                given.append(source or "")
        self.by_reason.update(blank)
        self.by_source.update(given)
        imported = page.columns["settled_by"].count("imported")
        self.imported += imported
        covers = zip(labels, page.columns["certificate_id"], strict=True)
        self.before += sum(label is not None and cover is None for label, cover in covers) - imported


def card(
    run: Run,
    counts: Counts,
    writers: Sequence[Writer],
    *,
    since: Delivery | None = None,
    filters: Mapping[str, str] | None = None,
    columns: Sequence[str] = (),
) -> str:
    """Markdown. Names that people typed stand in code spans, so that they are text and nothing else.
    `writers` have written the rows; `since` and `filters` say which part of all items these are; `columns`:
    what the columns mean, in lines.
    """
    document = json.loads(run.certificate.document)
    result = document["result"]
    lines = [f"# {code_span(run.project.name)}, run {run.number}", ""]
    if run.invalid_reasons:
        lines += ["**This run is marked invalid; its certificate no longer holds:**", ""]
        lines += [*(f"- {code_span(reason['words'])}" for reason in run.invalid_reasons), ""]
    part = since is not None or bool(filters)
    if part:
        lines += part_of_card(run, counts, since, filters or {})
    # Rows that wait need not be in a part.
    waits = counts.by_reason["it waits for a person"] or counts.by_reason["it waits for the expert"]
    if waits or (part and run.state != Run.State.COMPLETE):
        lines += ["**This delivery is partial: people have not labelled everything yet.**", ""]
        if result["certified"]:
            lines += [
                "What is certified is a share of the whole, once people have labelled the rest. Of the "
                f"labels that are here so far, a larger share may differ from what {_still_to_come(run)}",
                "",
            ]
    lines += [
        str(result["sentence"]),
        "",
        left_open_by(document),
        "",
        *_erased_experts(run),
        *_about_people(run),
        *_later_items(run),
        *_final_audit(run),
        f"- Certificate: {run.certificate.sha256}",
        *_committed(run),
        f"- Rows: {counts.rows}",
        f"- Without a label: {counts.blanks}",
        *(f"  - {code_span(reason)}: {number}" for reason, number in sorted(counts.by_reason.items())),
        *erased_in_card(counts),
        "- Labels by source:",
        *(f"  - {code_span(source)}: {number}" for source, number in sorted(counts.by_source.items())),
        *(
            [f"- Came with their items, of these, and are covered by no certificate: {counts.imported}"]
            if counts.imported
            else []
        ),
        *(
            [f"- Labelled before the run, of these, and not covered by its certificate: {counts.before}"]
            if counts.before and run.reference != Run.Reference.PERSON
            else []
        ),
        "",
        *limits_in_card(writers),
        "All rows are as they were at one moment, whatever people did while the files were written.",
        "",
        "To recompute the certificate, in a checkout of HyPAC: "
        "`.venv/bin/python -m routing.core.verify CERTIFICATE DRAW`, with the paths of this delivery's "
        "`certificate.json` and `draw.jsonl`"
        + (", and `--final` with that of its `final_audit.json`" if final_certificate_of(run) else "")
        + ". A downloaded file has project, run and delivery before its name.",
        "",
        "To check all of these files with nothing of HyPAC installed: `hypac-verify FOLDER`, a small program "
        "of Python's standard library alone, in `clients/verify` of HyPAC's repository.",
        "",
        *columns,
        *about_data(run, by_source=counts.by_source, blanks=counts.blanks),
    ]
    return "\n".join(lines).rstrip() + "\n"


def erased_in_card(counts: Counts) -> list[str]:
    if not counts.erased:
        return []
    return [
        f"- Content erased on request, of these: {counts.erased}. Their rows have name and label alone; "
        "text, image and columns are gone. They count in whatever is certified: hashes, labels and scores "
        "are kept."
    ]


def _erased_experts(run: Run) -> list[str]:
    if not (erased := erased_experts(run)):
        return []
    now = " and ".join(map(code_span, sorted(erased.values())))
    return [
        f"The name of an expert was erased: labels are by {now}. Certificate and plan keep the name, as "
        "their hashes are known.",
        "",
    ]


def _committed(run: Run) -> list[str]:
    """What the run showed before its draw and before its first label: whoever noted them can compare."""
    when = ("the draw", "the first label")
    return [
        f"- Committed to before {what}: {one.sha256}"
        for what, one in zip(when, run.commitments.order_by("number"), strict=False)
    ]


def _final_audit(run: Run) -> list[str]:
    found = final_certificate_of(run)
    if found is None:
        planned = f"A final audit of {run.final_sample} labels was planned, and has not been made."
        return [] if run.final_sample is None else [planned, ""]
    with override("en"):  # the same bytes, whoever asks for them
        broken = found.broken_by
    void = f" **It is no longer valid: {' '.join(map(code_span, broken))}**" if broken else ""
    return [f"Final audit: {found.sentence}{void}", "", f"- Certificate of the final audit: {found.sha256}"]


def _later_items(run: Run) -> list[str]:
    """What was taken in after the pool was frozen, and what the audit of it has found."""
    if not run.later_size:
        return []
    with override("en"):  # the same bytes, whoever asks for them
        audit = later_audit_in_words(run, later_audit_of(run))
    came = f"{run.later_size:,} items came after the pool was frozen and are in this run, too."
    if run.audit_alarm_at:
        covered = "An audit found more errors on them than were certified: they carry no certificate."
    elif run.invalid_reasons:
        covered = "As this run is marked invalid, no certificate covers them."
    else:
        covered = "They are covered as long as they come from the same source and the same models answer."
    told = (
        "Their rows have the number of the intake in `taken_in`; it is empty in those of the pool, which the "
        "certificate counts. `audited` says whether the label is one that people gave for the audit, where "
        "the thresholds name a model."
    )
    return [" ".join([came, covered, told, *audit]), ""]


def _still_to_come(run: Run) -> str:
    if run.by_expert:
        return "the expert would give: hers are still to come."
    return "a person would give: those by people, which count as right, are still to come."


_COLUMN_OF_SUGGESTIONS = (
    "The column `suggestion` says it of each label that people gave in this run: `none` where nothing was "
    "shown, `taken` where it is the same as what was shown, `other` where it is not. It is empty of labels "
    "from another program."
)


def _about_people(run: Run) -> list[str]:
    """How often people differ or err, and whether they saw what models answered; with an expert also by
    annotator, and what her audit has found.
    """
    with override("en"):  # the same bytes, whoever asks for them
        said = [
            *sentences_of(run, run.certificate.figures),
            *measured_in_words(run),
            *suggestions_in_words(run),
            *elsewhere_in_words(run),
            *losses_in_words(run),
        ]
        if run.suggestions:
            said.append(_COLUMN_OF_SUGGESTIONS)
        lines = [" ".join(said), ""] if said else []
        if not run.by_expert:
            return lines
        audit = audit_of(run)
        return [
            *lines,
            *_by_annotator(people_by_annotator(run.certificate)),
            "Audit of people's later labels: " + " ".join(audit_in_words(run, audit)),
            "",
        ]


def _by_annotator(rows: Sequence[PeopleRow]) -> list[str]:
    if not rows:
        return []
    return [
        "The same by annotator, by the names of the certificate. " + rank_nobody(),
        "",
        *(
            f"- {code_span(row.name)}: differs on {row.differ} of {row.asked} asked items, on {_share(row)} "
            f"of all of theirs; a second look finds {row.caught}, the dearest model shares {row.shared}"
            for row in rows
        ),
        "",
    ]


def _share(row: PeopleRow) -> str:
    between = f"{percent(row.low)} to {percent(row.high)}"
    return between if row.estimate is None else f"{percent(row.estimate)} ({between})"


def part_of_card(run: Run, counts: Counts, since: Delivery | None, filters: Mapping[str, str]) -> list[str]:
    with override("en"):  # the same bytes, whoever asks for them
        lines = [f"**{part_words(run, rows=counts.rows, items=counts.items)}**", ""]
    if since is not None:
        lines += [
            f"It holds what differs from delivery {since.number} of run {since.run.number}: items whose "
            "label, its source or its certificate is another one now, or is gone, and items that were not in "
            "it. Each row takes the place of that with the same `external_id` there.",
            "",
        ]
    if counts.gone:
        lines += [
            f"Items of that delivery that are no longer in the project, and of which nothing stands here: "
            f"{counts.gone}. A delivery of all items has none of them.",
            "",
        ]
    if filters:
        chosen = (f"{name} = {value}" for name, value in sorted(filters.items()))
        lines += [
            "It holds the items that these filters found:",
            "",
            *(f"- {code_span(text)}" for text in chosen),
            "",
        ]
    return lines


def part_words(run: Run, *, rows: int, items: int) -> str:
    """What to know of a delivery that is a part of all items. `run` has its certificate, if any."""
    share = _("A part: %(rows)s of %(items)s items.") % {"rows": f"{rows:,}", "items": f"{items:,}"}
    if run.by_people or not run.certificate.certified:
        return share
    promise = _(
        "What is certified is about all %(pool)s items of the run together, not about this part: of the "
        "labels in it, a larger share may differ from what a person would give."
    )
    if run.by_expert:
        promise = _(
            "What is certified is about all %(pool)s items of the run together, not about this part: of the "
            "labels in it, a larger share may differ from what the expert would give."
        )
    promise = promise % {"pool": f"{run.pool_size:,}"}
    return f"{share} {promise}"


def limits_in_card(writers: Sequence[Writer]) -> list[str]:
    """Of each format what it cannot carry; those that share their sentences stand together."""
    together: dict[tuple[str, ...], list[str]] = {}
    with override("en"):  # the same bytes, whoever asks for them
        for writer in writers:
            sentences = tuple(f"{limit.words}{_counted(writer, limit.kind)}" for limit in writer.limits)
            together.setdefault(sentences, []).append(f"`{writer.file_name}`")
    lines = []
    for sentences, names in together.items():
        said = " and ".join(names)
        if sentences:
            lines += [f"What {said} cannot carry:", "", *(f"- {sentence}" for sentence in sentences), ""]
        else:
            lines += [f"{said} {'holds' if len(names) == 1 else 'hold'} every value as it is.", ""]
    return lines


def _counted(writer: Writer, kind: str) -> str:
    if (count := writer.counts.get(kind)) is None:
        return ""
    return f" Here: {f'{count:,} of them' if count else 'none'}."


def code_span(text: str) -> str:
    """A code span whose content cannot end it."""
    return "`" + " ".join(text.replace("`", "'").split()) + "`"
