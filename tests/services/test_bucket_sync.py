"""Buckets that are synchronised: what is new in them is imported once, and deliveries are written back."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from annotation.errors import InputError
from annotation.imports import bucket_look
from annotation.imports.bucket_sync import (
    HowToImport,
    end_sync,
    look_now,
    looks_of,
    save_sync,
    start_due,
)
from annotation.imports.columns import ColumnMapping
from annotation.jobs import jobs
from annotation.models import BucketFile, BucketSync, Connection, Job, Membership, Project
from annotation.outside.buckets import KEYS_REFUSED, Bucket as Client, ObjectInfo
from annotation.outside.connections import update_connection
from routing.ports import Routing
from testbed.factories import add_member, make_project
from testbed.object_store import SECRET, Bucket
from tests.services.test_connections import connected, done

pytestmark = pytest.mark.django_db
HOW = HowToImport(ColumnMapping(id_column="id", text_column="text"), format_name="csv")


def rows(*names: str) -> bytes:
    return ("id,text\n" + "".join(f"{name},text of {name}\n" for name in names)).encode()


def put(store: Bucket, key: str, content: bytes) -> None:
    store.client.put_object(Bucket=store.name, Key=key, Body=content)


def synchronised(project: Project, store: Bucket, **options: Any) -> BucketSync:
    """A bucket from whose folder "in" new files are taken."""
    values = {"how": HOW, "take_from": "in", **options}
    return save_sync(connection=connected(project, store), actor=project.created_by, **values)


def looked(sync: BucketSync) -> Job:
    job = done(look_now(sync=sync, user=sync.user))
    sync.refresh_from_db()
    return job


def states(sync: BucketSync) -> dict[str, str]:
    return dict(sync.files.values_list("key", "state"))


def names(project: Project) -> set[str]:
    return set(project.items.values_list("external_id", flat=True))


class TestTaking:
    def test_each_file_is_imported_once_and_a_changed_one_again(self, bucket):
        project = make_project()
        sync = synchronised(project, bucket)
        put(bucket, "in/a.csv", rows("a1", "a2"))
        put(bucket, "in/deep/b.csv", rows("b1"))
        put(bucket, "in/", b"")
        put(bucket, "elsewhere/c.csv", rows("c1"))
        job = looked(sync)
        assert job.state == Job.State.DONE, job.error
        assert job.result == {"found": 2, "taken": 2, "refused": 0, "written": 0}
        assert names(project) == {"a1", "a2", "b1"}
        assert states(sync) == {"in/a.csv": "taken", "in/deep/b.csv": "taken"}
        assert looked(sync).result["found"] == 0
        assert project.jobs.filter(kind="import").count() == 2
        put(bucket, "in/a.csv", rows("a1", "a2", "a3"))
        job = looked(sync)
        assert (job.result["found"], job.result["taken"]) == (1, 1)
        assert sync.files.get(key="in/a.csv").job.result["added"] == 1
        assert names(project) == {"a1", "a2", "a3", "b1"}

    def test_what_cannot_be_read_is_told_and_tried_when_it_changes(self, bucket):
        project = make_project()
        sync = synchronised(project, bucket)
        put(bucket, "in/a.csv", b"name,words\nx,y\n")
        put(bucket, "in/b.csv", b"")
        put(bucket, "in/c.csv", rows("c1"))
        job = looked(sync)
        assert (job.state, job.result["taken"], job.result["refused"]) == (Job.State.DONE, 1, 2)
        assert "no column" in sync.files.get(key="in/a.csv").error
        assert sync.files.get(key="in/b.csv").error_in_words
        looked(sync)
        assert looked(sync).result["refused"] == 0
        put(bucket, "in/a.csv", rows("a1"))
        looked(sync)
        assert states(sync) == {"in/a.csv": "taken", "in/b.csv": "refused", "in/c.csv": "taken"}
        assert names(project) == {"a1", "c1"}
        bucket.client.delete_object(Bucket=bucket.name, Key="in/b.csv")
        looked(sync)
        assert set(states(sync)) == {"in/a.csv", "in/c.csv"}

    def test_an_import_that_fails_is_not_begun_again_by_itself(self, bucket):
        project = make_project()
        sync = synchronised(project, bucket)
        put(bucket, "in/a.csv", b"id,text\n,\n,\n")
        looked(sync)
        found = sync.files.get()
        assert (found.state, found.job.state) == ("taken", Job.State.FAILED)
        looked(sync)
        assert project.jobs.filter(kind="import").count() == 1

    def test_other_columns_give_refused_files_another_chance(self, bucket):
        project = make_project()
        sync = synchronised(project, bucket)
        put(bucket, "in/a.csv", b"name,words\nx,some words\n")
        looked(sync)
        assert states(sync) == {"in/a.csv": "refused"}
        how = HowToImport(ColumnMapping(id_column="name", text_column="words"))
        save_sync(connection=sync.connection, actor=project.created_by, how=how, take_from="in")
        sync.refresh_from_db()
        looked(sync)
        assert names(project) == {"x"}

    def test_two_folders_may_have_files_of_the_same_name(self, bucket):
        project = make_project()
        sync = synchronised(project, bucket, how=HowToImport(ColumnMapping(text_column="text")))
        put(bucket, "in/may/data.csv", rows("a", "b"))
        put(bucket, "in/june/data.csv", rows("c", "d"))
        looked(sync)
        assert project.items.count() == 4

    def test_more_than_a_thousand_objects_are_found(self, bucket, monkeypatch):
        project = make_project()
        sync = synchronised(project, bucket)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: put(bucket, f"in/{number:04}.csv", b"x"), range(1003)))
        # Their imports are none of this test's business, and take their time.
        monkeypatch.setattr(bucket_look._Look, "take", lambda self: None)
        assert looked(sync).result["found"] == 1003
        assert sync.files.count() == 1003
        assert looked(sync).result["found"] == 0
        monkeypatch.setattr(bucket_look, "MAX_OBJECTS", 1002)
        job = looked(sync)
        assert (job.state, job.error_code) == (Job.State.FAILED, "too_many_in_folder")

    def test_names_of_objects_are_only_names(self, bucket):
        project = make_project()
        sync = synchronised(project, bucket, how=HowToImport(ColumnMapping(text_column="text")))
        hostile = ["in/<b>&x.csv", "in/a b+c%2e?#.csv", "in/ü\u202e\x07.csv", "in/'; DROP TABLE x.csv"]
        for number, key in enumerate(hostile):
            put(bucket, key, rows(f"r{number}"))
        job = looked(sync)
        assert job.state == Job.State.DONE, job.error
        assert states(sync) == dict.fromkeys(hostile, "taken")
        assert project.items.count() == 4

    def test_a_key_that_would_be_another_one_on_its_way_is_refused(self, bucket, monkeypatch):
        project = make_project()
        sync = synchronised(project, bucket)
        found = Client.list_objects

        def with_dots(self: Client, *args: Any, **options: Any) -> Any:
            for entry in found(self, *args, **options):
                yield entry._replace(key="in/../other.csv")

        put(bucket, "in/a.csv", rows("a"))
        monkeypatch.setattr(Client, "list_objects", with_dots)
        assert looked(sync).result["refused"] == 1
        assert "none of its parts" in sync.files.get().error
        monkeypatch.setattr(
            Client, "list_objects", lambda *args, **options: iter([ObjectInfo("x" * 2000, 1, "e")])
        )
        assert looked(sync).state == Job.State.QUEUED
        assert not names(project)


class TestFaults:
    @pytest.fixture
    def sync(self, bucket: Bucket) -> BucketSync:
        put(bucket, "in/a.csv", rows("a1", "a2"))
        put(bucket, "in/b.csv", rows("b1"))
        return synchronised(make_project(), bucket)

    @pytest.mark.parametrize("dies_at", ["found", "between", "after"])
    def test_a_worker_that_dies_leaves_nothing_doubled(self, sync, monkeypatch, dies_at):
        """Before an import, between its start and its mark, and behind that."""
        project = sync.connection.project
        job = look_now(sync=sync, user=sync.user)

        class Died(BaseException):
            pass

        settle = bucket_look._Look._settle

        def die(self: Any, *args: Any, **values: Any) -> Any:
            if dies_at == "after":
                settle(self, *args, **values)
            raise Died

        place = "take" if dies_at == "found" else "_settle"
        monkeypatch.setattr(bucket_look._Look, place, die)
        with pytest.raises(Died):
            done(job)
        monkeypatch.undo()
        # What was begun goes on, and the reconciler gives the job to another worker.
        Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, claim_token="")
        for _attempt in range(2):
            for begun in Job.objects.filter(kind="import", state=Job.State.QUEUED):
                done(begun)
            done(job)
        assert job.state == Job.State.DONE, job.error
        assert job.result == {"found": 2, "taken": 2, "refused": 0, "written": 0}
        imports = project.jobs.filter(kind="import")
        assert [entry.result["added"] for entry in imports.order_by("pk")] == [2, 1]

    def test_beside_another_import_it_waits_and_counts_no_attempt(self, sync, settings, monkeypatch):
        project = sync.connection.project
        monkeypatch.setattr("annotation.jobs.jobs.run", lambda pk: False)  # nobody does the import
        job = look_now(sync=sync, user=sync.user)
        monkeypatch.undo()
        real = bucket_look.jobs.run
        monkeypatch.setattr(bucket_look.jobs, "run", lambda pk: real(pk) if pk == job.pk else False)
        for _attempt in range(settings.HYPAC_JOB_MAX_ATTEMPTS + 2):
            done(job)
            assert job.state == Job.State.QUEUED
            assert "begins by itself" in job.error
        assert project.jobs.filter(kind="import").count() == 1
        monkeypatch.undo()
        done(project.jobs.get(kind="import"))
        assert done(job).state == Job.State.DONE, job.error
        assert names(project) == {"a1", "a2", "b1"}

    def test_while_it_waits_it_neither_lists_nor_reads_nor_writes_again(self, sync, monkeypatch):
        project = sync.connection.project
        other = jobs.enqueue(project=project, kind_name="import", params={}, unique_key="import")
        calls: list[str] = []
        for name in ("list_objects", "chunks"):
            whole = getattr(Client, name)
            monkeypatch.setattr(
                Client,
                name,
                lambda *args, name=name, whole=whole, **options: (
                    calls.append(name) or whole(*args, **options)
                ),
            )
        monkeypatch.setattr(Routing, "write_deliveries", lambda *args, **options: calls.append("write") or 1)
        job = look_now(sync=sync, user=sync.user)
        for _attempt in range(3):
            assert done(job).state == Job.State.QUEUED
        assert sorted(calls) == ["list_objects", "write"]
        jobs.cancel(job=other)
        assert done(job).state == Job.State.DONE, job.error
        assert sorted(calls) == ["chunks", "chunks", "list_objects", "write"]
        assert job.result == {"found": 2, "taken": 2, "refused": 0, "written": 1}

    def test_of_two_files_of_the_same_bytes_each_has_its_import(self, sync, bucket):
        put(bucket, "in/b.csv", rows("a1", "a2"))
        assert looked(sync).result["taken"] == 2
        first, second = sync.files.order_by("key")
        assert first.job != second.job
        assert [job.params["key"] for job in (first.job, second.job)] == ["in/a.csv", "in/b.csv"]
        assert [job.result["added"] for job in (first.job, second.job)] == [2, 0]

    @pytest.mark.parametrize("what", ["ended", "moved", "forbidden"])
    def test_what_is_stopped_while_it_looks_is_imported_no_more(self, sync, monkeypatch, what):
        brought = bucket_look._Look._brought

        def then_stop(*args: Any) -> Any:
            stored = brought(*args)
            if what == "ended":
                end_sync(sync=sync, actor=sync.user)
            elif what == "moved":
                Connection.objects.update(prefix="elsewhere/")
            else:
                Membership.objects.update(role="viewer")
            return stored

        monkeypatch.setattr(bucket_look._Look, "_brought", then_stop)
        job = done(look_now(sync=sync, user=sync.user))
        wanted = "may_not_import" if what == "forbidden" else "not_synchronised"
        assert (job.state, job.error_code) == (Job.State.FAILED, wanted)
        assert not names(job.project)

    def test_an_object_that_changes_while_it_is_read_waits_for_the_next_look(self, sync, bucket, monkeypatch):
        pieces = Client.chunks

        def changed(self: Client, found: Any) -> Any:
            if found.key == "in/a.csv":
                put(bucket, "in/a.csv", rows("a1", "a2", "a3"))
            return pieces(self, found)

        monkeypatch.setattr(Client, "chunks", changed)
        assert looked(sync).state == Job.State.DONE
        assert states(sync) == {"in/a.csv": "waiting", "in/b.csv": "taken"}
        monkeypatch.undo()
        looked(sync)
        assert names(sync.connection.project) == {"a1", "a2", "a3", "b1"}

    def test_an_object_that_goes_away_is_forgotten(self, sync, bucket, monkeypatch):
        find = bucket_look._Look.find

        def gone(self: Any) -> None:
            find(self)
            bucket.client.delete_object(Bucket=bucket.name, Key="in/a.csv")

        monkeypatch.setattr(bucket_look._Look, "find", gone)
        assert looked(sync).state == Job.State.DONE
        assert states(sync) == {"in/b.csv": "taken"}

    def test_what_is_wrong_with_the_bucket_is_said_and_it_goes_on_afterwards(self, sync, bucket):
        Connection.objects.update(bucket="no-such-bucket-here")
        job = looked(sync)
        assert (job.state, job.error_code) == (Job.State.FAILED, "store_lacks_it")
        assert not sync.files.exists()
        Connection.objects.update(bucket=bucket.name)
        assert looked(sync).result["taken"] == 2

    def test_wrong_keys_are_said(self, sync, monkeypatch):
        monkeypatch.setattr(bucket_look, "MOST_DENIED", 2)

        def refused(*args: Any, **options: Any) -> Any:
            raise KEYS_REFUSED.error(raised_as=InputError, where="connection", said="403")

        # The test's server takes any keys.
        monkeypatch.setattr(Client, "chunks", refused)
        job = looked(sync)
        assert (job.state, job.error_code) == (Job.State.FAILED, "store_refused_keys")
        assert states(sync) == {"in/a.csv": "waiting", "in/b.csv": "waiting"}
        monkeypatch.undo()
        looked(sync)
        assert set(states(sync).values()) == {"taken"}

    def test_an_address_that_leads_inside_is_not_asked(self, sync, settings):
        settings.HYPAC_PRIVATE_HOSTS = []
        job = looked(sync)
        assert job.state == Job.State.FAILED
        assert "network of this server" in job.error

    def test_whoever_may_import_no_more_has_nothing_imported(self, sync):
        manager = add_member(sync.connection.project, "manager")
        save_sync(connection=sync.connection, actor=manager, how=HOW, take_from="in")
        Membership.objects.filter(user=manager).update(role="viewer")
        start_due()
        job = done(looks_of(sync).first())
        assert (job.state, job.error_code) == (Job.State.FAILED, "may_not_import")
        assert not sync.files.exists()

    def test_another_bucket_has_other_files(self, sync, bucket, object_store):
        looked(sync)
        other = object_store.bucket()
        put(other, "in/a.csv", rows("z"))
        update_connection(connection=sync.connection, actor=sync.user, bucket=other.name, secret=SECRET)
        sync.connection.refresh_from_db()
        assert looked(sync).result["taken"] == 1
        assert "z" in names(sync.connection.project)

    def test_without_its_settings_the_job_says_so(self, sync):
        job = look_now(sync=sync, user=sync.user)
        end_sync(sync=sync, actor=sync.user)
        assert (done(job).state, job.error_code) == (Job.State.FAILED, "not_synchronised")


def test_a_context_stops_between_files(bucket, monkeypatch):
    """A worker that is to end takes no further file, and another one goes on."""
    project = make_project()
    sync = synchronised(project, bucket)
    put(bucket, "in/a.csv", rows("a"))
    put(bucket, "in/b.csv", rows("b"))
    job = look_now(sync=sync, user=sync.user)
    stopped = {"now": False}
    settle = bucket_look._Look._settle

    def then_stop(self: Any, *args: Any, **values: Any) -> None:
        settle(self, *args, **values)
        stopped["now"] = True

    monkeypatch.setattr(bucket_look._Look, "_settle", then_stop)
    monkeypatch.setattr("annotation.jobs.context.is_shutting_down", lambda: stopped["now"])
    done(job)
    monkeypatch.undo()
    assert job.state == Job.State.QUEUED
    assert names(project) <= {"a"}
    for begun in project.jobs.filter(kind="import", state=Job.State.QUEUED):
        done(begun)
    assert done(job).state == Job.State.DONE, job.error
    assert names(project) == {"a", "b"}
    assert project.jobs.filter(kind="import").count() == 2
    assert BucketFile.objects.filter(state="taken").count() == 2
