"""What nothing names in the storage of files, and what a storage on a disk promises."""

import io
import os
import threading
import time
from pathlib import Path

import pytest
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command

from annotation.common.files import clean_files, open_file, put_content, store_file
from annotation.common.storage import UNFINISHED, StorageError
from annotation.errors import InputError
from annotation.models import Project
from testbed.factories import make_project

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def media(settings, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    return settings.MEDIA_ROOT


@pytest.fixture
def project() -> Project:
    return make_project()


def put(project: Project, content: bytes) -> str:
    return put_content(project=project, content=io.BytesIO(content)).storage_name


def grow_old(media: Path, hours: float = 48) -> None:
    for path in media.rglob("*"):
        if path.is_file():
            os.utime(path, (time.time() - hours * 3600,) * 2)


def store(project: Project, content: bytes):
    return store_file(
        project=project, content=io.BytesIO(content), original_name="a.csv", media_type="text/csv"
    )


def test_only_what_nothing_names_and_is_old_is_removed(project, media, capsys) -> None:
    kept, orphan = store(project, b"named"), put(project, b"of an import that was killed")
    (media / f"{orphan}.0{UNFINISHED}").write_bytes(b"cut off")
    default_storage.save("batches/key/000001-ab.jsonl", ContentFile(b"{}"))
    tried = default_storage.save("ready/0123", ContentFile(b"ready"))
    grow_old(media)
    young = put(project, b"a job is at work on it")

    call_command("clean_files")
    assert "2 that nothing names, of 33 bytes, and 1 unfinished writes: could be" in capsys.readouterr().out
    assert default_storage.exists(orphan), "it only counts"

    call_command("clean_files", "--remove")
    assert "1 are younger than 24 hours" in capsys.readouterr().out
    assert not default_storage.exists(orphan)
    assert not list(media.rglob(f"*{UNFINISHED}"))
    assert not default_storage.exists(tried), "a look at the storage that was killed"
    assert default_storage.exists(young)
    assert default_storage.exists("batches/key/000001-ab.jsonl")
    with open_file(kept) as file:
        assert file.read() == b"named"


def test_bytes_that_come_again_before_anything_names_them_count_as_young(project, media) -> None:
    orphan = put(project, b"an import that was killed")
    grow_old(media)
    assert put(project, b"an import that was killed") == orphan
    assert clean_files(older_than_hours=24, remove=True).young == 1
    assert default_storage.exists(orphan)


def test_a_file_that_is_named_is_not_written_twice(project, media) -> None:
    stored = store(project, b"named")
    grow_old(media)
    before = default_storage.get_modified_time(stored.storage_name)
    assert store(project, b"named") == stored
    assert default_storage.get_modified_time(stored.storage_name) == before


def test_less_than_an_hour_is_refused(project) -> None:
    with pytest.raises(InputError):
        clean_files(older_than_hours=0, remove=True)
    with pytest.raises(CommandError):
        call_command("clean_files", "--older-than=0")


def test_writers_of_the_same_bytes_leave_one_whole_file(project, media) -> None:
    content = os.urandom(300_000)
    name = "projects/1/ab/same"
    start, failures = threading.Barrier(4, timeout=300), []

    def write() -> None:
        start.wait()
        try:
            for _ in range(10):
                assert default_storage.save(name, ContentFile(content)) == name
                with default_storage.open(name) as file:
                    assert file.read() == content, "it is there as a whole, at every moment"
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [path.name for path in media.rglob("*") if path.is_file()] == ["same"]


def test_a_write_that_fails_leaves_nothing_and_says_what_every_storage_says(media) -> None:
    class Torn(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="No space left on device") as told:
        default_storage.save("projects/1/ab/torn", File(Torn(b"x")))
    assert not told.value.permanent
    assert not [path for path in media.rglob("*") if path.is_file()]
