"""The page on which a bucket is synchronised."""

import io

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from annotation.common.files import store_file
from annotation.imports.bucket_sync import HowToImport, save_sync
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.models import BucketFile, BucketSync, Connection, Project
from annotation.outside.secrets import encrypt
from testbed.factories import make_project
from tests.browser.sessions import log_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def connection() -> Connection:
    project = make_project()
    return Connection.objects.create(
        project=project,
        name="lake",
        endpoint="https://store.example.org",
        bucket="bucket",
        access_key="key",
        secret=encrypt("what nobody sees"),
        created_by=project.created_by,
    )


def imported(project: Project) -> None:
    content = io.BytesIO(b"id,text\na,some text\n")
    stored = store_file(project=project, content=content, original_name="first.csv", media_type="text/csv")
    mapping = ColumnMapping(id_column="id", text_column="text")
    jobs.run(start_import(project=project, user=project.created_by, stored_file=stored, mapping=mapping).pk)


def test_a_bucket_is_set_to_be_synchronised(page: Page, connection: Connection) -> None:
    project = connection.project
    imported(project)
    log_in(page.context, project.created_by)
    page.goto(reverse("connections", args=[project.slug]))
    page.get_by_role("button", name="Synchronise").click()
    page.get_by_label("Import new files").check()
    page.get_by_label("Folder of new files").fill("out")
    expect(page.get_by_label("Columns as in")).to_contain_text("first.csv (id → text)")
    page.get_by_label("Look every").select_option("15 minutes")
    page.get_by_label("Write each new delivery back").check()
    page.get_by_label("Folder of deliveries").fill("out")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("imported again as new items").first).to_be_visible()
    page.get_by_label("Folder of new files").fill("in")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. What is new in the bucket")).to_be_visible()
    sync = BucketSync.objects.get()
    assert (sync.take_from, sync.every_minutes, sync.write_to) == ("in/", 15, "out/")
    page.get_by_role("button", name="End it").click()
    page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    assert BucketSync.objects.exists()


def test_what_became_of_each_file_is_told_on_a_phone_too(page: Page, connection: Connection) -> None:
    project = connection.project
    imported(project)
    how = HowToImport(ColumnMapping(id_column="id", text_column="text"))
    sync = save_sync(connection=connection, actor=project.created_by, how=how, take_from="in")
    long = "in/" + "a-long-folder/" * 8 + "second.csv"
    now = timezone.now()
    sync.files.create(key="in/first.csv", size=30, state="taken", job=project.jobs.get(), changed_at=now)
    words = "The file has no column “text”; it has a, b."
    sync.files.create(key=long, size=10, state="refused", error=words, changed_at=now)
    assert BucketFile.objects.count() == 2
    log_in(page.context, project.created_by)
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(reverse("bucket_sync", args=[project.slug, connection.pk]))
    expect(page.get_by_text("1 imported, 0 waiting, 1 that cannot be imported")).to_be_visible()
    expect(page.get_by_text("has no column “text”")).to_be_visible()
    sideways = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert sideways == 0
