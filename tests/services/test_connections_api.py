"""Connections through the API: what it takes, what it never says, and both ways from end to end."""

import pytest
from django.test import Client

from annotation.jobs import jobs
from annotation.models import AuditEvent, Connection, Job
from annotation.outside.secrets import decrypt
from routing.delivery.deliver import deliver
from routing.sources.stored_keys import rotate_stored_keys
from testbed.factories import add_member, make_project, make_user
from testbed.object_store import ACCESS, SECRET, Bucket
from testbed.worlds import make_world
from tests.annotation.apis import Api

pytestmark = pytest.mark.django_db
ROWS = "id,text\n" + "".join(f"t{number},text {number}\n" for number in range(9))


def body_of(bucket: Bucket) -> dict[str, str]:
    return {
        "name": "store",
        "endpoint": bucket.endpoint,
        "bucket": bucket.name,
        "access_key": ACCESS,
        "secret": SECRET,
    }


def test_a_connection_is_made_tried_changed_and_deleted_and_its_secret_never_told(bucket):
    project = make_project()
    api = Api(project, project.created_by)
    made = api.post("connections/", **body_of(bucket), prefix="in")
    assert made.status_code == 201, made.content
    one = f"connections/{made.json()['id']}/"
    bucket.client.put_object(Bucket=bucket.name, Key="in/x", Body=b"x")
    tried = api.post(f"{one}test/")
    assert (tried.status_code, tried.json()) == (200, {"objects": 1})
    changed = api.patch(one, name="other")
    assert changed.json()["name"] == "other"
    refused = api.patch(one, endpoint="https://store.example.org")
    assert (refused.status_code, refused.json()["field"]) == (400, "secret")
    for answer in (made, tried, changed, api.get("connections/"), api.get(one)):
        assert SECRET not in answer.content.decode()
        assert "secret" not in answer.content.decode().replace("access-of-tests", "")
    assert api.post("connections/", **body_of(bucket) | {"name": "other"}).status_code == 409
    assert api.delete(one).status_code == 204
    assert api.get(one).status_code == 404


def test_addresses_inside_are_refused(bucket, settings):
    settings.HYPAC_PRIVATE_HOSTS = []
    project = make_project()
    answer = Api(project, project.created_by).post("connections/", **body_of(bucket))
    assert (answer.status_code, answer.json()["field"]) == (400, "endpoint")


def test_an_import_names_a_file_or_a_place_in_a_bucket(bucket):
    bucket.client.put_object(Bucket=bucket.name, Key="in/rows.csv", Body=ROWS.encode())
    project = make_project()
    api = Api(project, project.created_by)
    number = api.post("connections/", **body_of(bucket)).json()["id"]
    for body in ({}, {"connection": number}, {"key": "x"}, {"file": 1, "connection": number, "key": "x"}):
        assert api.post("imports/", text_column="text", **body).status_code == 400
    answer = api.post("imports/", connection=number, key="in/rows.csv", id_column="id", text_column="text")
    assert answer.status_code == 202, answer.content
    assert answer.json()["kind"] == "fetch"
    jobs.run(answer.json()["id"])
    result = api.get(f"jobs/{answer.json()['id']}/").json()["result"]
    jobs.run(result["import"])
    assert project.items.count() == 9
    fetched = api.post(f"connections/{number}/fetch/", key="in/rows.csv")
    assert fetched.status_code == 202
    jobs.run(fetched.json()["id"])
    assert api.get(f"files/{result['file']}/preview/").json()["columns"][0]["name"] == "id"


def test_a_delivery_goes_into_a_bucket(bucket):
    world = make_world(60)
    run = world.complete(m=30)
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    api = Api(world.project, world.manager)
    number = api.post("connections/", **body_of(bucket)).json()["id"]
    delivery = run.deliveries.get()
    answer = api.post(f"deliveries/{delivery.pk}/export/", connection=number, prefix="out")
    assert answer.status_code == 202, answer.content
    jobs.run(answer.json()["id"])
    job = Job.objects.get(pk=answer.json()["id"])
    assert job.state == Job.State.DONE, job.error
    assert {"out/labels.csv", "out/README.md", "out/SHA256SUMS"} <= bucket.names()
    assert api.post(f"deliveries/{delivery.pk}/export/", connection=number + 1).status_code == 400
    assert api.post("deliveries/0/export/", connection=number).status_code == 404


