"""Which answers to one item are the same (for boxes see tests/annotation/projects/test_boxes.py)."""

import pytest

from annotation.labelling.alike import Alike
from testbed.factories import make_project

pytestmark = pytest.mark.django_db


def test_lists_of_labels_are_compared_as_a_whole() -> None:
    project = make_project(task_type="multiple_choice", choices=("a", "b"))
    alike = Alike(project)
    assert alike.given_by_most([["a", "b"], ["a", "b"], ["a"]]) == ["a", "b"]
    assert alike.given_by_most([["a", "b"], ["b"], ["a"]]) is None
    assert alike.given_by_most([[], [], ["a"]]) == []
