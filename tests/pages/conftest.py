"""Clients that are logged in, and projects in the states that the pages know."""

from collections.abc import Callable

import pytest
from django.test import Client

from annotation.models import Project, User
from testbed.factories import add_member, make_items, make_project


@pytest.fixture
def project(db: None) -> Project:
    return make_project(choices=("cat", "dog"))


@pytest.fixture
def client_of() -> Callable[[User], Client]:
    def make(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture
def owner(project: Project, client_of: Callable[[User], Client]) -> Client:
    return client_of(project.created_by)


@pytest.fixture
def annotator(project: Project, client_of: Callable[[User], Client]) -> Client:
    return client_of(add_member(project, "annotator"))


@pytest.fixture
def waiting(project: Project) -> Project:
    """The project with three texts that wait for a label."""
    from annotation import queue

    items = make_items(project, 3)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=True, priority=1, entropy=5
    )
    return project
