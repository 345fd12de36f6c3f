"""Buckets that people enter: files come from them and deliveries go to them, beside a server that speaks the
protocol.
"""

import hashlib
import io
import json
import socket
from typing import Any

import httpx
import pytest

from annotation.errors import ConflictError, HypacError, InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.fetching import fetch
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import AuditEvent, Connection, Job, Project, StoredFile
from annotation.outside.buckets import PIECE, Bucket as Client, Place
from annotation.outside.connections import (
    create_connection,
    delete_connection,
    try_connection,
    update_connection,
)
from annotation.outside.net import NetError, NetResponse
from routing.delivery.deliver import deliver
from routing.delivery.exports import export_delivery
from testbed.factories import make_image, make_project, make_user
from testbed.object_store import ACCESS, SECRET, Bucket
from testbed.worlds import World, files_of, make_world

pytestmark = pytest.mark.django_db
CSV = "id,text\n" + "".join(f"t{number},text {number} ü\n" for number in range(40))


def exported(world: World, connection: Connection, **options: Any) -> Job:
    """The one delivery of the world's one run, put into the folder x."""
    delivery = world.project.runs.get().deliveries.get()
    fields = {"delivery": delivery, "connection": connection, "user": world.manager}
    return done(export_delivery(**fields, prefix="x", **options))


def connected(project: Project, store: Bucket, /, **fields: Any) -> Connection:
    values = {"name": "store", "endpoint": store.endpoint, "bucket": store.name, "access_key": ACCESS}
    return create_connection(project=project, actor=project.created_by, secret=SECRET, **{**values, **fields})


def client_of(bucket: Bucket) -> Client:
    return Client(Place(bucket.endpoint, bucket.name, "us-east-1", True, ACCESS, SECRET))


def done(job: Job) -> Job:
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


