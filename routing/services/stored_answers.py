"""Writing what models answered."""

from collections.abc import Sequence

from annotation.selectors.ranges import of_items
from annotation.services.bulk import copy_rows
from routing.models import Prediction

# From so many rows on it pays to copy them and then to ask for their keys.
MANY = 100
_STORED = [
    field
    for field in Prediction._meta.concrete_fields
    if not field.primary_key and field.name != "created_at"
]
_NAMES = [field.name for field in _STORED]
_VALUES = [field.attname for field in _STORED]


def store_answers(rows: Sequence[Prediction]) -> None:
    """Store predictions of one source under one fingerprint, and set their keys.

    Raises IntegrityError where the source has answered for an item before.
    """
    if len(rows) < MANY:
        Prediction.objects.bulk_create(rows)
        return
    copy_rows(Prediction, _NAMES, ([getattr(row, name) for name in _VALUES] for row in rows))
    stored = Prediction.objects.filter(
        of_items("item", [row.item_id for row in rows]),
        source=rows[0].source_id,
        fingerprint=rows[0].fingerprint,
    )
    keys = dict(stored.values_list("item_id", "pk"))
    for row in rows:
        row.pk = keys[row.item_id]
