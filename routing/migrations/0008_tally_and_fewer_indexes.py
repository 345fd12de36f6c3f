from typing import Any

import django.db.models.deletion
from django.db import migrations, models

# Other indexes of these tables begin with the same column.
COLUMNS = (
    ("ItemScore", "prediction"),
    ("PoolItem", "run"),
    ("Prediction", "item"),
    ("Prediction", "source"),
    ("Route", "run"),
)


def drop(apps: Any, schema_editor: Any) -> None:
    """The index alone. An AlterField would check the foreign key of every row anew on PostgreSQL, under a
    lock that stops all readers, and write the whole table anew on SQLite.
    """
    for model, name in COLUMNS:
        meta = apps.get_model("routing", model)._meta
        for index in _indexes(schema_editor, meta, meta.get_field(name).column):
            schema_editor.execute(f"DROP INDEX {schema_editor.quote_name(index)}")


def make(apps: Any, schema_editor: Any) -> None:
    for model, name in COLUMNS:
        found = apps.get_model("routing", model)
        if not _indexes(schema_editor, found._meta, found._meta.get_field(name).column):
            schema_editor.execute(
                schema_editor._create_index_sql(found, fields=[found._meta.get_field(name)])
            )


def _indexes(schema_editor: Any, meta: Any, column: str) -> list[str]:
    """Names of the plain indexes of this column alone."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, meta.db_table)
    return [
        name
        for name, one in found.items()
        if one["columns"] == [column]
        and one["index"]
        and not one["unique"]
        and not one["foreign_key"]
        and not one["primary_key"]
    ]


def key(to: str, related_name: str) -> models.ForeignKey:
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=related_name,
        to=to,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0004_batches_with_overlap"),
        ("routing", "0007_overlap"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="tally",
            field=models.JSONField(
                blank=True, help_text="What the routing came to (routing.services.tally).", null=True
            ),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField("itemscore", "prediction", key("routing.prediction", "scores")),
                migrations.AlterField("poolitem", "run", key("routing.run", "pool_items")),
                migrations.AlterField("prediction", "item", key("annotation.item", "predictions")),
                migrations.AlterField("prediction", "source", key("routing.source", "predictions")),
                migrations.AlterField("route", "run", key("routing.run", "routes")),
            ],
            database_operations=[migrations.RunPython(drop, make)],
        ),
    ]
