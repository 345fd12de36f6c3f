"""Have a source answer for items, each of them once and paid once, however often the work is taken up
again."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from django.db.models import Exists, OuterRef, QuerySet

from annotation.errors import JobFailedError
from annotation.jobs import JobContext
from annotation.models import Item
from routing.backends import Answer, predict_all
from routing.core.costs import COSTS, SECONDS, TOKENS_IN, TOKENS_OUT, CostError, read_prices
from routing.models import Prediction, RunSource, Spend
from routing.services.opened import open_source
from routing.services.run_sources import change_of
from routing.services.score_fields import keys_by_name
from routing.services.scoring import score_of
from routing.services.stored_scores import store_scores

CHUNK = 500
CUT_OFF = "length"
# What the column of costs holds.
PLACES = Decimal(1).scaleb(-10)
MOST = Decimal(10) ** 8


def predict_missing(
    context: JobContext, *, run_source: RunSource, items: QuerySet[Item], stage: str, words: str, done: int
) -> int:
    """Predict for those of `items` that have no answer under the run's fingerprint; returns how many that
    were.

    `stage` is where the ledger puts the money, `words` what the job says that it is doing, `done` the job's
    count before. The model is called outside any transaction; answers, scores, payment and progress of a
    chunk are committed together.
    Raises JobFailedError where the source is no longer what the run froze, and BackendError where it cannot
    answer.
    """
    answered = Prediction.objects.filter(
        item=OuterRef("pk"), source=run_source.source_id, fingerprint=run_source.fingerprint
    )
    missing = items.filter(~Exists(answered)).select_related("image").order_by("position")
    # What is there already from an earlier attempt counts as done.
    count = items.count() - missing.count()
    with context.chunk(done=done + count, stage=words):
        pass
    chunk = list(missing[:CHUNK])
    if not chunk:
        return count
    if change := change_of(run_source):
        raise JobFailedError(f"{change} Put it back as it was and start this job again, or cancel the run.")
    source, project = run_source.source, run_source.run.project
    backend = open_source(source)
    score = score_of(run_source.run, run_source)
    keys = keys_by_name(project)
    while chunk:
        answers = predict_all(backend, chunk)
        rows = [_row(item, answer, run_source, keys) for item, answer in zip(chunk, answers, strict=True)]
        count += len(rows)
        with context.chunk(done=done + count):
            store_scores(Prediction.objects.bulk_create(rows), score, keys)
            _pay(rows, run_source, stage)
        chunk = list(missing.filter(position__gt=chunk[-1].position)[:CHUNK])
    return count


def _row(item: Item, answer: Answer, run_source: RunSource, keys: Mapping[str, str]) -> Prediction:
    value, reason = answer.value, answer.reason
    if value is not None:
        value, reason = keys.get(str(value)), ""
        if value is None:
            reason = f"unknown label {answer.value!r}"
    elif not reason:
        reason = "no answer"
    if answer.finish_reason == CUT_OFF:
        value, reason = None, "the answer was cut off (finish_reason is 'length')"
    cost, cost_note = _cost(answer, run_source)
    return Prediction(
        item=item,
        source_id=run_source.source_id,
        fingerprint=run_source.fingerprint,
        value=value,
        reason=reason[:200],
        raw=answer.raw,
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        finish_reason=answer.finish_reason,
        latency_ms=answer.latency_ms,
        cost=cost,
        cost_note=cost_note[:200],
    )


def _cost(answer: Answer, run_source: RunSource) -> tuple[Decimal, str]:
    """What the answer cost, and why that is the price per label where the cost function cannot tell.

    What the backend knows the answer to have cost comes first, then the cost function that the run froze.
    """
    if answer.cost is not None:
        return answer.cost, ""
    per_label = run_source.cost_per_label
    function = COSTS.get(run_source.cost_function)
    if function.name == "flat":
        return per_label, ""
    usage = {
        TOKENS_IN: answer.tokens_in,
        TOKENS_OUT: answer.tokens_out,
        SECONDS: None if answer.latency_ms is None else answer.latency_ms / 1000,
    }
    known = {name: Decimal(str(value)) for name, value in usage.items() if value is not None}
    try:
        cost = function(prices=read_prices(function, run_source.prices), usage=known)
    except CostError as error:
        return per_label, f"{error}; the price per label was charged"
    if cost >= MOST:
        return (
            per_label,
            f"{cost:.0f} is more than any cost that can be stored; the price per label was charged",
        )
    return cost.quantize(PLACES), ""


def _pay(rows: Sequence[Prediction], run_source: RunSource, stage: str) -> None:
    first = rows[0]
    Spend.objects.create(
        project_id=first.item.project_id,
        run=run_source.run,
        source_id=run_source.source_id,
        stage=stage,
        quantity=len(rows),
        amount=sum((row.cost for row in rows), Decimal(0)),
        # An item is the first of at most one chunk, because it is predicted once under a fingerprint.
        key=f"predict:{run_source.source_id}:{run_source.fingerprint[:40]}:{first.item_id}",
    )
