"""What a run has committed to, read: for its certificate, and for whoever shows it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

from django.db.models import Max
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common.files import open_file
from annotation.errors import ConflictError
from annotation.models import StoredFile
from routing.common.states import OPEN
from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import canonical_bytes
from routing.core.commitment import Answer, commitment_differences, item_line
from routing.core.plan import Plan
from routing.models import Certificate, Commitment, Run, RunSource
from routing.models.commitments import BEFORE_DRAW, BEFORE_LABELS
from routing.runs.covered_items import covered_items
from routing.runs.every_score_runs import called_models
from routing.runs.ledger import linked_ledger
from routing.runs.usable_answers import table_of_answers

PART = 5_000

NOT_AS_COMMITTED = failures.register(
    "not_as_committed",
    gettext_noop(
        "What run %(run)s would certify is not what it committed to before its labels: %(what)s Nothing was "
        "certified."
    ),
)


def commitment_of(run: Run, number: int) -> Commitment | None:
    """One of the two, where it has been made."""
    return Commitment.objects.filter(run=run, number=number).first()


def first_hash(run: Run) -> str:
    """The hash of the first, "" of runs without one."""
    found = Commitment.objects.filter(run=run, number=BEFORE_DRAW).values_list("sha256", flat=True).first()
    return found or ""


def project_named(run: Run) -> str:
    """What the documents of a run call its project: the short name under which its first run committed
    itself, by which certificates are told to be of one project; of runs from before there were commitments
    that in the first certificate. An import from another installation may have given it another one since.
    """
    first = Commitment.objects.filter(run__project=run.project_id).order_by("run__number", "number").first()
    if first is not None:
        return str(document_of(first)["project"])
    certified = Certificate.objects.filter(run__project=run.project_id).order_by("run__number")
    document = certified.values_list("document", flat=True).first()
    named = run.project.slug if document is None else json.loads(document)["provenance"]["project"]
    return str(named)


def document_to_show(run: Run, number: int) -> str | None:
    """The very text that was committed to; None where it is not made yet. Raises ConflictError while the
    calibration set may be labelled: it tells which items were drawn, or the number that the draw comes from.
    """
    commitment = commitment_of(run, number)
    if commitment is not None and run.state in OPEN:
        raise ConflictError(
            _(
                "What run %(run)s committed to tells which items it draws: it can be had once the run is "
                "analysed. Note the hash until then."
            )
            % {"run": run.number},
            code="commitment_hidden",
        )
    return None if commitment is None else commitment.document


def document_of(commitment: Commitment) -> dict[str, Any]:
    """The document itself."""
    found: dict[str, Any] = json.loads(commitment.document)
    return found


def committed_files(run: Run) -> tuple[StoredFile, str] | None:
    """``committed.jsonl`` and ``pilot.jsonl``: what the roots in the commitments are of; None of a run that
    made none.
    """
    both = list(run.commitments.select_related("items"))
    if len(both) < 2 or both[0].items is None:
        return None
    return both[0].items, "".join(one.pilot_lines for one in both)


def committed_lines(
    run: Run, run_sources: Sequence[RunSource], rows: Sequence[tuple[int, str, str, float | None]]
) -> Iterator[bytes]:
    """Lines as of ``committed.jsonl`` of what the run's models have said until now; of items with key, name,
    hash of the content and U.
    """
    ids = [item for item, *_ in rows]
    answers, scores = table_of_answers(run, run_sources, ids)
    called = called_models(run, run_sources, ids)
    for item, name, content, u in rows:
        said: list[Answer | None] = [
            (answer, score) if was_called else None
            for answer, score, was_called in zip(answers[item], scores[item], called[item], strict=True)
        ]
        yield item_line(name, content, u, said)


def answered_later(run: Run, between_parts: Callable[[], object] = lambda: None) -> Iterator[bytes]:
    """Lines of ``answered.jsonl``, without their ends: those of ``committed.jsonl`` of whose items models
    have answered more since then, with these answers, too; behind them items that were taken in later.
    ``between_parts`` is called before each ``PART`` items, and may raise.
    """
    if (found := committed_files(run)) is None:
        return
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    covered = covered_items(run).order_by("position")
    last = covered.aggregate(last=Max("position"))["last"]
    rows = covered.values_list("item", "item__external_id", "item__content_hash", "u")
    with open_file(found[0]) as committed:
        lines = iter(committed)  # each one begins anew: a file of a storage goes to its start
        for start in range(0, last + 1, PART):
            between_parts()
            part = list(rows.filter(position__gte=start, position__lt=start + PART))
            before = list(islice(lines, len(part)))  # fewer where items were taken in later
            for old, line in zip_longest(before, committed_lines(run, run_sources, part)):
                if old is None:
                    yield line
                elif new := _with_more(json.loads(old), json.loads(line)["answers"]):
                    yield canonical_bytes(new)[:-1]


def _with_more(committed: Mapping[str, Any], answers: Sequence[Any]) -> dict[str, Any]:
    """A committed line with the answers that came since; {} where none came."""
    known = committed["answers"]
    both = [later if before is None else before for before, later in zip(known, answers, strict=True)]
    return {} if both == known else {**committed, "answers": both}


def with_commitments(run: Run) -> dict[str, Any]:
    """What the certificate of a run holds of its commitments and of the ledger; nothing of a run without."""
    both = [commitment_of(run, number) for number in (BEFORE_DRAW, BEFORE_LABELS)]
    if None in both:
        return {}
    first, second = (document_of(one) for one in both if one is not None)
    return {
        "commitments": {"before_draw": first, "before_labels": second},
        "ledger": linked_ledger(run.project),
    }


def refuse_other_than_committed(
    run: Run, plan: Plan, document: Mapping[str, Any], rows: Sequence[CalibrationRow]
) -> None:
    """Raises JobFailedError where a certificate does not say what its run committed to: none is better than
    one that its own verifier refuses.
    """
    if "commitments" not in document:
        return
    if differences := list(commitment_differences(document, plan, rows)):
        raise NOT_AS_COMMITTED.error(run=run.number, what=differences[0])
