"""A small delivery of two models and a person that needs no database, to be changed in single places."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from hypac_verify.draw import salt_of, tie_break
from testbed.forgeries import canonical
from tests.core.certificates import ENTROPY, IDS, SIZE, make_files
from tests.core.worlds import make_world
from tests.verify.reports import Files

Rows = list[dict[str, Any]]


def small(change: Callable[[Rows], object] = lambda _: None, **plan: object) -> Files:
    """A delivery by thresholds on the first score; ``change`` is made to its rows before they are counted."""
    certificate, draw = make_files(**plan)  # type: ignore[arg-type]
    document = json.loads(certificate)
    models, alpha = len(document["plan"]["costs"]) - 1, document["plan"]["alpha"]
    document["provenance"] = {
        "run": 1,
        "alpha_ledger": [{"run": 1, "alpha": alpha}],
        "alpha_total": alpha,
        "sources": [{"name": f"M{model}"} for model in range(models)],
    }
    certificate = canonical(document)
    identity = hashlib.sha256(certificate).hexdigest()
    rows = _rows(document, draw, identity)
    change(rows)
    labels = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return {
        "certificate.json": certificate,
        "draw.jsonl": draw,
        "labels.jsonl": labels.encode(),
        "README.md": card(document, identity, rows).encode(),
    }


def card(document: dict[str, Any], identity: str, rows: Rows) -> str:
    sources = Counter(row["source"] for row in rows if row["source"])
    reasons = Counter(row["reason"] for row in rows if not row["source"])
    return "\n".join(
        [
            "# `small`, run 1",
            "",
            document["result"]["sentence"],
            "",
            f"- Certificate: {identity}",
            f"- Rows: {len(rows)}",
            f"- Without a label: {reasons.total()}",
            *(f"  - `{reason}`: {number}" for reason, number in reasons.items()),
            "- Labels by source:",
            *(f"  - `{source}`: {number}" for source, number in sources.items()),
            "",
        ]
    )


def row_of(external_id: str, **values: Any) -> dict[str, Any]:
    """A row that no certificate covers, but for ``values``."""
    return {
        "external_id": external_id, "label": "0", "label_name": None, "source": "person", "annotator": "Ann",
        "settled_by": None, "uncertainty": None, "p_i": None, "asked": False, "run": None,
        "certificate_id": None, "reason": None, "expert_saw": None, **values,
    }  # fmt: skip


def _rows(document: dict[str, Any], draw: bytes, identity: str) -> Rows:
    drawn = {row["item_id"]: row for row in map(json.loads, draw.splitlines())}
    world, salt = make_world("power", SIZE, np.random.default_rng(4)), salt_of(ENTROPY)
    limits = [tuple(limit) if limit else None for limit in document["result"]["thresholds"]]
    rows = []
    for place, item in enumerate(IDS):
        of_draw, u = drawn.get(item), float(world.u[place])
        asked = of_draw is not None and of_draw["asked"]
        by = sum(limit is None or (u, tie_break(salt, item)) > limit for limit in limits)
        if asked and of_draw and of_draw["label"] is not None:
            by = len(limits)
        model = by < len(limits)
        rows.append(
            row_of(
                item,
                label=str(world.answers[place][by]) if model else "0",
                source=f"M{by}" if model else "person",
                annotator=None if model else "Ann",
                uncertainty=u,
                p_i=of_draw["p"] if of_draw else None,
                asked=asked,
                run=1,
                certificate_id=identity,
            )
        )
    return rows
