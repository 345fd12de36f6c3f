"""A site with its worker, as `manage.py serve` starts it, and people with tokens."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hypac_client import Client
from tests.services.test_embedded import Site, until
from tests.template_database import copy_sqlite

PEOPLE = ("ada", "bo", "cy", "dee")
ACCOUNTS = """
import django; django.setup()
import json, sys
from annotation.models import User
from annotation.people.tokens import make_token
made = {name: make_token(user=User.objects.create_user(name), name="tests")[1] for name in sys.argv[1:]}
print(json.dumps(made))
"""


@dataclass
class LiveSite:
    """`tokens` by name; the people are members of nothing."""

    site: Site
    tokens: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.site.port}"

    def client(self, name: str = "ada") -> Client:
        return Client(self.url, self.tokens[name])


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    if not sys.platform.startswith("linux"):
        pytest.skip("starts a site of its own, as tests/services do")
    # Nobody kills its worker: a busy machine must not have it taken for dead.
    folder = tmp_path_factory.mktemp("site")
    copy_sqlite(folder / "hypac.sqlite3")
    site = Site(folder, HYPAC_JOB_STALE_SECONDS="60")
    try:
        until(site.healthy, 400)
        yield LiveSite(site, json.loads(site.python(ACCOUNTS, *PEOPLE)))
    finally:
        site.stop()
