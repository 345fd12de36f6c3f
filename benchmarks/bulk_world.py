"""A large project for bulk_items.py: a real run of 400 items, whose rows are copied in the database."""

from typing import Any

from runner import analyze

MODELLED = 400
# Differs from item to item, without a random generator that both databases would have to share.
SCORE = "(((n.i * 7919) % 1000003) / 1000003.0)"
TEXT = (
    "'Item ' || n.i || ' has a text of some two hundred characters. " + "It goes on for a while. " * 6 + "'"
)
TWIN = "'twin' || (CASE WHEN n.i % 100 = 1 THEN n.i - 1 ELSE n.i END)"
# The shares up to which the first and the second source answer.
BANDS = (0.7, 0.95)
CHOICE = "CASE WHEN n.i % 97 = 0 THEN '\"emu\"' WHEN n.i % 3 = 0 THEN '\"dog\"' ELSE '\"cat\"' END"
# The dearer source, and the second of two people, say something else of one item in twenty, or in ten.
OTHER = f"CASE WHEN n.i % 20 = 7 THEN '\"emu\"' ELSE {CHOICE} END"
AGAIN = f"CASE WHEN n.i % 100 = 3 THEN '\"emu\"' ELSE {CHOICE} END"
ROUTE = f"CASE WHEN {SCORE} <= {BANDS[0]} THEN 1 WHEN {SCORE} <= {BANDS[1]} THEN 2 ELSE 3 END"
STATE = "CASE WHEN n.i % 100 = 0 THEN 'unlabelable' WHEN n.i % 100 < 40 THEN 'open' ELSE 'done' END"
ORDER = "(n.i * 48271) % 2147483647"


def make(size: int) -> tuple[Any, Any]:
    """A project of `size` items with a run that has been routed, and its owner's access."""
    from django.db import connection, transaction

    from annotation.labelling.comments import add_comment
    from annotation.permissions import access_to
    from testbed.worlds import make_world

    world = make_world(MODELLED)
    run = world.routed(m=120)
    with transaction.atomic():
        world.finish()
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                # Copies break no foreign key; checking millions of them takes longer than all the rest.
                cursor.execute("SET LOCAL session_replication_role = replica")
        first = world.project.items.get(position=0)
        add_comment(item=first, author=world.manager, text="odd", is_flag=True)
        _copy_pool(world, run, size)
        _copy_work(world, run)
        _copy_overlap(world)
        _copy_events(world)
    assert world.project.items.count() == size
    analyze()
    return world.project, access_to(world.manager, world.project.slug)


def lengthen_texts(project: Any) -> None:
    """What was imported of each item gets a text of 200 characters, different in each."""
    from django.db import connection

    text = "'It goes on for a while, and \"so\" on. ' || substr(hex, 1, 162)"
    if connection.vendor == "postgresql":
        digits = "repeat(md5(id::text), 6)"
        data = f"jsonb_set(data, '{{text}}', to_jsonb({text}))"
    else:
        digits = "hex(zeroblob(60)) || printf('%060d', id * 7919)"
        data = f"json_set(data, '$.text', {text})"
    data = data.replace("hex, 1", f"{digits}, 1")
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE annotation_item SET data = {data} WHERE project_id = %s", [project.pk])  # noqa: S608
    analyze("annotation_item")


def _copy_pool(world: Any, run: Any, size: int) -> None:
    """Items, what the sources said of them, and where they were sent."""
    from routing.models import ItemScore, PoolItem, Prediction, Route

    numbers = (
        f"WITH RECURSIVE c(i) AS (SELECT CAST({MODELLED} AS bigint) UNION ALL SELECT i + 1 FROM c "  # noqa: S608
        f"WHERE i < {size - 1}) SELECT i FROM c"
    )
    first = world.project.items.get(position=0)
    _copy(first, numbers, external_id="'t' || n.i", position="n.i", text=TEXT, content_hash=TWIN)
    items = _items(world)
    uncertainty = _uncertainty(*(threshold["u"] for threshold in run.certificate.thresholds))
    pool = PoolItem.objects.filter(run=run).first()
    _copy(pool, items, item_id="n.id", position="n.i", u=uncertainty, v=ORDER)
    for run_source in run.run_sources.order_by("position"):
        first_one = run_source.position == 1
        where = "1 = 1" if first_one else f"{SCORE} > {BANDS[0]}"
        answer = Prediction.objects.filter(source=run_source.source_id, value__isnull=False).first()
        _copy(answer, items, where, item_id="n.id", value=_json(CHOICE if first_one else OTHER))
        answers = (
            "SELECT p.id, i.position AS i FROM annotation_item i JOIN routing_prediction p "  # noqa: S608
            f"ON p.item_id = i.id WHERE i.position >= {MODELLED} AND p.source_id = {run_source.source_id}"
        )
        score = ItemScore.objects.filter(prediction=answer).first()
        _copy(score, answers, prediction_id="n.id", value=uncertainty)
    _copy(Route.objects.filter(run=run).first(), items, item_id="n.id", position=ROUTE)


