"""Conditions on many items at once."""

from collections.abc import Sequence

from django.db.models import Q

# So many keys may lie between the first and the last of a page for each of its items.
SPARSE = 4


def of_items(name: str, item_ids: Sequence[int]) -> Q:
    """Whether `name` ("item", "prediction__item") is one of these items, or lies between them: the answer may
    name others, which the caller passes over.

    Items that were imported together have keys in a row, and a database reads such a stretch of an index
    several times as fast as it looks up thousands of keys. Where the keys are far apart they are named.
    """
    if not item_ids:
        return Q(pk__in=[])
    first, last = min(item_ids), max(item_ids)
    if last - first < SPARSE * len(item_ids):
        return Q(**{f"{name}__gte": first, f"{name}__lte": last})
    return Q(**{f"{name}__in": item_ids})
