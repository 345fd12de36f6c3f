"""A site that began on SQLite goes on with PostgreSQL, by `manage.py move`."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.services.conftest import ROOT
from tests.template_database import copy_sqlite

# A run from its plan to its delivery, and values that databases keep differently.
BEGUN = """
import django; django.setup()
import time
from datetime import UTC, datetime
from annotation.models import Item, User
from annotation.people.second_factor import change, codes
from annotation.people.second_factor.passkeys import NewPasskey
from routing.delivery.deliver import deliver
from testbed.factories import make_project
from testbed.worlds import make_world
world = make_world(120)
run = world.complete(m=60)
world.do(deliver(run=run, user=world.manager).kind)
odd = [1e16, 1e-300, 2**62, "\\u2028", True, None, {"a": [0.1]}]
Item.objects.create(project=make_project(name="Odd"), external_id="x", position=0, text="tab\\t\\\\N\\n,\\"",
                    content_hash="0", data={"n": "1"}, typed={"n": odd})
user, secret = User.objects.first(), codes.new_secret()
change.add_passkey(user=user, name="key", handle="AA", made=NewPasskey("AQ", "Ag", 2**32 - 1))
change.set_up_app(user=user, secret=secret, code=codes._totp(secret).generate(int(time.time())).decode())
Item.objects.filter(external_id="x").update(created_at=datetime(1999, 12, 31, 23, 59, 59, 999999, UTC))
"""
GOES_ON = """
import django; django.setup()
import json
from annotation.common.files import open_file
from annotation.models import AuthenticatorApp, Item, Label, Passkey, RecoveryCode, User
from routing.core.verify import verify
from routing.models import Delivery, Prediction
from testbed.factories import make_project
files = {entry.name: entry.file for entry in Delivery.objects.get().files.select_related("file")}
def read(name):
    with open_file(files[name]) as file:
        return file.read()
odd = Item.objects.get(external_id="x")
print(json.dumps({
    "verified": verify(read("certificate.json"), read("draw.jsonl")),
    "labels": Label.objects.count(),
    "predictions": Prediction.objects.count(),
    "second_factor": [model.objects.count() for model in (AuthenticatorApp, Passkey, RecoveryCode)],
    "odd": [odd.text, odd.typed, odd.created_at.isoformat()],
    "new": make_project(User.objects.first(), name="New").pk,
}))
"""


class Moved:
    def __init__(self, folder: Path, url: str) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        self.here = kept | {
            "HYPAC_VAR": str(folder / "var"),
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
            "PYTHONPATH": str(ROOT),
        }
        self.url, self.file = url, folder / "var" / "hypac.sqlite3"
        copy_sqlite(self.file)

    @property
    def there(self) -> dict[str, str]:
        return self.here | {"DATABASE_URL": self.url, "DJANGO_SECRET_KEY": "0123456789" * 6}

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=env or self.here,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def move(self) -> subprocess.CompletedProcess[str]:
        return self.run("manage.py", "move", "--to", self.url)

    def count(self, table: str) -> int:
        with psycopg.connect(self.url) as other:
            found = other.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
        return int(found[0]) if found else -1


@pytest.fixture
def site(tmp_path: Path, postgres_url: str) -> Moved:
    return Moved(tmp_path, postgres_url)


def test_everything_goes_on_there(site: Moved) -> None:
    begun = site.run("-c", BEGUN)
    assert begun.returncode == 0, begun.stderr
    with closing(sqlite3.connect(site.file)) as here:
        labels, predictions, projects = (
            here.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
            for table in ("annotation_label", "routing_prediction", "annotation_project")
        )
    moved = site.move()
    assert moved.returncode == 0, moved.stderr
    assert "each compared" in moved.stdout
    found = site.run("-c", GOES_ON, env=site.there)
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert told["verified"] == []
    assert (told["labels"], told["predictions"]) == (labels, predictions)
    assert told["second_factor"] == [1, 1, 10]
    assert told["odd"] == [
        'tab\t\\N\n,"',
        {"n": [1e16, 1e-300, 2**62, "\u2028", True, None, {"a": [0.1]}]},
        "1999-12-31T23:59:59.999999+00:00",
    ]
    assert told["new"] > projects, "numbers go on after those that were there"
    again = site.move()
    assert again.returncode == 1
    assert "is not empty" in again.stderr


def test_a_row_that_cannot_be_there_moves_nothing_and_it_can_be_begun_again(site: Moved) -> None:
    with closing(sqlite3.connect(site.file)) as here, here:
        here.execute(
            "INSERT INTO annotation_attemptbucket (name, empty_at) VALUES (?, 0)", ["x" * 101]
        )  # longer than PostgreSQL lets it be
    refused = site.move()
    assert refused.returncode == 1
    assert "Nothing was moved" in refused.stderr
    assert site.count("annotation_attemptbucket") == 0
    with closing(sqlite3.connect(site.file)) as here, here:
        here.execute("UPDATE annotation_attemptbucket SET name = 'x'")
    moved = site.move()
    assert moved.returncode == 0, moved.stderr
    assert site.count("annotation_attemptbucket") == 1


def test_what_is_no_address_of_postgresql_is_refused_without_its_password(site: Moved) -> None:
    for url in ("mysql://a:s3cret@b/c", "s3cret", "postgres://a:s3cret@b:5432/"):
        site.url = url
        refused = site.move()
        assert refused.returncode == 1
        assert "no address of PostgreSQL" in refused.stderr
        assert "s3cret" not in refused.stderr
