"""A large project for benchmarks/items.py: a real run of 400 items, whose rows are copied in the database."""

from typing import Any

MODELLED = 400
# Differs from item to item, without a random generator that both databases would have to share.
SCORE = "(((n.i * 7919) % 1000003) / 1000003.0)"
TEXT = (
    "'Item ' || n.i || ' has a text of some two hundred characters. " + "It goes on for a while. " * 6 + "'"
)
TWIN = "'twin' || (CASE WHEN n.i % 100 = 1 THEN n.i - 1 ELSE n.i END)"
CHOICE = "CASE WHEN n.i % 97 = 0 THEN '\"emu\"' WHEN n.i % 3 = 0 THEN '\"dog\"' ELSE '\"cat\"' END"
ROUTE = f"CASE WHEN {SCORE} < 0.7 THEN 1 WHEN {SCORE} < 0.95 THEN 2 ELSE 3 END"
STATE = "CASE WHEN n.i % 100 = 0 THEN 'unlabelable' WHEN n.i % 100 < 40 THEN 'open' ELSE 'done' END"
ORDER = "(n.i * 48271) % 2147483647"


def make(size: int) -> tuple[Any, Any]:
    """A project of `size` items with a run that has been routed, and its owner's access."""
    from django.db import connection, transaction

    from annotation.permissions import access_to
    from annotation.services.comments import add_comment
    from tests.routing.worlds import make_world

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
    assert world.project.items.count() == size
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
    return world.project, access_to(world.manager, world.project.slug)


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
    pool = PoolItem.objects.filter(run=run).first()
    _copy(pool, items, item_id="n.id", position="n.i", u=SCORE, v=ORDER)
    for run_source in run.run_sources.order_by("position"):
        where = "1 = 1" if run_source.position == 1 else f"{SCORE} >= 0.7"
        answer = Prediction.objects.filter(source=run_source.source_id, value__isnull=False).first()
        _copy(answer, items, where, item_id="n.id", value=_json(CHOICE))
        answers = (
            "SELECT p.id, i.position AS i FROM annotation_item i JOIN routing_prediction p "  # noqa: S608
            f"ON p.item_id = i.id WHERE i.position >= {MODELLED} AND p.source_id = {run_source.source_id}"
        )
        score = ItemScore.objects.filter(prediction=answer).first()
        _copy(score, answers, prediction_id="n.id", value=SCORE)
    _copy(Route.objects.filter(run=run).first(), items, item_id="n.id", position=ROUTE)


def _copy_work(world: Any, run: Any) -> None:
    """What people were asked for and answered: a twentieth of the items, three fifths of them labelled."""
    from annotation.models import Comment, Label, WorkItem

    work = WorkItem.objects.filter(batch=run.routed_batch, state="done").first()
    items = _items(world)
    _copy(work, items, f"{SCORE} >= 0.95", item_id="n.id", state=STATE, order=ORDER)
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
