"""Backups taken while people and workers write, put back on PostgreSQL and on SQLite."""

import hashlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from annotation.common.files import open_file, store_file
from annotation.models import StoredFile
from hypac_site import environment
from hypac_site.backup.making import make_backup
from hypac_site.backup.restoring import check_backup, put_files
from testbed.factories import make_project
from testbed.object_store import ObjectStoreServer
from testbed.servers import create_database, drop_database
from tests.services.conftest import ROOT, Site
from tests.template_database import copy_sqlite

# A run from its plan to its delivery. Then somebody writes files and pairs of items, each pair in one
# transaction and with the name of a file: half a pair, or one without its file, is a torn backup.
WRITER = """
import django; django.setup()
import io, pathlib, sys
from django.db import transaction
from annotation.models import Item
from annotation.common.files import store_file
from routing.delivery.deliver import deliver
from testbed.worlds import make_world
world = make_world(200)
finish = world.finish
def in_a_transaction():
    with transaction.atomic():
        finish()
world.finish = in_a_transaction
run = world.complete(m=60)
world.do(deliver(run=run, user=world.manager).kind)
folder, project, number = pathlib.Path(sys.argv[1]), world.project, 0
while not (folder / "stop").exists():
    number += 1
    content = io.BytesIO(b"content %d" % number)
    stored = store_file(project=project, content=content, original_name="x.txt", media_type="text/plain")
    with transaction.atomic():
        for part in (0, 1):
            Item.objects.create(
                project=project, external_id=f"new-{number}-{part}", position=100_000 + 2 * number + part,
                text=stored.sha256, content_hash=stored.sha256,
            )
    (folder / "written").write_text(str(number))
"""
WHAT_IS_THERE = """
import django; django.setup()
import json
from django.core.files.storage import default_storage
from annotation.models import Item, Label, StoredFile
from annotation.common.files import open_file
from routing.core.verify import verify
from routing.models import Delivery, Prediction
files = {entry.name: entry.file for entry in Delivery.objects.get().files.select_related("file")}
def read(name):
    with open_file(files[name]) as file:
        return file.read()
new = list(Item.objects.filter(external_id__startswith="new-"))
stored = set(StoredFile.objects.values_list("sha256", flat=True))
print(json.dumps({
    "verified": verify(read("certificate.json"), read("draw.jsonl")),
    "files": sorted(files),
    "labels": Label.objects.count(),
    "predictions": Prediction.objects.count(),
    "new": len(new),
    "torn": [item.external_id for item in new if item.text not in stored],
    "lost": [s.storage_name for s in StoredFile.objects.all() if not default_storage.exists(s.storage_name)],
}))
"""


def start(site: Site, code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=site.environment | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors
    return output


@pytest.fixture
def sqlite_site(tmp_path: Path) -> Site:
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    settings = {"HYPAC_VAR": str(tmp_path / "var"), "DJANGO_SETTINGS_MODULE": "hypac_site.settings"}
    copy_sqlite(tmp_path / "var" / "hypac.sqlite3")
    return Site(kept | settings)


@pytest.fixture(params=["postgres", "sqlite"])
def site(request: pytest.FixtureRequest) -> Site:
    found: Site = request.getfixturevalue(f"{request.param}_site")
    return found


@pytest.fixture
def empty(site: Site, tmp_path: Path) -> Iterator[Site]:
    """Another installation of the same kind, with nothing in it."""
    environment = {**site.environment, "HYPAC_VAR": str(tmp_path / "other")}
    url = site.environment.get("DATABASE_URL")
    if url is None:
        yield Site(environment)
        return
    name = url.rsplit("/", 1)[1] + "_other"
    yield Site({**environment, "DATABASE_URL": create_database(url, name)})
    drop_database(url, name)


@pytest.mark.django_db(transaction=True)
def test_files_in_an_object_store_come_back(tmp_path: Path, settings, monkeypatch) -> None:
    with ObjectStoreServer() as server:
        bucket = server.bucket()
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        settings.STORAGES = {**settings.STORAGES, "default": environment.file_storage()}
        content = {"rows.csv": b"id,text\n1,one\n", "large.bin": Random(1).randbytes(20 * 1024**2)}
        for name, data in content.items():
            file = io.BytesIO(data)
            store_file(project=make_project(), content=file, original_name=name, media_type="text/plain")
        default_storage.save("batches/key/000001-abc.jsonl", ContentFile(b"{}\n"))
        names = bucket.names()
        assert len(names) == 3
        make_backup(tmp_path / "copy")
        assert check_backup(tmp_path / "copy").manifest.files == 3
        for name in names:
            bucket.client.delete_object(Bucket=bucket.name, Key=name)
        of_rows = hashlib.sha256(content["rows.csv"]).hexdigest()
        (changed,) = (name for name in names if of_rows in name)
        bucket.client.put_object(
            Bucket=bucket.name, Key=changed, Body=b"id,text\n1,two\n"
        )  # of the same size
        put_files(tmp_path / "copy")
        assert bucket.names() == names
        for stored in StoredFile.objects.all():
            with open_file(stored) as opened:
                assert opened.read() == content[stored.original_name]


def test_a_backup_taken_beside_writers_brings_everything_back(
    site: Site, empty: Site, tmp_path: Path
) -> None:
    writer = start(site, WRITER, str(tmp_path))
    try:
        while not (tmp_path / "written").exists():
            assert writer.poll() is None, writer.communicate()[1]
            time.sleep(0.1)
        said = site.manage("backup", str(tmp_path / "copy"))
    finally:
        (tmp_path / "stop").touch()
        finished(writer)
    written = int((tmp_path / "written").read_text())
    assert "DJANGO_SECRET_KEY" in said, "what is not in it is said"

    assert "is put back" in empty.manage("restore", str(tmp_path / "copy"))
    found = json.loads(finished(start(empty, WHAT_IS_THERE)))
    assert found["verified"] == [], "the certificate holds"
    assert {"labels.csv", "labels.jsonl", "certificate.json", "draw.jsonl"} <= set(found["files"])
    assert found["torn"] == found["lost"] == []
    assert 0 < found["new"] < 2 * written, "people went on meanwhile"
    assert found["new"] % 2 == 0, "no transaction was cut in two"
    assert found["labels"] > 60
    assert found["predictions"] > 200
