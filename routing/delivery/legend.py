"""What the columns mean that a delivery adds to those of the items, for its data card; the table in
docs/deliveries.md says the same (tests/routing/delivery/test_legend.py).
"""

import json
from collections.abc import Sequence

from routing.labels.page import DeliveryInfo, added_names
from routing.models import Run
from routing.sources.hidden_columns import hidden_columns

COLUMN_WORDS: dict[tuple[str, ...], str] = {
    ("external_id",): ("the item's id in the imported data"),
    ("label", "label_name"): (
        "the label as it is stored; of choices the key, and the name as it is now: of a label that was "
        "merged or split that of the one in its place"
    ),
    ("source",): ("name of the model that gave the label, `person` or `expert`; empty without a label"),
    ("annotator",): ("username of the person; where several answered all of them, with commas between"),
    ("settled_by",): (
        "where several answered: `majority` (more than half of the answers given; of one answer it is "
        "empty), `adjudicated` (a reviewer) or `dawid_skene`; `imported` where the label came with the "
        "item, nobody here has corrected it or decided between several, and no certificate covers it"
    ),
    ("uncertainty",): (
        "score of the first source, 0 to 1; higher is less certain; unrounded, since thresholds on it "
        "are compared with it, in the fewest digits that are exact: of a confidence of 0.982 it is "
        "0.018. Later models' own scores, by which `every_score` keeps their labels, are in "
        "`committed.jsonl` and `answered.jsonl`"
    ),
    ("p_i",): (
        "probability with which people were to be asked about an item of the calibration draw; empty "
        "outside the draw"
    ),
    ("asked",): (
        "whether they were, for the calibration draw; empty in a run without a model, which has none: "
        "there people were asked about every item of the run"
    ),
    ("run",): ("number of the run that the label comes from"),
    ("certificate_id",): (
        "id of the certificate that covers the item; empty for an item outside the run's pool, unless "
        "the run took it in later, and for those after an alarm of their audit"
    ),
    ("reason",): ("why there is no label"),
    ("expert_saw",): ("in a run with an expert: why she was asked"),
    ("taken_in",): (
        "only where the run took in later items: of such an item the number of its intake; empty for the"
        " run's pool, whose items alone the certificate counts"
    ),
    ("audited",): (
        "only there, too: of a later item whether its label is one that people gave for the audit, so "
        "that `source` is `person` where the thresholds name a model; false until they have given it; "
        "empty for other items"
    ),
    ("suggestion",): (
        "only where the run shows suggestions: of a label that people gave in this run `none`, as nothing "
        "was shown with it (so of the whole calibration set), `taken`, as it is what a model had answered "
        "and they were shown, or `other`; empty for labels from another program, of which that is not known, "
        "and all other labels and rows"
    ),
}
"""Of ADDED, in its order; what stands together has one meaning."""

OF_MODELS = ("uncertainty", "p_i", "asked", "certificate_id", "expert_saw")
"""Empty in every row of a run without a model: no score, no draw, no certificate and no expert."""


def legend(run: Run, info: DeliveryInfo) -> list[str]:
    """Lines of Markdown for the data card of a delivery of the run."""
    names = added_names(info.columns, info.added)
    empty = [name for name in info.added if run.by_people and name in OF_MODELS]
    lines = ["## Columns", ""]
    if info.columns:
        lines += ["The imported columns come first, as they were imported; then:", ""]
    lines += ["| column | meaning |", "|---|---|"]
    for together, words in COLUMN_WORDS.items():
        if there := [names[name] for name in together if name in names and name not in empty]:
            lines.append(f"| {_listed(there)} | {words} |")
    lines.append("")
    if empty:
        lines += [
            "Empty in every row, as this run has no model and no draw: "
            f"{_listed([names[one] for one in empty])}. People were asked about every item of the run.",
            "",
        ]
    return [*lines, *_of_models(run, info), *_not_in_it(), ""]


def _of_models(run: Run, info: DeliveryInfo) -> list[str]:
    """Read by `hypac-verify --spot`, which leaves them out: as JSON, and so that no name ends the code."""
    hidden = hidden_columns(run.project)
    names = json.dumps([name for name in info.columns if name in hidden]).replace("`", "\\u0060")
    if names == "[]":
        return []
    return [
        f"Imported columns with model output: `{names}`",
        "",
        "Hide them from whoever labels some of these items anew to check them.",
        "",
    ]


def _not_in_it() -> list[str]:
    return [
        "Not in these files: what each of several people answered, earlier versions of labels, comments, "
        "flags, and who skipped an item and why. HyPAC shows them on the page of each item to whoever may "
        "see them there; programs get the answers from `/api/v1/projects/PROJECT/labels/` and the open flags "
        "from `/api/v1/projects/PROJECT/flags/`."
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
