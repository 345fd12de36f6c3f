"""A backup that is not whole or does not fit the site is refused. tests/services puts whole ones back."""

import hashlib
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.common.files import store_file
from annotation.common.storage import StorageError
from annotation.errors import HypacError, InputError
from annotation.models import Project, SignOnSession, User
from hypac_site.backup.databases import end_sessions
from hypac_site.backup.making import make_backup
from hypac_site.backup.restoring import check_backup, restore_backup

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database]
OF_0_2 = [["annotation", "0001_initial"], ["annotation", "0002_task_types_and_pauses"]]


@pytest.fixture
def project(project: Project, tmp_path: Path, settings) -> Project:
    settings.MEDIA_ROOT = tmp_path / "media"
    for text in (b"one", b"two"):
        store_file(project=project, content=io.BytesIO(text), original_name="x.txt", media_type="text/plain")
    default_storage.save("batches/key/000001-abc.jsonl", io.BytesIO(b"{}\n"))
    return project


@pytest.fixture
def backup(project: Project, tmp_path: Path) -> Path:
    if connection.vendor == "postgresql" and shutil.which("pg_dump") is None:
        pytest.skip("pg_dump is not installed.")
    make_backup(tmp_path / "copy")
    return tmp_path / "copy"


Change = Callable[[Path], object]


def change_manifest(folder: Path, **fields: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def change_file(folder: Path) -> None:
    file = next(path for path in sorted((folder / "files").rglob("*")) if path.is_file())
    file.write_bytes(b"x" + file.read_bytes()[1:])


def lead_outside(folder: Path) -> None:
    index = folder / "files.jsonl"
    index.write_text(json.dumps({"name": "../../stolen", "size": 1, "sha256": "0"}) + "\n")
    change_manifest(folder, index_sha256=hashlib.sha256(index.read_bytes()).hexdigest())


def forge_database(folder: Path, content: bytes) -> None:
    """With a manifest that says that it is so."""
    path = next(folder.glob("database.*"))
    path.write_bytes(content)
    change_manifest(folder, database_sha256=hashlib.sha256(content).hexdigest())


def link_a_file(folder: Path) -> None:
    """What it leads to has the very bytes."""
    file = next(path for path in sorted((folder / "files").rglob("*")) if path.is_file())
    file.rename(folder.parent / "elsewhere")
    file.symlink_to(folder.parent / "elsewhere")


def pipe_a_file(folder: Path) -> None:
    file = next(path for path in sorted((folder / "files").rglob("*")) if path.is_file())
    file.unlink()
    os.mkfifo(file)


def cut_database(folder: Path) -> None:
    path = next(folder.glob("database.*"))
    path.write_bytes(path.read_bytes()[:-100])


def test_a_whole_one_is_whole(backup: Path) -> None:
    found = check_backup(backup)
    assert found.keys_fit
    assert found.behind == []
    assert found.manifest.files == 3, "results of batches, which no row names, are in it"
    assert found.manifest.missing == []
    assert sorted(path.name for path in backup.iterdir()) == sorted(
        ["manifest.json", found.manifest.database, "files.jsonl", "files"]
    )


def test_sessions_are_not_in_it(project: Project, tmp_path: Path) -> None:
    """Whoever finds one would be logged in by its key."""
    client = Client()
    client.force_login(project.created_by)
    key = client.session.session_key
    note_session(project.created_by, key)
    make_backup(tmp_path / "copy")
    dump = next((tmp_path / "copy").glob("database.*"))
    content = dump.read_bytes()
    if connection.vendor == "postgresql":
        read = ["pg_restore", "--data-only", "--file=-", str(dump)]
        content = subprocess.run(read, check=True, capture_output=True).stdout
    assert project.name.encode() in content
    assert key.encode() not in content
    assert client.get("/").status_code == 200, "here it goes on"


def test_sessions_of_an_older_backup_do_not_come_back(project: Project) -> None:
    client = Client()
    client.force_login(project.created_by)
    note_session(project.created_by, client.session.session_key)
    end_sessions()
    assert not SignOnSession.objects.exists()
    assert client.get("/").status_code == 302


def note_session(user: User, key: str) -> None:
    SignOnSession.objects.create(user=user, session_key=key, ends_at=timezone.now())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "not finished"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "cannot be read"),
        (lambda folder: change_manifest(folder, format=2), "another version"),
        (lambda folder: change_manifest(folder, migrations=[["annotation", "9999_next"]]), "9999_next"),
        (lambda folder: change_manifest(folder, migrations=OF_0_2), "version 0.2.0"),
        (change_file, "damaged"),
        (cut_database, "damaged"),
        (lambda folder: (folder / "files.jsonl").write_text(""), "damaged"),
        (lambda folder: forge_database(folder, b"no database" * 1000), "cannot be read"),
        (lambda folder: forge_database(folder, b""), "cannot be read"),
        (link_a_file, "damaged"),
        (pipe_a_file, "damaged"),
        (lambda folder: change_manifest(folder, bytes="many"), "wrong kind"),
        (lead_outside, "outside of the storage"),
    ],
)
def test_one_that_is_not_is_refused(backup: Path, change: Change, words: str) -> None:
    change(backup)
    with pytest.raises(InputError, match=words):
        check_backup(backup)
    with pytest.raises(CommandError, match=words):
        call_command("restore", str(backup), check=True)


