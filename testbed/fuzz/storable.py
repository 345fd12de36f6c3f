"""What a database and JSON can hold."""

import json
import re
from typing import Any

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def assert_storable(value: Any) -> None:
    """No NUL and no half of a surrogate pair in its texts, no number that JSON lacks."""
    if isinstance(value, str):
        assert not _UNSTORABLE.search(value), f"{value[:80]!r} cannot be stored"
        return
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    assert not _UNSTORABLE.search(text), f"{text[:80]!r} cannot be stored"
    assert "\\u0000" not in text.replace("\\\\", ""), f"{text[:80]!r} cannot be stored"
