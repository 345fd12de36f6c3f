"""The audit trail in words, and what it is filtered by."""

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from annotation.common import audit
from annotation.permissions import ROLES_BY_ACTION
from annotation.projects.audit_words import ACTIONS, action_in_words, target_in_words
from testbed.factories import add_member, make_project

ROOT = Path(__file__).parents[2]


def test_every_action_that_is_recorded_has_its_words() -> None:
    recorded = {
        action
        for app in ("annotation", "routing")
        for path in (ROOT / app).rglob("*.py")
        for action in re.findall(r'action="([a-z]+\.[a-z_]+)"', path.read_text())
    }
    assert len(recorded) > 50
    assert recorded - {*ROLES_BY_ACTION} - {*ACTIONS} == set()


def test_what_is_not_known_stays_as_it_is() -> None:
    assert (action_in_words("mars.visited"), target_in_words("mars:1")) == ("mars.visited", "mars:1")
    assert target_in_words("item:17") == "item 17"


@pytest.mark.django_db
def test_events_are_shown_in_words_and_filtered() -> None:
    project = make_project()
    manager = add_member(project, "manager")
    audit.record(project=project, actor=manager, action="import.started", target="job:7")
    audit.record(project=project, actor=project.created_by, action="run.cancelled", target="run:3")
    client = Client()
    client.force_login(project.created_by)

    def shown(**query: str) -> str:
        return client.get(reverse("audit", args=[project.slug]), query).content.decode()

    assert "An import was started" in shown()
    assert "run 3" in shown()
    of_manager = shown(by=manager.username)
    assert "An import was started" in of_manager
    assert "A run was cancelled" not in of_manager
    assert "An import was started" not in shown(about="run")
    assert "Nothing of this kind" in shown(by="nobody")