def test_a_database_of_the_other_kind_is_refused(backup: Path) -> None:
    change_manifest(backup, vendor="oracle")
    with pytest.raises(InputError, match="this site uses"):
        restore_backup(backup)


def test_nothing_is_put_over_what_is_there(backup: Path) -> None:
    with pytest.raises(HypacError, match="not empty"):
        restore_backup(backup)
    assert Project.objects.count() == 1


def test_a_backup_has_a_name_of_its_own(backup: Path) -> None:
    with pytest.raises(HypacError, match="already there"):
        make_backup(backup)


def test_one_that_fails_leaves_nothing_behind(project, tmp_path, monkeypatch) -> None:
    def refuse(name: str, mode: str = "rb") -> None:
        raise StorageError("the store does not answer")

    monkeypatch.setattr("hypac_site.backup.making.default_storage", SimpleNamespace(open=refuse))
    with pytest.raises(CommandError, match="does not answer"):
        call_command("backup", str(tmp_path / "copy"))
    assert [path.name for path in tmp_path.iterdir()] == ["media"]


def test_other_keys_are_told(backup: Path, settings) -> None:
    settings.SECRET_KEY = "another" * 10
    assert not check_backup(backup).keys_fit
    out = io.StringIO()
    call_command("restore", str(backup), check=True, stdout=out)
    assert "do not open the stored keys" in out.getvalue()


def test_an_older_one_says_that_it_has_to_be_migrated(backup: Path) -> None:
    manifest = json.loads((backup / "manifest.json").read_text())
    change_manifest(backup, migrations=manifest["migrations"][:-2])
    assert len(check_backup(backup).behind) == 2


def test_files_that_are_lost_or_damaged_are_told_and_the_rest_is_kept(project, tmp_path) -> None:
    if connection.vendor == "postgresql" and shutil.which("pg_dump") is None:
        pytest.skip("pg_dump is not installed.")
    one, two = project.files.order_by("pk")
    default_storage.delete(one.storage_name)
    Path(default_storage.path(two.storage_name)).write_bytes(b"not two")
    with pytest.raises(CommandError, match="2 files"):
        call_command("backup", str(tmp_path / "copy"), stdout=io.StringIO())
    found = check_backup(tmp_path / "copy")
    assert sorted(found.manifest.missing) == sorted([one.storage_name, two.storage_name])
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0, "for nobody else on this machine"