class TestClient:
    def test_objects_are_written_found_and_read_back(self, bucket):
        content = bytes(range(256)) * 4
        digest = hashlib.sha256(content).hexdigest()
        name = "a folder/ünïcode +%&=?#~.csv"
        with client_of(bucket) as client:
            assert client.head(name) is None
            client.put(name, io.BytesIO(content), size=1024, sha256=digest, media_type="text/csv")
            found = client.head(name)
            assert found is not None
            assert (found.size, found.sha256) == (1024, digest)
            assert b"".join(client.chunks(found)) == content
            assert [entry.key for entry in client.list_objects("a folder/")] == [name]
            assert list(client.list_objects("other")) == []
        assert bucket.names() == {name}

    def test_large_ones_go_in_parts_and_come_in_pieces(self, bucket, monkeypatch):
        monkeypatch.setattr("annotation.outside.buckets.PART", 5 * 1024**2)
        content = b"0123456789abcdef" * (PIECE // 16 + 5)
        digest = hashlib.sha256(content).hexdigest()
        told: list[int] = []
        with client_of(bucket) as client:
            client.put(
                "large", io.BytesIO(content), size=len(content), sha256=digest, media_type="text/plain",
                progress=told.append,
            )  # fmt: skip
            found = client.head("large")
            assert found is not None
            assert found.sha256 == digest
            assert b"".join(client.chunks(found)) == content
        assert told[-1] == len(content)
        assert len(told) == 2

    def test_what_breaks_off_leaves_nothing(self, bucket, monkeypatch):
        monkeypatch.setattr("annotation.outside.buckets.PART", 5 * 1024**2)

        def stop(sent: int) -> None:
            raise KeyboardInterrupt

        with client_of(bucket) as client, pytest.raises(KeyboardInterrupt):
            client.put(
                "large", io.BytesIO(bytes(12 * 1024**2)), size=12 * 1024**2, sha256="", media_type="x/y",
                progress=stop,
            )  # fmt: skip
        assert bucket.names() == set()
        assert not bucket.client.list_multipart_uploads(Bucket=bucket.name).get("Uploads")

    def test_another_object_is_not_replaced_unless_asked(self, bucket):
        def put(content: bytes, **options: Any) -> None:
            client.put("x", io.BytesIO(content), size=1, sha256="", media_type="x/y", **options)

        with client_of(bucket) as client:
            put(b"a")
            with pytest.raises(ConflictError):
                put(b"b")
            put(b"c", overwrite=True)
            found = client.head("x")
            assert found is not None
            assert b"".join(client.chunks(found)) == b"c"
            put(b"d", overwrite=True)
            with pytest.raises(ConflictError, match="changed meanwhile"):
                list(client.chunks(found))

    def test_more_than_a_page_of_objects_is_found(self, bucket, monkeypatch):
        for number in range(7):
            bucket.client.put_object(Bucket=bucket.name, Key=f"p/{number}", Body=b"x")
        whole = Client.list_objects
        with client_of(bucket) as client:
            sent = client._requests.send

            def in_small_pages(*args: Any, **options: Any) -> Any:
                options["query"] = options["query"] | {"max-keys": "3"}
                return sent(*args, **options)

            monkeypatch.setattr(client._requests, "send", in_small_pages)
            assert [found.key for found in whole(client, "p/")] == [f"p/{number}" for number in range(7)]

    @pytest.mark.parametrize(
        "page",
        [
            b"<R><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></R>",
            b"<R><Contents><Key>a</Key><Size>-9</Size></Contents></R>",
            b"<R><Contents><Key>a</Key><Size>many</Size></Contents></R>",
            b"<R>" + b"<a/>" * 2_500_000 + b"</R>",
        ],
        ids=["without an end", "below nothing", "no number", "a bomb"],
    )
    def test_a_store_that_means_ill_keeps_nobody(self, bucket, monkeypatch, page):
        answers = iter([NetResponse(200, httpx.Headers(), page)] * 3)
        monkeypatch.setattr("annotation.outside.net.GuardedClient.request", lambda *_, **__: next(answers))
        with client_of(bucket) as client, pytest.raises(HypacError, match="cannot be read"):
            list(client.list_objects(""))

    def test_what_is_wrong_is_said_without_repeating_the_store(self, bucket):
        nowhere = Place(bucket.endpoint, "no-such-bucket-here", "us-east-1", True, ACCESS, SECRET)
        with Client(nowhere) as client, pytest.raises(InputError, match="no such bucket"):
            list(client.list_objects(""))
        with client_of(bucket) as client, pytest.raises(InputError, match="none of its parts"):
            client.head("a/../b")


class TestConnections:
    def test_keys_are_kept_encrypted_and_told_to_nobody(self, bucket):
        project = make_project()
        connection = connected(project, bucket, prefix=" /in/bound/ ")
        assert connection.prefix == "in/bound/"
        assert SECRET not in connection.secret
        assert try_connection(connection=connection) == 0
        assert SECRET not in json.dumps(list(AuditEvent.objects.values_list("data", flat=True)))
        delete_connection(connection=connection, actor=project.created_by)
        actions = AuditEvent.objects.filter(action__startswith="connection.").values_list("action", flat=True)
        assert set(actions) == {"connection.made", "connection.deleted"}

    def test_addresses_inside_are_refused_when_entered_and_when_asked(self, bucket, settings, monkeypatch):
        project = make_project()
        connection = connected(project, bucket)
        settings.HYPAC_PRIVATE_HOSTS = []
        for endpoint in (bucket.endpoint, "http://localhost:9000", "http://169.254.169.254"):
            with pytest.raises(InputError, match="network of this server"):
                connected(project, bucket, name="other", endpoint=endpoint)
        with pytest.raises(NetError, match="network of this server"):
            try_connection(connection=connection)
        # A name that meant another address when it was entered.
        inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 443))]
        other = connected(project, bucket, name="other", endpoint="https://store.example.org")
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: inside)
        with pytest.raises(NetError, match="network of this server"):
            try_connection(connection=other)

    def test_a_stored_secret_is_not_sent_to_a_new_address(self, bucket):
        project = make_project()
        connection = connected(project, bucket)
        with pytest.raises(InputError, match="secret key again"):
            update_connection(
                connection=connection, actor=project.created_by, endpoint="https://store.example.org"
            )
        changed = update_connection(connection=connection, actor=project.created_by, name="new", prefix="x")
        assert (changed.name, changed.prefix) == ("new", "x/")
        for wider in ({"bucket": "payroll"}, {"prefix": ""}, {"prefix": "y"}):
            with pytest.raises(InputError, match="secret key again with the new bucket or folder"):
                update_connection(connection=connection, actor=project.created_by, **wider)
        update_connection(connection=connection, actor=project.created_by, prefix="x/within")
        update_connection(
            connection=connection, actor=project.created_by, endpoint="https://store.example.org", secret="s"
        )

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", " "),
            ("endpoint", "ftp://store.example.org"),
            ("endpoint", "https://store.example.org/bucket"),
            ("bucket", "UPPER"),
            ("bucket", "a/b"),
            ("region", "eu west"),
            ("access_key", "a\nb"),
            ("prefix", "a/../b"),
        ],
    )
    def test_what_cannot_be_a_connection_names_its_field(self, bucket, field, value):
        with pytest.raises(InputError) as raised:
            connected(make_project(), bucket, **{field: value})
        assert raised.value.where == field


