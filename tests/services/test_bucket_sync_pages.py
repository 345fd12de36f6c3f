"""Synchronising a bucket, by its page and through the API."""

import pytest
from django.test import Client

from annotation.imports.bucket_sync import looks_of
from annotation.jobs import jobs
from annotation.models import BucketSync, Job, Project
from testbed.factories import add_member, make_project, make_user
from testbed.object_store import SECRET, Bucket
from tests.annotation.apis import Api
from tests.services.test_bucket_sync import put, rows
from tests.services.test_connections import connected, done

pytestmark = pytest.mark.django_db
SETTINGS = {
    "takes": True,
    "take_from": "in",
    "every_minutes": 15,
    "id_column": "id",
    "text_column": "text",
    "writes": True,
    "write_to": "out",
}


class TestApi:
    def test_it_is_set_asked_and_ended(self, bucket):
        project = make_project()
        connection = connected(project, bucket)
        api, one = Api(project, project.created_by), f"connections/{connection.pk}/sync/"
        assert api.get(one).status_code == 404
        made = api.put(one, **SETTINGS)
        assert made.status_code == 200, made.content
        told = made.json()
        assert {name: told[name] for name in SETTINGS} == SETTINGS | {"take_from": "in/", "write_to": "out/"}
        assert told["files"] == {"waiting": 0, "taken": 0, "refused": 0}
        assert told["last_look"] is None
        put(bucket, "in/a.csv", rows("a", "b"))
        put(bucket, "in/b.csv", b"nothing,here\n1,2\n")
        now = api.post(f"{one}now/")
        assert now.status_code == 202, now.content
        again = api.post(f"{one}now/")
        assert (again.status_code, again.json()["code"]) == (409, "same_work_under_way")
        jobs.run(now.json()["id"])
        told = api.get(one).json()
        assert told["files"] == {"waiting": 0, "taken": 1, "refused": 1}
        assert told["last_look"]["result"]["found"] == 2
        files = {entry["key"]: entry for entry in api.get(f"{one}files/").json()["results"]}
        assert (files["in/a.csv"]["state"], files["in/a.csv"]["error"]) == ("taken", "")
        assert api.get(f"jobs/{files['in/a.csv']['job']}/").json()["result"]["added"] == 2
        assert "no column" in files["in/b.csv"]["error"]
        assert api.delete(one).status_code == 204
        assert api.get(one).status_code == 404
        assert project.items.count() == 2

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"takes": False, "writes": False}, "takes"),
            ({"every_minutes": 7}, "every_minutes"),
            ({"take_from": ""}, "take_from"),
            ({"write_to": "a/../b"}, "write_to"),
            ({"field_columns": ["a", "b"]}, "field_columns"),
        ],
    )
    def test_what_cannot_be_names_its_field(self, bucket, change, field):
        project = make_project()
        one = f"connections/{connected(project, bucket).pk}/sync/"
        answer = Api(project, project.created_by).put(one, **SETTINGS | change)
        assert (answer.status_code, answer.json()["field"]) == (400, field)
        assert not BucketSync.objects.exists()

    def test_that_of_another_project_is_none(self, bucket):
        project, other = make_project(), make_project(make_user("other"))
        one = f"connections/{connected(project, bucket).pk}/sync/"
        theirs = Api(other, other.created_by)
        answers = [
            theirs.put(one, **SETTINGS),
            theirs.get(one),
            theirs.post(f"{one}now/"),
            theirs.delete(one),
        ]
        assert [answer.status_code for answer in answers] == [404] * 4
        viewer = Api(project, add_member(project, "viewer"))
        assert viewer.put(one, **SETTINGS).status_code == 403


