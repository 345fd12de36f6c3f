"""A project whose values nothing here can compare, and a program of the team that measures the losses."""

import json
from typing import Any

from annotation.models import User
from routing.elsewhere.losses import hand_out_losses, take_losses
from routing.models import Run
from routing.runs.ask_losses import ask_losses
from testbed.worlds import Answers, World, make_world

MEASURE = "mesh_distance.py 1.2, capped at 1"
PLAN: dict[str, Any] = {"loss": "measured_elsewhere", "loss_params": {"measure": MEASURE}, "target": "pool"}


def mesh(size: float) -> str:
    return json.dumps({"mesh": "part.obj", "size": round(size, 3)}, sort_keys=True, separators=(",", ":"))


def size_of(text: str) -> float:
    return float(json.loads(text)["size"])


MESHES = Answers(
    task_type="opaque",
    choices=(),
    true=lambda random_: mesh(random_.uniform(10, 20)),
    # Nearly as large: no two are the same text.
    right=lambda random_, true: mesh(size_of(str(true)) + random_.uniform(0.001, 0.01)),
    wrong=lambda random_, true: mesh(size_of(str(true)) + random_.uniform(0.5, 2)),
)


def measured(label: str, answer: str) -> float:
    """What the team's program gives: how far the sizes are apart."""
    return min(abs(size_of(label) - size_of(answer)), 1.0)


def right_or_wrong(label: str, answer: str) -> float:
    return float(measured(label, answer) > 0.1)


def world_of_meshes(size: int = 200, **more: Any) -> World:
    return make_world(size, answers=MESHES, **more)


def rows_given_out(run: Run, user: User) -> list[dict[str, Any]]:
    pages = hand_out_losses(run=run, user=user)
    return [row for page in pages() for row in page]


def with_losses(row: dict[str, Any], measure: Any = measured) -> dict[str, Any]:
    """A row as the program sends it back."""
    found = dict(row)
    for name, answer in row.items():
        if name.startswith("answer"):
            found[f"loss{name[6:]}"] = None if answer is None else measure(row["label"], answer)
    return found


def measuring(world: World, *, measure: Any = measured, **plan: Any) -> Run:
    """A run whose labels are locked and all of whose losses are here."""
    run = world.calibrated(**{**PLAN, **plan})
    ask_losses(run=run, user=world.manager)
    rows = [with_losses(row, measure) for row in rows_given_out(run, world.manager)]
    taken = take_losses(run=run, actor=world.manager, rows=rows)
    assert (taken.stored, taken.known, list(taken.refused)) == (len(rows), 0, [])
    return run
