import pytest

from annotation.models import Project
from testbed.factories import make_project


@pytest.fixture
def project(db: None) -> Project:
    return make_project()
