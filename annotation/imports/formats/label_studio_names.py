"""Names of fields that Label Studio can show: it looks up `value="$name"` only where the name is made of
ASCII letters, digits and underscores. A column of another name that people see has a plain one in a task's
data there, and the task says which column it is, so that it has its own name again here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

META = "hypac"
"""What stands in a task's meta under this name is ours."""
COLUMNS = "columns"
"""Within it: plain name -> the column's own name."""
_OTHERS = re.compile(r"[^A-Za-z0-9_]+")


def plain_names(columns: Iterable[str]) -> dict[str, str]:
    """Column -> the name by which Label Studio can show it: its own where that is plain, else one that no
    other column has. The same columns in the same order have the same names.
    """
    columns = list(columns)
    taken = set(columns)
    names = {}
    for column in columns:
        name = column
        if _OTHERS.search(column):
            base = name = _OTHERS.sub("_", column).strip("_") or "field"
            number = 1
            while name in taken:
                number += 1
                name = f"{base}_{number}"
        taken.add(name)
        names[column] = name
    return names


def with_own_names(data: Mapping[str, Any], meta: Any) -> dict[str, Any]:
    """A task's data with the names that its columns had here, where its meta says that without a doubt."""
    ours = meta.get(META) if isinstance(meta, dict) else None
    said = ours.get(COLUMNS) if isinstance(ours, dict) else None
    if not isinstance(said, dict):
        return dict(data)
    named = {plain: own for plain, own in said.items() if plain in data and isinstance(own, str)}
    found = {named.get(name, name): value for name, value in data.items()}
    return found if len(found) == len(data) else dict(data)


def own_name(meta: Any) -> str:
    """The name that a task's item had here, "" where its meta does not say one."""
    ours = meta.get(META) if isinstance(meta, dict) else None
    name = ours.get("external_id") if isinstance(ours, dict) else None
    return name if isinstance(name, str) else ""
