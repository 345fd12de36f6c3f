"""One object that cannot be read or named does not stop what else is in a synchronised bucket."""

import gzip
import io
import itertools
import zipfile
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from annotation.common.files import open_file
from annotation.errors import HypacError, InputError
from annotation.imports import bucket_look
from annotation.imports.bucket_sync import HowToImport, look_now
from annotation.imports.columns import ColumnMapping
from annotation.imports.fetching import fetch
from annotation.jobs import jobs
from annotation.models import BucketSync, Job, StoredFile
from annotation.outside import buckets
from annotation.outside.buckets import ELSEWHERE, KEYS_REFUSED, Bucket as Client, ObjectInfo
from annotation.outside.net.client import BADLY_COMPRESSED, TOO_LARGE
from testbed.factories import make_project
from testbed.object_store import Bucket
from tests.services.test_bucket_sync import looked, names, put, rows, states, synchronised
from tests.services.test_connections import done

pytestmark = pytest.mark.django_db


@pytest.fixture
def sync(bucket: Bucket) -> BucketSync:
    for name in ("a", "b", "c"):
        put(bucket, f"in/{name}.csv", rows(name))
    return synchronised(make_project(), bucket)


def deny(monkeypatch: pytest.MonkeyPatch, *denied: str) -> None:
    """A store that does not hand these out, such as those that it has put into an archive."""
    pieces = Client.chunks

    def refused(self: Client, found: ObjectInfo) -> Iterator[bytes]:
        if found.key in denied:
            raise KEYS_REFUSED.error(raised_as=InputError, where="connection", said="403 InvalidObjectState")
        return pieces(self, found)

    monkeypatch.setattr(Client, "chunks", refused)


def test_an_object_that_is_denied_is_named_once_and_the_others_go_on(sync, monkeypatch):
    deny(monkeypatch, "in/a.csv", "in/b.csv")
    job = looked(sync)
    assert job.state == Job.State.DONE, job.error
    assert job.result == {"found": 3, "taken": 1, "refused": 2, "written": 0}
    assert states(sync) == {"in/a.csv": "waiting", "in/b.csv": "waiting", "in/c.csv": "taken"}
    assert "403 InvalidObjectState" in sync.files.get(key="in/a.csv").error_in_words
    assert looked(sync).result["refused"] == 0, "it is no news"
    monkeypatch.undo()
    assert looked(sync).result["taken"] == 2
    assert names(sync.connection.project) == {"a", "b", "c"}
    assert not sync.files.exclude(error="").exists()


def test_a_folder_that_is_fetched_goes_on_without_what_is_denied(sync, monkeypatch):
    deny(monkeypatch, "in/a.csv", "in/b.csv")
    project = sync.connection.project
    job = done(fetch(connection=sync.connection, user=project.created_by, key="in/"))
    assert (job.state, job.result["left_out"]) == (Job.State.DONE, 2), job.error
    with open_file(StoredFile.objects.get(pk=job.result["file"])) as file:
        assert zipfile.ZipFile(io.BytesIO(file.read())).namelist() == ["c.csv"]
    told = dict(job.problems.values_list("where", "message"))
    assert set(told) == {"a.csv", "b.csv"}
    assert all("403 InvalidObjectState" in words for words in told.values())


def test_a_folder_of_which_nothing_is_handed_out_is_an_error(sync, monkeypatch):
    deny(monkeypatch, "in/a.csv", "in/b.csv", "in/c.csv")
    job = done(fetch(connection=sync.connection, user=sync.connection.project.created_by, key="in/"))
    assert (job.state, "403 InvalidObjectState" in job.error) == (Job.State.FAILED, True)
    assert not StoredFile.objects.exists()


def test_many_denied_objects_hold_up_none_that_come_later(sync, bucket, monkeypatch):
    monkeypatch.setattr(bucket_look, "MOST_DENIED", 2)
    deny(monkeypatch, "in/a.csv", "in/b.csv")
    assert looked(sync).error_code == "store_refused_keys"
    assert looked(sync).result["taken"] == 1
    assert looked(sync).state == Job.State.DONE, "nobody is told of it again"


@pytest.mark.parametrize(
    "refusal",
    [
        ELSEWHERE.error(raised_as=InputError, where="connection", said="307"),
        TOO_LARGE.error(host="127.0.0.1", max_bytes=1, raised_as=HypacError),
        BADLY_COMPRESSED.error(host="127.0.0.1", raised_as=HypacError),
    ],
)
def test_what_a_store_does_with_one_object_holds_up_no_other(sync, monkeypatch, refusal):
    pieces = Client.chunks

    def one_bad(self: Client, found: ObjectInfo) -> Iterator[bytes]:
        if found.key == "in/a.csv":
            raise refusal
        return pieces(self, found)

    monkeypatch.setattr(Client, "chunks", one_bad)
    job = looked(sync)
    assert (job.state, job.result["taken"], job.result["refused"]) == (Job.State.DONE, 2, 1), job.error


