"""Loaded by schemathesis: addresses that lead somewhere. FUZZ_IDS holds the parts of addresses as JSON."""

import json
import os
from typing import Any
from uuid import uuid4

import schemathesis

IDS: dict[str, Any] = json.loads(os.environ["FUZZ_IDS"])
# What ends things is tried on another project, so that the rest finds something to the end.
SPARE: str = os.environ["FUZZ_SPARE"]
ENDS = ("/archive/", "/unarchive/", "/members/{user_id}/", "/choices/")


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else (json.dumps(value) + "\n").encode()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Of four requests three go to what there is, one to whatever was made up. A key is not used twice: the
    second request would be told so, whatever it asks.
    """
    if "Idempotency-Key" in (case.headers or {}):
        case.headers["Idempotency-Key"] = uuid4().hex
    known = {name: IDS[name] for name in case.path_parameters or {} if name in IDS}
    made_up = sum(map(ord, repr(sorted(case.path_parameters.items(), key=str)))) % 4 == 0 if known else True
    if not made_up:
        if str(case.operation.path).endswith(ENDS) and case.method != "GET":
            known["slug"] = SPARE
        case.path_parameters.update(known)
