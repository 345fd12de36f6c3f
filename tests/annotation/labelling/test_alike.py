"""Which answers to one item are the same (for boxes see tests/annotation/projects/test_boxes.py)."""

import pytest

from annotation.labelling.alike import given_by_most
from testbed.factories import make_project

pytestmark = pytest.mark.django_db


def test_lists_of_labels_are_compared_as_a_whole() -> None:
    project = make_project(task_type="multiple_choice", choices=("a", "b"))
    assert given_by_most(project, [["a", "b"], ["a", "b"], ["a"]]) == ["a", "b"]
    assert given_by_most(project, [["a", "b"], ["b"], ["a"]]) is None
    assert given_by_most(project, [[], [], ["a"]]) == []
