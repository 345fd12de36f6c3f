"""Files in an S3-compatible store: everything that uses files, beside a server that speaks the protocol."""

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.response import StreamingBody
from django.conf import settings as site
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from urllib3.exceptions import ProtocolError

from annotation.common.files import clean_files, open_file, put_content, store_file
from annotation.common.storage import StorageError
from annotation.errors import InputError
from annotation.jobs import jobs
from annotation.models import Job, Project, StoredFile
from annotation.outside.object_store import PART, PIECE, ObjectStore
from annotation.projects.lifecycle import delete_project
from hypac_site import environment
from routing.delivery.deliver import deliver
from routing.sources.backends.openai_batch.store import ResultStore
from testbed.factories import make_image, make_project, remove_deleted
from testbed.object_store import Bucket, ObjectStoreServer
from testbed.servers import dead_port
from testbed.worlds import make_world
from tests.annotation.imports.test_importers import make_zip

pytestmark = pytest.mark.django_db
ROWS = "id,text\n" + "".join(f"t{number},text {number}\n" for number in range(40))


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStoreServer]:
    with ObjectStoreServer() as server:
        yield server


@pytest.fixture
def bucket(server: ObjectStoreServer, settings, monkeypatch) -> Bucket:
    """A bucket of its own, in which the site keeps its files."""
    bucket = server.bucket()
    use(settings, monkeypatch, bucket.environment)
    return bucket