class TestPage:
    def client(self, project: Project) -> Client:
        client = Client()
        client.force_login(project.created_by)
        return client

    def first_import(self, project: Project, bucket: Bucket) -> Job:
        """As somebody makes it by hand."""
        connection = connected(project, bucket)
        put(bucket, "in/first.csv", rows("first"))
        api = Api(project, project.created_by)
        columns = {"id_column": "id", "text_column": "text"}
        asked = api.post("imports/", connection=connection.pk, key="in/first.csv", **columns)
        jobs.run(asked.json()["id"])
        return done(project.jobs.get(kind="import"))

    def test_from_the_first_import_to_the_next_file(self, bucket):
        project = make_project()
        client = self.client(project)
        made = self.first_import(project, bucket)
        connection = project.connections.get()
        page = f"/projects/{project.slug}/connections/{connection.pk}/sync/"
        assert page in client.get(f"/projects/{project.slug}/connections/").content.decode()
        text = client.get(page).content.decode()
        assert f'<option value="{made.pk}">first.csv (id → text)</option>' in text
        fields = {"takes": "on", "take_from": "in", "every_minutes": "60", "like": made.pk}
        assert client.post(page, fields | {"writes": "on", "write_to": "out"}).status_code == 302
        sync = BucketSync.objects.get()
        assert (sync.columns["id_column"], sync.columns["text_column"]) == ("id", "text")
        assert (
            "New deliveries are written into out/."
            in client.get(f"/projects/{project.slug}/connections/").content.decode()
        )
        put(bucket, "in/second.csv", rows("second"))
        put(bucket, "in/<b>bad</b>.csv", b"other,columns\n1,2\n")
        answer = client.post(f"{page}now/")
        job = looks_of(sync).get()
        assert answer.url.endswith(f"/jobs/{job.pk}/")
        done(job)
        assert set(project.items.values_list("external_id", flat=True)) == {"first", "second"}
        text = client.get(page).content.decode()
        assert "in/second.csv" in text
        assert "in/&lt;b&gt;bad&lt;/b&gt;.csv" in text
        assert "no column" in text
        assert SECRET not in text
        # What it was is kept where it is saved without another import.
        assert client.post(page, {"takes": "on", "take_from": "in", "every_minutes": "5", "like": "as-it-is"})
        sync.refresh_from_db()
        assert (sync.every_minutes, sync.columns["text_column"], sync.writes_since) == (5, "text", None)
        client.post(f"{page}end/")
        assert not BucketSync.objects.exists()
        assert project.items.count() == 2

    def test_without_an_import_it_says_what_to_do_first(self, bucket):
        project = make_project()
        client = self.client(project)
        page = f"/projects/{project.slug}/connections/{connected(project, bucket).pk}/sync/"
        assert "choose its columns there" in client.get(page).content.decode()
        text = client.post(page, {"takes": "on", "every_minutes": "60"}).content.decode()
        assert "Import one file of the folder first" in text
        assert not BucketSync.objects.exists()

    def test_what_the_service_refuses_stands_beside_its_field(self, bucket):
        project = make_project()
        client = self.client(project)
        made = self.first_import(project, bucket)
        page = f"/projects/{project.slug}/connections/{project.connections.get().pk}/sync/"
        fields = {"takes": "on", "take_from": "", "every_minutes": "60", "like": made.pk, "writes": "on"}
        text = client.post(page, fields).content.decode()
        assert "imported again" in text.split('id="id_take_from_error"')[1].split("</div>")[0]
        nothing = client.post(page, {"every_minutes": "60"}).content.decode()
        assert "Choose what is to be done" in nothing

    def test_a_look_that_failed_is_told(self, bucket):
        project = make_project()
        client = self.client(project)
        made = self.first_import(project, bucket)
        connection = project.connections.get()
        page = f"/projects/{project.slug}/connections/{connection.pk}/sync/"
        client.post(page, {"takes": "on", "take_from": "in", "every_minutes": "60", "like": made.pk})
        project.connections.update(bucket="no-such-bucket-here")
        client.post(f"{page}now/")
        done(looks_of(BucketSync.objects.get()).get())
        assert "no such bucket" in client.get(page).content.decode()

    def test_an_import_that_adds_nothing_does_not_look_as_if_it_had(self, bucket):
        project = make_project()
        client = self.client(project)
        made = self.first_import(project, bucket)
        page = f"/projects/{project.slug}/connections/{project.connections.get().pk}/sync/"
        client.post(page, {"takes": "on", "take_from": "in", "every_minutes": "60", "like": made.pk})
        client.post(f"{page}now/")
        done(looks_of(BucketSync.objects.get()).get())
        row = client.get(page).content.decode().split("in/first.csv")[1].split("</tr>")[0]
        assert "Nothing new" in row
        assert "1 there already" in row
        assert "Imported" not in row
