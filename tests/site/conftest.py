import pytest

from annotation.models import Project
from tests.factories import make_project


@pytest.fixture
def project(db: None) -> Project:
    return make_project()
