"""Loaded by schemathesis: addresses that lead somewhere, and a count of what was sent. FUZZ_IDS holds the
parts of addresses as JSON; FUZZ_COUNTS names the file for the count.
"""

import atexit
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import schemathesis

IDS: dict[str, Any] = json.loads(os.environ["FUZZ_IDS"])
# What ends things is tried on another project, so that the rest finds something to the end.
SPARE: str = os.environ["FUZZ_SPARE"]
ENDS = ("/archive/", "/unarchive/", "/members/{user_id}/", "/choices/")
PARTS_IN_ANSWERS = frozenset({"id", "slug", "number", "work_item", "work_item_id", "sha256"})

sent: Counter[str] = Counter()
"""By phase, and by the kind of the answer: `2xx`, ..., `html`."""
errors: list[str] = []
named: set[str] = set()
"""What answers have named, for the phase that follows them."""


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else (json.dumps(value) + "\n").encode()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Of four requests three go to what there is, one to whatever was made up; what an answer before has
    named stays. A key is not used twice: the second request would be told so, whatever it asks.
    """
    if "Idempotency-Key" in (case.headers or {}):
        case.headers["Idempotency-Key"] = uuid4().hex
    parts = case.path_parameters or {}
    kept = named if case.meta is not None and case.meta.phase.name == "stateful" else frozenset()
    known = {name: IDS[name] for name, value in parts.items() if name in IDS and str(value) not in kept}
    made_up = sum(map(ord, repr(sorted(parts.items(), key=str)))) % 4 == 0
    if not made_up:
        parts.update(known)
    path, method = str(case.operation.path), str(case.method).upper()
    ends = (path.endswith(ENDS) and method != "GET") or (path.endswith("/{slug}/") and method == "DELETE")
    if ends and parts.get("slug") == IDS["slug"]:
        parts["slug"] = SPARE


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    kind = f"{response.status_code // 100}xx"
    html = "text/html" in " ".join(response.headers.get("content-type", []))
    sent[case.meta.phase.name if case.meta is not None else "checks"] += 1
    sent[kind] += 1
    sent["html"] += html
    if html or kind == "5xx":
        what = f"{response.status_code} {case.method} {case.formatted_path}"
        errors.append(f"{what}: {response.content[:300]!r}")
    if kind == "2xx" and case.meta is not None:
        _remember(response)


def _remember(response: Any) -> None:
    try:
        # response.json() would be kept, and one line of NDJSON be checked as if it were JSON.
        answer = json.loads(response.text)
    except ValueError:
        return
    entries = answer.get("results", [answer]) if isinstance(answer, dict) else answer
    for entry in entries[:20] if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            named.update(str(value) for name, value in entry.items() if name in PARTS_IN_ANSWERS)


@atexit.register
def _tell() -> None:
    told = {"sent": sent, "errors": errors}
    Path(os.environ["FUZZ_COUNTS"]).write_text(json.dumps(told))