def test_a_store_that_lists_other_names_each_time_fills_no_database(sync, monkeypatch):
    monkeypatch.setattr(bucket_look, "MAX_OBJECTS", 5)
    monkeypatch.setattr(bucket_look, "AT_ONCE", 2)
    times = itertools.count()

    def endless(self: Client, *args: Any, **options: Any) -> Iterator[ObjectInfo]:
        look = next(times)
        return (ObjectInfo(f"in/{look}-{number}.csv", 5, "e") for number in itertools.count())

    monkeypatch.setattr(Client, "list_objects", endless)
    for _look in range(5):
        assert looked(sync).error_code == "too_many_in_folder"
        assert sync.files.count() <= 10
    monkeypatch.undo()
    assert looked(sync).result["taken"] == 3, "and an honest listing goes on"


KEYS = ["in/" + "x" * 1100 + ".csv", "in/" + "é" * 600 + ".csv", "in/a\0b.csv", "in/a\ud800b.csv"]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_cannot_be_kept_is_named_and_the_others_go_on(sync, monkeypatch, key):
    found = Client.list_objects

    def more(self: Client, *args: Any, **options: Any) -> Iterator[ObjectInfo]:
        yield ObjectInfo(key, 5, "e")
        yield from found(self, *args, **options)

    monkeypatch.setattr(Client, "list_objects", more)
    job = looked(sync)
    assert job.state == Job.State.DONE, job.error
    assert job.result == {"found": 4, "taken": 3, "refused": 1, "written": 0}
    refused = sync.files.get(state="refused")
    assert refused.key.startswith(key[:4])
    assert "1,024 bytes" in refused.error
    assert looked(sync).result["found"] == 0


def test_the_name_of_such_a_key_is_short_enough_for_an_index_of_postgresql():
    key = "in/" + "".join(chr(0x4E00 + number * 37 % 20_000) for number in range(1100))
    assert len(bucket_look._storable_key(key).encode()) < 1100
    assert bucket_look._storable_key(key) != bucket_look._storable_key(key + "x")


def test_an_object_that_is_stored_compressed_is_read_as_it_is_stored(sync, bucket):
    packed = gzip.compress(rows(*(f"z{number}" for number in range(50))))
    bucket.client.put_object(Bucket=bucket.name, Key="in/a.csv", Body=packed, ContentEncoding="gzip")
    assert looked(sync).result["taken"] == 3
    assert {"z0", "z49", "b", "c"} <= names(sync.connection.project)


@pytest.mark.parametrize(
    ("change", "why"), [({"size": 500}, "in place of 500"), ({"etag": "a\r\nb"}, "header")]
)
def test_an_object_that_is_not_as_listed_holds_up_no_other(sync, monkeypatch, change, why):
    found = Client.list_objects

    def lying(self: Client, *args: Any, **options: Any) -> Iterator[ObjectInfo]:
        for one in found(self, *args, **options):
            yield one._replace(**change) if one.key == "in/a.csv" else one

    monkeypatch.setattr(Client, "list_objects", lying)
    job = looked(sync)
    assert job.state == Job.State.DONE, job.error
    assert states(sync) == {"in/a.csv": "waiting", "in/b.csv": "taken", "in/c.csv": "taken"}
    assert why in sync.files.get(key="in/a.csv").error


def test_a_listing_ends_in_time(sync, monkeypatch):
    clock = iter(range(0, 10**6, 400))
    monkeypatch.setattr(buckets, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(HypacError) as told:
        list(bucket_look.store_of(sync.connection).list_objects("in/", seconds=300))
    assert told.value.code == "store_lists_too_slowly"
    assert not told.value.permanent


def test_after_a_look_that_was_given_up_no_file_is_imported_twice(sync, monkeypatch):
    """Its worker died between the start of an import and its mark, each time."""
    project = sync.connection.project
    job = look_now(sync=sync, user=sync.user)

    class Died(BaseException):
        pass

    def die(*args: Any, **options: Any) -> None:
        raise Died

    monkeypatch.setattr(bucket_look._Look, "_settle", die)
    with pytest.raises(Died):
        done(job)
    monkeypatch.undo()
    begun = project.jobs.get(kind="import")
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED, claim_token="")
    jobs.run(begun.pk)
    assert looked(sync).result["taken"] == 3
    assert sync.files.get(key="in/a.csv").job == begun
    imports = project.jobs.filter(kind="import")
    assert [entry.result["added"] for entry in imports.order_by("pk")] == [1, 1, 1]


def test_items_are_named_by_the_folders_of_their_file(bucket):
    sync = synchronised(make_project(), bucket, how=HowToImport(ColumnMapping(text_column="text")))
    put(bucket, "in/may/first half/data.csv", rows("x"))
    looked(sync)
    (name,) = names(sync.connection.project)
    assert "may › first half › data.csv" in name
    assert sync.connection.project.files.get().original_name == "may › first half › data.csv"