def test_others_have_none_of_it(bucket):
    project = make_project()
    api = Api(project, project.created_by)
    number = api.post("connections/", **body_of(bucket)).json()["id"]
    for role in ("annotator", "reviewer", "viewer"):
        theirs = Api(project, add_member(project, role))
        assert theirs.get("connections/").status_code == 403
        assert theirs.post(f"connections/{number}/fetch/", key="x").status_code == 403
    other = make_project(make_user("other"))
    assert Api(other, other.created_by).get(f"connections/{number}/").status_code == 404
    assert Api(other, other.created_by).post(f"connections/{number}/fetch/", key="x").status_code == 404
    assert Connection.objects.count() == 1


def test_pages_connect_bring_and_send(bucket):
    bucket.client.put_object(Bucket=bucket.name, Key="rows.csv", Body=ROWS.encode())
    world = make_world(60)
    run = world.complete(m=30)
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    base, client = f"/projects/{world.project.slug}/", Client()
    client.force_login(world.manager)
    refused = client.post(f"{base}connections/new/", body_of(bucket) | {"bucket": "UPPER", "region": "r"})
    assert "small letters" in refused.content.decode()
    assert SECRET not in refused.content.decode()
    answer = client.post(f"{base}connections/new/", body_of(bucket) | {"path_style": "on", "region": "r"})
    assert answer.status_code == 302, answer.content
    connection = world.project.connections.get()
    page = client.post(f"{base}connections/{connection.pk}/test/", follow=True).content.decode()
    assert "It works; there are objects in it." in page
    assert SECRET not in page
    assert 'name="key"' in client.get(f"{base}import/").content.decode()
    job = client.post(f"{base}import/fetch/", {"connection": connection.pk, "key": "rows.csv"})
    done = world.do("fetch")
    page = client.get(job.url).content.decode()
    assert f"{base}import/{done.result['file']}/" in page
    delivery = run.deliveries.get()
    assert "Put it into a bucket" in client.get(f"{base}deliveries/").content.decode()
    client.post(f"{base}deliveries/{delivery.pk}/export/", {"connection": connection.pk, "prefix": "x"})
    world.do("export_delivery")
    assert "x/labels.csv" in bucket.names()
    client.post(f"{base}connections/{connection.pk}/delete/")
    assert not world.project.connections.exists()