def _copy_work(world: Any, run: Any) -> None:
    """What people were asked for and answered: a twentieth of the items, three fifths of them labelled."""
    from annotation.models import Comment, Label, WorkItem

    work = WorkItem.objects.filter(batch=run.routed_batch, state="done").first()
    items = _items(world)
    _copy(work, items, f"{SCORE} > {BANDS[1]}", item_id="n.id", state=STATE, order=ORDER)
    done = (
        "SELECT w.id, w.item_id, i.position AS i FROM annotation_workitem w JOIN annotation_item i "  # noqa: S608
        f"ON i.id = w.item_id WHERE w.batch_id = {work.batch_id} AND w.state = 'done' "
        f"AND i.position >= {MODELLED}"
    )
    one, other = (annotator.pk for annotator in world.annotators)
    _copy(
        Label.objects.filter(version=1).first(),
        done,
        item_id="n.item_id",
        work_item_id="n.id",
        annotator_id=f"CASE WHEN n.i % 2 = 0 THEN {one} ELSE {other} END",
        value=_json(CHOICE),
        idempotency_key="'copy-' || n.i",
        lead_time_ms="1000 + (n.i * 31) % 60000",
    )
    _copy(Comment.objects.get(), items, "n.i % 1000 = 0", item_id="n.id")


def _uncertainty(first: float, second: float) -> str:
    """Spread evenly over each band, so that the thresholds of the run part the bands."""
    low, high = BANDS
    return (
        f"CASE WHEN {SCORE} <= {low} THEN {SCORE} / {low} * {first} "
        f"WHEN {SCORE} <= {high} THEN {first} + ({SCORE} - {low}) / {high - low:.4f} * {second - first} "
        f"ELSE {second} + ({SCORE} - {high}) / {1 - high:.4f} * {1 - second} END"
    )


def _copy_overlap(world: Any) -> None:
    """A tenth of the items that two people labelled each; of one in ten of these they differ, and a reviewer
    still has to decide.
    """
    from annotation.models import Label, Settlement, WorkBatch, WorkItem

    batch = WorkBatch.objects.create(project=world.project, blind=False, overlap=2)
    work = WorkItem.objects.filter(state="done").first()
    label = Label.objects.filter(version=1).first()
    item = world.project.items.get(position=3)
    one, other = (annotator.pk for annotator in world.annotators)
    same = Settlement.objects.create(batch=batch, item=item, value="cat", method="majority")
    some = "n.i % 10 = 3"
    for slot, (annotator, value) in enumerate(((one, CHOICE), (other, AGAIN))):
        own = {"batch_id": f"{batch.pk}", "slot": f"{slot}", "order": ORDER}
        _copy(work, _items(world), some, item_id="n.id", state="'done'", **own)
        done = (
            "SELECT w.id, w.item_id, i.position AS i FROM annotation_workitem w JOIN annotation_item i "  # noqa: S608
            f"ON i.id = w.item_id WHERE w.batch_id = {batch.pk} AND w.slot = {slot}"
        )
        _copy(
            label,
            done,
            item_id="n.item_id",
            work_item_id="n.id",
            annotator_id=f"{annotator}",
            value=_json(value),
            idempotency_key=f"'twice-{slot}-' || n.i",
            lead_time_ms="1000 + (n.i * 31) % 60000",
        )
    _copy(same, _items(world), f"{some} AND n.i % 100 <> 3", item_id="n.id", value=_json(CHOICE))


def _copy_events(world: Any) -> None:
    """An entry of the audit trail for every tenth item."""
    from annotation.common import audit

    audit.record(project=world.project, actor=world.manager, action="work.asked_again", target="item:1")
    event = world.project.audit_events.order_by("-pk").first()
    _copy(event, _items(world), "n.i % 10 = 0", target="'item:' || n.id")


def _items(world: Any) -> str:
    return (
        "SELECT id, position AS i FROM annotation_item "  # noqa: S608
        f"WHERE project_id = {world.project.pk} AND position >= {MODELLED}"
    )


def _json(text: str) -> str:
    from django.db import connection

    return f"({text})::jsonb" if connection.vendor == "postgresql" else text


def _copy(row: Any, source: str, where: str = "1 = 1", **columns: str) -> None:
    """INSERT ... SELECT of `row`, once per row `n` of `source`, with these columns computed anew."""
    from django.db import connection

    quote = connection.ops.quote_name
    names = [field.column for field in row._meta.concrete_fields if not field.primary_key]
    values = ", ".join(columns.get(name, f"x.{quote(name)}") for name in names)
    table = quote(row._meta.db_table)
    with connection.cursor() as cursor:
        # Names and expressions are from here and from the models.
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(map(quote, names))}) SELECT {values} "  # noqa: S608
            f"FROM {table} x, ({source}) n WHERE x.id = {row.pk} AND {where}"
        )
