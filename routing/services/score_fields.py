"""What uncertainty scores read: a stored prediction, and how the labels of the project are spelled."""

from collections.abc import Mapping

from annotation.models import Project
from routing.models import Prediction


def keys_by_name(project: Project) -> dict[str, str]:
    """Every text by which a source may name a choice, with the choice's key. A key goes before a name."""
    choices = list(project.choices.values_list("key", "name"))
    names: dict[str, list[str]] = {}
    for key, name in choices:
        names.setdefault(name, []).append(key)
    by_name = {name: keys[0] for name, keys in names.items() if len(keys) == 1}
    return by_name | {key: key for key, _ in choices}


def fields_of(row: Prediction, keys: Mapping[str, str]) -> dict[str, object]:
    """What scores read of a prediction; `keys` are those of `keys_by_name`."""
    return {
        **row.raw,
        "label": row.value,
        "reason": row.reason,
        "finish_reason": row.finish_reason,
        "allowed": keys,
    }