class TestChanging:
    """On its page, where an empty secret keeps the stored one."""

    @pytest.fixture
    def connection(self, bucket: Bucket) -> Connection:
        project = make_project()
        Api(project, project.created_by).post("connections/", **body_of(bucket), prefix="in")
        return project.connections.get()

    def page_of(self, connection: Connection) -> tuple[Client, str]:
        client = Client()
        client.force_login(connection.project.created_by)
        return client, f"/projects/{connection.project.slug}/connections/{connection.pk}/"

    def fields_of(self, connection: Connection, **changes: str) -> dict[str, str]:
        names = ("name", "endpoint", "bucket", "region", "access_key")
        stored = {name: getattr(connection, name) for name in names}
        return {**stored, "folder": connection.prefix, "path_style": "on", "secret": "", **changes}

    def test_the_page_holds_what_is_stored_apart_from_the_secret(self, connection):
        client, page = self.page_of(connection)
        assert page in client.get(f"/projects/{connection.project.slug}/connections/").content.decode()
        text = client.get(page).content.decode()
        for value in (connection.name, connection.endpoint, connection.bucket, "in/", ACCESS):
            assert f'value="{value}"' in text
        assert SECRET not in text
        assert connection.secret not in text

    def test_everything_is_changed(self, connection):
        client, page = self.page_of(connection)
        fields = self.fields_of(
            connection,
            **{"name": "Lake", "bucket": "other-bucket", "folder": "out", "region": "eu-west-1"},
            **{"access_key": "K2", "secret": SECRET},
        )
        del fields["path_style"]
        assert client.post(page, fields).status_code == 302
        connection.refresh_from_db()
        assert (connection.name, connection.bucket, connection.prefix) == ("Lake", "other-bucket", "out/")
        assert (connection.region, connection.access_key) == ("eu-west-1", "K2")
        assert not connection.path_style
        assert decrypt(connection.secret) == SECRET
        told = AuditEvent.objects.get(action="connection.changed").data
        changed = {"name", "bucket", "prefix", "region", "access_key", "path_style"}
        assert set(told["changed"]) == {*changed, "secret"}

    def test_an_empty_secret_keeps_the_stored_one(self, connection):
        client, page = self.page_of(connection)
        assert (
            client.post(page, self.fields_of(connection, name="Lake", region="eu-west-1")).status_code == 302
        )
        connection.refresh_from_db()
        assert (connection.name, connection.region) == ("Lake", "eu-west-1")
        assert decrypt(connection.secret) == SECRET
        assert set(AuditEvent.objects.get(action="connection.changed").data["changed"]) == {"name", "region"}

    def test_a_new_secret_is_stored_encrypted_and_told_to_nobody(self, connection):
        client, page = self.page_of(connection)
        fields = self.fields_of(connection, secret="another-secret")
        text = client.post(page, fields, follow=True).content.decode()
        connection.refresh_from_db()
        assert decrypt(connection.secret) == "another-secret"
        told = AuditEvent.objects.get(action="connection.changed").data
        assert told["changed"] == ["secret"]
        assert "another-secret" not in text + str(told) + connection.secret

    def test_what_is_refused_is_said_beside_its_field_and_changes_nothing(self, connection):
        client, page = self.page_of(connection)
        other = {"name": "taken", "endpoint": "https://store.example.org", "bucket": "b-1", "access_key": "k"}
        Api(connection.project, connection.project.created_by).post("connections/", **other, secret="s")
        for changes, field, words in (
            ({"bucket": "UPPER"}, "bucket", "small letters"),
            ({"folder": "a/../b"}, "folder", "no part is"),
            ({"endpoint": "https://store.example.org"}, "secret", "secret key again"),
            ({"bucket": "other-bucket"}, "secret", "secret key again with the new bucket"),
            ({"folder": "out"}, "secret", "secret key again with the new bucket"),
            ({"name": "taken"}, "name", "of this name already"),
            ({"region": "", "secret": "another-secret"}, "secret", "nothing has been saved yet"),
        ):
            text = client.post(page, self.fields_of(connection, **changes)).content.decode()
            assert words in text.split(f'id="id_{field}_error"')[1].split("</div>")[0]
            assert "another-secret" not in text
        connection.refresh_from_db()
        assert connection.name == "store"
        assert decrypt(connection.secret) == SECRET
        assert not AuditEvent.objects.filter(action="connection.changed").exists()

    def test_nobody_changes_that_of_another_project(self, connection):
        _client, page = self.page_of(connection)
        other = make_project(make_user("other"))
        client = Client()
        client.force_login(other.created_by)
        theirs = page.replace(connection.project.slug, other.slug)
        assert [client.get(path).status_code for path in (page, theirs)] == [404, 404]
        assert client.post(theirs, self.fields_of(connection, name="mine")).status_code == 404


def test_secrets_are_encrypted_anew_with_the_others(bucket, settings):
    project = make_project()
    Api(project, project.created_by).post("connections/", **body_of(bucket))
    before = Connection.objects.get().secret
    assert rotate_stored_keys().rotated == 1
    after = Connection.objects.get().secret
    assert after != before
    assert decrypt(after) == SECRET
