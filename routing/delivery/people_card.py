"""The data card of a delivery of a run by people: what is in it, and how far they agree.

No time, so that it stays the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import override

from routing.delivery.about_data import about_data
from routing.delivery.card import Counts, code_span, erased_in_card, limits_in_card, part_of_card
from routing.delivery.formats.base import Writer
from routing.models import Delivery, Run
from routing.runs.people_agreement import agreement_in_words, nothing_certified


def people_card(
    run: Run,
    counts: Counts,
    writers: Sequence[Writer],
    agreement: Mapping[str, Any],
    *,
    since: Delivery | None = None,
    filters: Mapping[str, str] | None = None,
    columns: Sequence[str] = (),
) -> str:
    """Markdown, as `routing.delivery.card.card`; `agreement` is `people_agreement` of the run."""
    lines = [f"# {code_span(run.project.name)}, run {run.number}", ""]
    if since is not None or filters:
        lines += part_of_card(run, counts, since, filters or {})
    if run.state != Run.State.COMPLETE:
        lines += ["**This delivery is partial: people have not labelled everything yet.**", ""]
    with override("en"):  # the same bytes, whoever asks for them
        lines += [nothing_certified(), "", " ".join(agreement_in_words(agreement)), ""]
    lines += [
        *_chosen(run),
        f"- Rows: {counts.rows}",
        f"- Without a label: {counts.blanks}",
        *(f"  - {code_span(reason)}: {number}" for reason, number in sorted(counts.by_reason.items())),
        *erased_in_card(counts),
        "- Labels by source:",
        *(f"  - {code_span(source)}: {number}" for source, number in sorted(counts.by_source.items())),
        *([f"- Came with their items, of these: {counts.imported}"] if counts.imported else []),
        "",
        *limits_in_card(writers),
        "All rows are as they were at one moment, whatever people did while the files were written.",
        "",
        "`manifest.json` has size and SHA-256 of every other file. There is no certificate to recompute.",
        "",
        *columns,
        *about_data(run, by_source=counts.by_source, blanks=counts.blanks),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _chosen(run: Run) -> list[str]:
    """Which items people were asked about."""
    chosen = run.how_chosen
    among = f"{chosen['found']} items without a label"
    if chosen["filters"]:
        found = (f"{name} = {value}" for name, value in sorted(chosen["filters"].items()))
        among += f" that these filters found: {', '.join(map(code_span, found))}"
    if chosen["sample"] is not None:
        return [f"- People were asked about {chosen['sample']} items, drawn at random from {among}"]
    return [f"- People were asked about {among}"]
