"""Which answers count as the same where no two people give quite the same: by the loss of their run."""

import json

import pytest

from annotation.labelling.alike import Alike
from testbed.worlds import Answers, make_world
from tests.routing.runs.slow_loss import PATH, SLOW

pytestmark = pytest.mark.django_db
BOXES = Answers(
    "boxes", ("cat",), lambda random_: "[]", lambda random_, true: "[]", lambda random_, true: "[]"
)


def cat_at(x: int) -> str:
    return json.dumps([{"label": "cat", "x": x, "y": 0, "width": 30, "height": 30}], separators=(",", ":"))


def test_a_runs_own_loss_says_it_for_its_batches_and_is_asked_for_once(django_assert_num_queries) -> None:
    world = make_world(60, answers=BOXES)
    run = world.calibrating(m=30, loss="boxes_right", loss_params={"iou": "0.9"})
    anywhere, in_run = Alike(world.project), Alike(world.project, batch=run.calibration_batch_id)
    with django_assert_num_queries(0):
        assert anywhere(cat_at(0), cat_at(8))  # an overlap of 0.58: the project's loss asks for 0.5
        assert not in_run(cat_at(0), cat_at(8))
        assert in_run(cat_at(0), cat_at(1))
        assert in_run.given_by_most([cat_at(0), cat_at(1), cat_at(8)]) == cat_at(0)


def test_a_loss_that_may_be_slow_is_not_asked_while_labels_are_stored(settings) -> None:
    settings.HYPAC_LOSSES = [PATH]
    world = make_world(60, answers=BOXES)
    world.project.loss = PATH
    world.project.save()
    SLOW.pairs.clear()
    alike = Alike(world.project)
    assert alike(cat_at(0), cat_at(8))  # by the usual loss of boxes
    assert not SLOW.pairs