class TestFetching:
    def test_an_object_becomes_a_file_and_then_items(self, bucket):
        bucket.client.put_object(Bucket=bucket.name, Key="in/data.csv", Body=CSV.encode())
        project = make_project()
        connection = connected(project, bucket, prefix="in")
        job = fetch(
            connection=connection,
            user=project.created_by,
            key="data.csv",
            mapping=ColumnMapping(id_column="id", text_column="text"),
        )
        assert SECRET not in json.dumps(job.params)
        assert done(job).state == Job.State.DONE, job.error
        assert StoredFile.objects.get(pk=job.result["file"]).original_name == "data.csv"
        imported = done(Job.objects.get(pk=job.result["import"]))
        assert imported.result["added"] == 40

    def test_without_a_mapping_it_waits_for_people(self, bucket):
        bucket.client.put_object(Bucket=bucket.name, Key="data.csv", Body=CSV.encode())
        project = make_project()
        job = done(fetch(connection=connected(project, bucket), user=project.created_by, key="data.csv"))
        assert set(job.result) == {"file", "name", "sha256"}
        assert not project.items.exists()

    def test_a_folder_becomes_an_archive(self, bucket):
        for number in range(3):
            bucket.client.put_object(Bucket=bucket.name, Key=f"im/{number}.png", Body=make_image(number))
        bucket.client.put_object(Bucket=bucket.name, Key="im/", Body=b"")
        project = make_project()
        connection = connected(project, bucket)
        job = done(fetch(connection=connection, user=project.created_by, key="im/", mapping=ColumnMapping()))
        assert job.state == Job.State.DONE, job.error
        assert done(Job.objects.get(pk=job.result["import"])).result["added"] == 3
        assert set(project.items.values_list("external_id", flat=True)) == {"0.png", "1.png", "2.png"}

    def test_what_is_missing_or_too_large_is_said(self, bucket, settings):
        bucket.client.put_object(Bucket=bucket.name, Key="data.csv", Body=CSV.encode())
        project = make_project()
        connection = connected(project, bucket)
        for key, words in (("no.csv", "no object"), ("none/", "no object below")):
            job = done(fetch(connection=connection, user=project.created_by, key=key))
            assert job.state == Job.State.FAILED
            assert words in job.error
        settings.HYPAC_MAX_UPLOAD_BYTES = 100
        for key in ("data.csv", ""):
            job = done(fetch(connection=connection, user=project.created_by, key=key))
            assert "more than 100 bytes" in job.error
        assert not StoredFile.objects.exists()

    def test_a_store_that_is_away_is_asked_again_later(self, bucket, monkeypatch):
        project = make_project()
        connection = connected(project, bucket)
        Connection.objects.update(endpoint="http://127.0.0.1:9")
        job = done(fetch(connection=connection, user=project.created_by, key="data.csv"))
        assert job.state == Job.State.QUEUED
        assert "Nobody accepts connections" in job.error