def use(settings, monkeypatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    settings.STORAGES = {**site.STORAGES, "default": environment.file_storage()}


def store(
    project: Project, content: bytes, name: str = "rows.csv", media_type: str = "text/csv"
) -> StoredFile:
    return store_file(project=project, content=io.BytesIO(content), original_name=name, media_type=media_type)


def body(answer: Any) -> bytes:
    assert answer.status_code == 200
    return b"".join(answer.streaming_content)


def of_owner(project: Project) -> Client:
    client = Client()
    client.force_login(project.created_by)
    return client


def bring_in(client: Client, project: Project, content: bytes, name: str, **form: str) -> Job:
    """Upload and import a file by its pages, and do the work as a worker would."""
    upload = reverse("import_upload", args=[project.slug])
    page = client.post(upload, {"file": SimpleUploadedFile(name, content)}).url
    client.post(page, form)
    job = project.jobs.get(kind="import")
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def test_a_table_is_uploaded_and_imported(bucket) -> None:
    project = make_project()
    job = bring_in(of_owner(project), project, ROWS.encode(), "rows.csv", text_column="text", id_column="id")
    assert job.state == Job.State.DONE, job.error
    assert project.items.count() == 40
    digest = hashlib.sha256(ROWS.encode()).hexdigest()
    assert bucket.names() == {f"projects/{project.pk}/{digest[:2]}/{digest}"}


def test_images_are_imported_and_shown_by_the_page_that_checks_permission(bucket) -> None:
    project, stranger = make_project(), make_project()
    images = {f"{number}.png": make_image(number) for number in range(3)}
    client = of_owner(project)
    job = bring_in(client, project, make_zip(images), "images.zip", text_column="")
    assert job.state == Job.State.DONE, job.error
    item = project.items.select_related("image").order_by("position")[0]
    path = reverse("image", args=[project.slug, item.image.sha256])
    answer = client.get(path)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert int(answer.headers["Content-Length"]) == item.image.size
    assert hashlib.sha256(body(answer)).hexdigest() == item.image.sha256
    assert of_owner(stranger).get(path).status_code == 404
    with pytest.raises(NotImplementedError):
        default_storage.url(item.image.storage_name)

    default_storage.delete(item.image.storage_name)
    assert client.get(path).status_code == 410


def test_a_delivery_is_downloaded_file_by_file_and_as_one_archive(bucket) -> None:
    world = make_world(200)
    run = world.complete()
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    delivery = run.deliveries.get()
    client = of_owner(world.project)
    archive = zipfile.ZipFile(
        io.BytesIO(body(client.get(reverse("delivery_zip", args=[world.project.slug, delivery.pk]))))
    )
    assert archive.testzip() is None
    for entry in delivery.files.select_related("file"):
        page = reverse("delivery_file", args=[world.project.slug, delivery.pk, entry.name])
        answer = client.get(page)
        assert f"-{entry.name}" in answer.headers["Content-Disposition"]
        content = body(answer)
        part = client.get(page, headers={"range": "bytes=5-24"})
        assert (part.status_code, part.getvalue()) == (206, content[5:25])
        assert hashlib.sha256(content).hexdigest() == entry.file.sha256
        assert archive.read(next(name for name in archive.namelist() if name.endswith(entry.name))) == content

    project = world.project
    assert bucket.names()
    delete_project(project=project, actor=world.manager, name=project.name)
    remove_deleted(project)
    assert not bucket.names()


def test_a_large_file_goes_in_parts_and_is_read_from_any_place(bucket) -> None:
    content = hashlib.sha256(b"seed").digest() * (2 * PART // 32) + b"the end"
    stored = store(make_project(), content)
    etag = bucket.client.head_object(Bucket=bucket.name, Key=stored.storage_name)["ETag"]
    assert etag.strip('"').endswith("-3"), "three parts"
    with open_file(stored) as file:
        assert file.read(100) == content[:100]
        assert file.seek(-7, io.SEEK_END) == len(content) - 7
        assert file.read() == b"the end"
        file.seek(PIECE - 10)
        assert file.read(20) == content[PIECE - 10 : PIECE + 10], "over the seam of two pieces"
        file.seek(0)
        digest = hashlib.sha256()
        while block := file.read(1_000_003):
            digest.update(block)
    assert digest.hexdigest() == stored.sha256


def test_a_file_that_is_read_whole_takes_few_requests(bucket, monkeypatch) -> None:
    content = hashlib.sha256(b"seed").digest() * (2 * PIECE // 32) + b"the end"
    stored = store(make_project(), content)
    asked: list[int] = []
    piece = ObjectStore.piece
    monkeypatch.setattr(ObjectStore, "piece", lambda self, *args: asked.append(args[1]) or piece(self, *args))
    with open_file(stored) as file:
        assert file.read() == content
    assert asked == [0, PIECE, 2 * PIECE]


def test_writers_of_the_same_bytes_are_no_error(bucket) -> None:
    start, failures = threading.Barrier(4, timeout=300), []

    def write() -> None:
        start.wait()
        try:
            for _ in range(3):
                assert (
                    default_storage.save("projects/1/ab/same", ContentFile(b"same")) == "projects/1/ab/same"
                )
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert bucket.names() == {"projects/1/ab/same"}


def test_an_empty_and_a_lost_file(bucket) -> None:
    project = make_project()
    empty, lost = store(project, b"", "empty.csv"), store(project, b"lost", "lost.csv")
    with open_file(empty) as file:
        assert file.read() == b""
    default_storage.delete(lost.storage_name)
    with pytest.raises(InputError, match="no longer in the storage"):
        open_file(lost)
    assert store(project, b"lost") == lost, "uploaded again, it is there again"
    with open_file(lost) as file:
        assert file.read() == b"lost"


def test_a_store_that_does_not_answer_is_tried_again_and_told_of(bucket, settings, monkeypatch) -> None:
    project = make_project()
    client = of_owner(project)
    upload = reverse("import_upload", args=[project.slug])
    page = client.post(upload, {"file": SimpleUploadedFile("rows.csv", ROWS.encode())}).url
    client.post(page, {"text_column": "text", "id_column": "id"})
    job = project.jobs.get()
    with dead_port() as port:
        nobody = f"http://127.0.0.1:{port}"
        use(settings, monkeypatch, {"HYPAC_S3_ENDPOINT": nobody})
        with pytest.raises(StorageError) as told:
            default_storage.exists("projects/1")
        assert nobody not in str(told.value)
        assert not told.value.permanent
        jobs.run(job.pk)
        job.refresh_from_db()
        assert (job.state, "cannot be used at the moment" in job.error) == (Job.State.QUEUED, True)
        said = client.post(
            upload, {"file": SimpleUploadedFile("other.csv", b"id,text\n1,x\n")}
        ).content.decode()
        assert "The storage of files cannot be used at the moment" in said

    use(settings, monkeypatch, bucket.environment)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    assert project.items.count() == 40


def test_a_connection_that_breaks_while_it_is_read_is_made_anew(bucket, monkeypatch) -> None:
    stored = store(make_project(), b"content")
    read, breaks = StreamingBody.read, [2]

    def breaking(self: StreamingBody, *arguments: int) -> bytes:
        if breaks[0]:
            breaks[0] -= 1
            raise ProtocolError("Connection broken")
        return read(self, *arguments)

    monkeypatch.setattr(StreamingBody, "read", breaking)
    with open_file(stored) as file:
        assert file.read() == b"content"
    breaks[0] = 3
    with pytest.raises(StorageError, match="could not be asked"):
        open_file(stored)


def test_what_killed_writers_left_is_found_and_removed(bucket, monkeypatch) -> None:
    project = make_project()
    kept = store(project, b"named")
    orphan = put_content(project=project, content=io.BytesIO(b"of a delivery that was killed")).storage_name
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key="projects/1/ab/unfinished")
    assert clean_files(older_than_hours=24, remove=True).files == 0, "it is young"
    assert orphan in bucket.names()

    later = timezone.now() + timedelta(days=2)
    monkeypatch.setattr("annotation.common.files.timezone.now", lambda: later)
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key="projects/1/ab/unfinished")
    cleaned = clean_files(older_than_hours=24, remove=True)
    assert (cleaned.files, cleaned.bytes, cleaned.leftovers) == (1, 29, 1)
    assert bucket.names() == {kept.storage_name}
    assert "Uploads" not in bucket.client.list_multipart_uploads(Bucket=bucket.name)


def test_what_is_removed_while_it_is_cleaned_up_is_no_error(bucket, monkeypatch) -> None:
    orphan = put_content(project=make_project(), content=io.BytesIO(b"lost")).storage_name
    later = timezone.now() + timedelta(days=2)
    monkeypatch.setattr("annotation.common.files.timezone.now", lambda: later)
    size = ObjectStore.size

    def gone(self: ObjectStore, name: str) -> int:
        found = size(self, name)
        bucket.client.delete_object(Bucket=bucket.name, Key=orphan)
        return found

    monkeypatch.setattr(ObjectStore, "size", gone)
    assert clean_files(older_than_hours=24, remove=True).files == 1


def test_results_of_batch_files_are_found_by_every_worker(bucket) -> None:
    response = {"status_code": 200, "body": {"choices": [{"message": {"content": "cat"}}]}}
    line = json.dumps({"custom_id": "1-a", "response": response}).encode()
    assert ResultStore("key").add([line]) == (1, 0)
    assert ResultStore("key").get("1-a") is not None
    assert ResultStore("other").get("1-a") is None


def test_a_site_may_keep_its_files_under_a_prefix(server, settings, monkeypatch) -> None:
    bucket = server.bucket()
    use(settings, monkeypatch, bucket.environment | {"HYPAC_S3_PREFIX": "/labels/"})
    put_content(project=make_project(), content=io.BytesIO(b"x"))
    assert all(key.startswith("labels/projects/") for key in bucket.names())
    assert [name.split("/")[0] for name, _ in default_storage.walk("projects")] == ["projects"]


@pytest.mark.parametrize(
    "variables",
    [{"HYPAC_S3_ACCESS_KEY": "only this"}, {"HYPAC_S3_ENDPOINT": "store.example.org:9000"}],
)
def test_half_a_configuration_is_refused(variables, monkeypatch) -> None:
    for name, value in {"HYPAC_S3_BUCKET": "files", **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=next(iter(variables))):
        environment.file_storage()
