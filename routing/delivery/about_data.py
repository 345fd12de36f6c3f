"""What a data set's documentation is asked for, filled in as far as a run knows it, and blank where somebody
else has to: the sections of Hugging Face's dataset cards, and what Article 10 of the EU AI Act (Regulation
(EU) 2024/1689) wants to be known of the data that high-risk systems are trained and tested on.
"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal

from django.db.models import Count
from django.utils.translation import override

from annotation.models import Label
from annotation.task_types import TASK_TYPES
from routing.core.certificate import Document
from routing.models import Run, Source
from routing.sources.mends import NONE, mends_in

BLANK = "_Not stated: to be filled in by whoever publishes this._"
Rows = list[tuple[str, str, str]]


def about_data(run: Run, *, by_source: Mapping[str, int], blanks: int) -> list[str]:
    """Lines of Markdown. `by_source`: labels of this delivery by source; `blanks`: rows without one."""
    document = None if run.by_people else json.loads(run.certificate.document)
    lines = ["## About this data set", ""]
    lines += ["What the run knows, and what it cannot know and somebody has to state.", ""]
    for title, rows in (
        ("Annotation", _annotation(run, document, by_source)),
        ("Quality", _quality(document, blanks)),
        ("Origin and use", _origin()),
    ):
        lines += [f"### {title}", "", "| | | asked for by |", "|---|---|---|"]
        lines += [f"| {name} | {words} | {by} |" for name, words, by in rows]
        lines += [""]
    return lines


HF, AI_ACT = "HF", "AI Act 10"


def _annotation(run: Run, document: Document | None, by_source: Mapping[str, int]) -> Rows:
    project = run.project
    with override("en"):  # the same bytes, whoever asks for them
        title = str(TASK_TYPES[project.task_type].title)
    models = ", ".join(_model(run, row.source) for row in run.run_sources.order_by("position")) or "None."
    return [
        ("Task", f"{title}{_choices(run)}", f"{HF}: task; {AI_ACT}(2)(a)"),
        ("Instructions", _instructions(run), f"{HF}: annotation process"),
        ("Who annotated", _who(run, by_source), f"{HF}: who are the annotators; {AI_ACT}(2)(c)"),
        ("Models that labelled", models, f"{HF}: annotation process; {AI_ACT}(2)(c)"),
        ("How", " ".join(_how(run, document)), f"{HF}: annotation process; {AI_ACT}(2)(c)"),
        ("When", _when(run), f"{HF}: annotation process"),
        ("Cleaning, enrichment, aggregation before", BLANK, f"{AI_ACT}(2)(c)"),
    ]


def _model(run: Run, source: Source) -> str:
    """Its name, and how its answers were read where that was not as they were given."""
    then = source.mend_versions.filter(created_at__lte=run.created_at).order_by("-number").first()
    mends = mends_in(then) if then else NONE
    read = [
        *(["whatever its capitals"] if mends.capitals else []),
        *(["whatever its repeated blanks"] if mends.blanks else []),
        *(f"{_cell(text)} as {_cell(key)}" for text, key in sorted(mends.labels.items())),
    ]
    how = f" (read {', '.join(read)})" if read else ""
    return f"{_cell(source.name)}{how}"


def _choices(run: Run) -> str:
    keys = [_cell(key) for key in run.project.choices.order_by("position").values_list("key", flat=True)[:50]]
    return f", one of: {', '.join(keys)}{_replaced(run)}" if keys else ""


def _replaced(run: Run) -> str:
    rows = run.project.replaced_choices.values_list("key", "into")[:50]
    told = [
        f"{_cell(key)} was {'split into' if len(into) > 1 else 'merged into'} {', '.join(map(_cell, into))}"
        for key, into in rows
    ]
    return f"; of earlier ones, {'; '.join(told)}" if told else ""


def _instructions(run: Run) -> str:
    if not run.project.guidelines.strip():
        return "Annotators had no written guidelines in this project."
    words = len(run.project.guidelines.split())
    return f"Annotators had written guidelines beside every item ({words} words); they are not part of this."


def _who(run: Run, by_source: Mapping[str, int]) -> str:
    labels = Label.objects.filter(work_item__batch__in=run.own_batches, superseded_by__isnull=True)
    people = labels.aggregate(people=Count("annotator", distinct=True))["people"]
    said = [f"{people} {'person' if people == 1 else 'people'} labelled in this run."]
    if run.by_expert:
        said.append(f"Of these {_cell(run.expert_name)} counts as right.")
    shares = ", ".join(f"{_cell(source)} {count}" for source, count in sorted(by_source.items()))
    if shares:
        said.append(f"Labels of this delivery by source: {shares}.")
    said.append("Their qualification, pay and background: " + BLANK)
    return " ".join(said)


def _how(run: Run, document: Document | None) -> Iterator[str]:
    if document is None:
        yield f"People were asked about {run.pool_size} items; no model labelled any of them."
    else:
        draw, plan = document["draw"], document["plan"]
        elsewhere = document["provenance"].get("calibration_elsewhere")
        blind = "" if elsewhere else " without seeing any answer of a model"
        yield (
            f"{draw['rows']} of {plan['pool_size']} items were drawn at random, and people were asked about "
            f"{draw['asked']} of them{blind}."
        )
        if elsewhere:
            yield (
                "Answers that came from another program are counted above; whether any answer of a model was "
                "seen there is not known here."
            )
    if run.reference == Run.Reference.SETTLED:
        yield "Two people labelled each, and a third where they differed."
    elif run.overlap > 1:
        yield f"Up to {run.overlap} people labelled an item."
    if document is not None:
        yield (
            "Thresholds on the models' uncertainty were certified from these labels; people "
            "labelled the rest."
        )


def _when(run: Run) -> str:
    moments = (run.created_at, run.completed_at or run.routed_at)
    return " to ".join(dict.fromkeys(moment.date().isoformat() for moment in moments if moment))


def _quality(document: Document | None, blanks: int) -> Rows:
    errors = "Nothing is certified of how many labels are wrong."
    if document is not None and document["result"]["certified"]:
        plan = document["plan"]
        errors = (
            f"At most {plan['epsilon']} of the labels, with probability at least "
            f"{1 - Decimal(plan['alpha'])} over the random draw, as the sentence above says, with what it "
            "leaves open."
        )
    return [
        ("Errors", errors, f"{AI_ACT}(3)"),
        ("Completeness", _completeness(blanks), f"{AI_ACT}(2)(h), (3)"),
        (
            "Share of errors of one kind of label, or of a group of items",
            "Not certified: the promise is about all items together."
            if document is not None
            else "Not certified.",
            f"{HF}: bias, risks and limitations; {AI_ACT}(2)(f)",
        ),
        ("Representativeness of the items", BLANK, f"{AI_ACT}(3), (4)"),
        ("Possible biases, and what was done about them", BLANK, f"{HF}: bias; {AI_ACT}(2)(f), (g)"),
        ("Known gaps or shortcomings", BLANK, f"{HF}: limitations; {AI_ACT}(2)(h)"),
    ]


def _completeness(blanks: int) -> str:
    if not blanks:
        return "Every row has a label."
    return f"{blanks} {'row has' if blanks == 1 else 'rows have'} no label; the list above says why."


def _origin() -> Rows:
    return [
        ("Licence", BLANK, f"{HF}: license"),
        ("Language", BLANK, f"{HF}: language"),
        ("Where the items come from, and who made them", BLANK, f"{HF}: source data; {AI_ACT}(2)(b)"),
        ("For what they were collected first, where they are data of persons", BLANK, f"{AI_ACT}(2)(b)"),
        (
            "Why the data set was made, and assumptions about what it measures",
            BLANK,
            f"{HF}: curation rationale; {AI_ACT}(2)(a), (d)",
        ),
        ("Why it is enough and fit for its purpose", BLANK, f"{AI_ACT}(2)(e), (3)"),
        ("Place, people and setting that it is for", BLANK, f"{AI_ACT}(4)"),
        (
            "Data of persons and sensitive data",
            BLANK,
            f"{HF}: personal and sensitive information; {AI_ACT}(5)",
        ),
        ("Uses that are meant, and that are not", BLANK, f"{HF}: uses"),
        ("How to cite it, and whom to ask", BLANK, f"{HF}: citation, contact"),
    ]


def _cell(text: str) -> str:
    """A code span within a table: nothing in it ends it, or the cell."""
    return "`" + " ".join(text.replace("`", "'").replace("|", "/").split()) + "`"