class TestExports:
    @pytest.fixture
    def world(self) -> World:
        world = make_world(60)
        run = world.complete(m=30)
        deliver(run=run, user=world.manager, formats=["csv", "huggingface"])
        world.do("deliver_run")
        return world

    def test_all_files_and_their_sums_are_there_as_delivered(self, bucket, world):
        delivery = world.project.runs.get().deliveries.get()
        connection = connected(world.project, bucket, prefix="out")
        job = done(export_delivery(delivery=delivery, connection=connection, user=world.manager))
        assert job.state == Job.State.DONE, job.error
        folder = f"out/{world.project.slug}/run-1-delivery-1/"
        files = files_of(delivery)
        assert bucket.names() == {folder + name for name in (*files, "SHA256SUMS")}
        for name, content in files.items():
            assert bucket.client.get_object(Bucket=bucket.name, Key=folder + name)["Body"].read() == content
        sums = bucket.client.get_object(Bucket=bucket.name, Key=f"{folder}SHA256SUMS")["Body"].read().decode()
        assert sums.splitlines()[0] == f"{hashlib.sha256(files['README.md']).hexdigest()}  README.md"
        assert (job.result["sent"], job.result["already_there"]) == (len(files), 0)
        again = done(export_delivery(delivery=delivery, connection=connection, user=world.manager))
        assert (again.result["sent"], again.result["already_there"]) == (0, len(files))
        exported = AuditEvent.objects.filter(action="delivery.exported")
        assert exported.count() == 2

    def test_it_goes_on_where_it_broke_off(self, bucket, world, monkeypatch):
        delivery = world.project.runs.get().deliveries.get()
        connection = connected(world.project, bucket)
        job = export_delivery(delivery=delivery, connection=connection, user=world.manager, prefix="x")
        progress = JobContext.progress

        def away(self: JobContext, **values: Any) -> None:
            progress(self, **values)
            if values.get("done") == 2:
                raise HypacError("The store is away.", permanent=False)

        monkeypatch.setattr(JobContext, "progress", away)
        assert done(job).state == Job.State.QUEUED
        assert len(bucket.names()) == 2
        monkeypatch.undo()
        assert done(job).state == Job.State.DONE, job.error
        assert job.result["already_there"] == 2

    def test_other_objects_stay_unless_they_are_to_be_replaced(self, bucket, world):
        bucket.client.put_object(Bucket=bucket.name, Key="x/labels.csv", Body=b"mine")
        connection = connected(world.project, bucket)
        job = exported(world, connection)
        assert job.state == Job.State.FAILED
        assert "another object at “x/labels.csv”" in job.error
        assert bucket.client.get_object(Bucket=bucket.name, Key="x/labels.csv")["Body"].read() == b"mine"
        assert "x/SHA256SUMS" not in bucket.names()
        assert exported(world, connection, overwrite=True).state == Job.State.DONE
        assert bucket.client.get_object(Bucket=bucket.name, Key="x/labels.csv")["Body"].read() != b"mine"

    def test_sums_of_somebody_else_stay_unless_they_are_to_be_replaced(self, bucket, world):
        theirs = {"Bucket": bucket.name, "Key": "x/SHA256SUMS"}
        bucket.client.put_object(**theirs, Body=b"0123  of-somebody-else\n")
        connection = connected(world.project, bucket)
        job = exported(world, connection)
        assert job.state == Job.State.FAILED
        assert "another object at “x/SHA256SUMS”" in job.error
        assert bucket.names() == {"x/SHA256SUMS"}  # nothing was sent beside them
        assert bucket.client.get_object(**theirs)["Body"].read() == b"0123  of-somebody-else\n"
        assert exported(world, connection, overwrite=True).state == Job.State.DONE
        ours = bucket.client.get_object(**theirs)["Body"].read()
        assert b"README.md" in ours
        assert exported(world, connection).state == Job.State.DONE  # those are ours
        assert bucket.client.get_object(**theirs)["Body"].read() == ours

    def test_connections_of_other_projects_are_none(self, bucket, world):
        other = connected(make_project(make_user("other")), bucket)
        delivery = world.project.runs.get().deliveries.get()
        with pytest.raises(InputError, match="no such connection"):
            export_delivery(delivery=delivery, connection=other, user=world.manager)
