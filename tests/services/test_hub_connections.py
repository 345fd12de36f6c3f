"""Connections to data sets of the Hugging Face Hub: by page, API and command."""

import errno
import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from annotation.common.storage import StorageError
from annotation.errors import InputError
from annotation.imports.bucket_sync import HowToImport, look_now, save_sync
from annotation.imports.columns import ColumnMapping
from annotation.models import Job, Project
from annotation.outside.connections import hub_of, update_connection
from annotation.outside.hub import DataSet, Repository
from routing.delivery.deliver import deliver
from testbed.factories import make_project
from testbed.hub_server import TOKEN
from testbed.worlds import make_world
from tests.annotation.apis import Api
from tests.services.test_bucket_sync import names, rows
from tests.services.test_connections import connected as connected_to_bucket, done
from tests.services.test_hub import REPO, connected

pytestmark = pytest.mark.django_db


class TestThisMachine:
    """What goes wrong here is not said of the Hub."""

    def test_a_full_disk_is_said(self, hub, monkeypatch):
        hub.add(REPO, **{"a.csv": rows("a")})

        def full(*args: Any, **options: Any) -> str:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("huggingface_hub.hf_hub_download", full)
        with Repository(DataSet(REPO, "main")) as repository:
            found = repository.head("a.csv")
            with pytest.raises(StorageError, match="No space left"):
                list(repository.chunks(found))

    def test_a_name_that_is_too_long_keeps_no_other_file_from_being_taken(self, hub):
        hub.add(REPO, **{f"data/{'a' * 251}.csv": rows("long"), "data/b.csv": rows("b")})
        project = make_project()
        how = HowToImport(ColumnMapping(id_column="id", text_column="text"))
        sync = save_sync(connection=connected(project), actor=project.created_by, how=how, take_from="data")
        job = done(look_now(sync=sync, user=sync.user))
        assert job.state == Job.State.DONE, job.error
        assert (job.result["taken"], job.result["refused"]) == (1, 1)
        assert "too long" in sync.files.get(state="refused").error


class TestCommand:
    def run(self, project: Project, *arguments: str, **options: Any) -> dict[str, Any]:
        out = io.StringIO()
        name, rest = arguments[0], arguments[1:]
        options = {"user": project.created_by.username, "here": True, "as_json": True, **options}
        call_command(
            "hub", name, project.slug, *rest, "--json", "--here", "--user", options["user"], stdout=out
        )
        told: dict[str, Any] = json.loads(out.getvalue())
        return told

    def test_a_file_is_pulled(self, hub):
        hub.add(REPO, **{"data/a.csv": rows("a1", "a2")})
        project = make_project()
        connected(project)
        told = self.run(project, "pull", "hub", "data/a.csv", "--id-column", "id", "--text-column", "text")
        assert (told["state"], told["result"]["added"]) == ("done", 2)
        assert names(project) == {"a1", "a2"}
        with pytest.raises(CommandError, match="no object"):
            self.run(project, "pull", "hub", "data/none.csv", "--text-column", "text")
        with pytest.raises(CommandError, match=r"no connection 'other'.*\(hub\)"):
            self.run(project, "pull", "other", "data/a.csv")
        with pytest.raises(CommandError, match="Name a file"):
            self.run(project, "pull", "hub")

    def test_a_delivery_is_pushed(self, hub):
        world = make_world(60)
        run = world.complete(m=30)
        connected(world.project)
        with pytest.raises(CommandError, match="no delivery newest"):
            self.run(world.project, "push", "hub")
        deliver(run=run, user=world.manager)
        world.do("deliver_run")
        told = self.run(world.project, "push", "hub", "--folder", "labels")
        assert told["state"] == "done"
        assert "labels/delivery/manifest.json" in hub.data_sets[REPO]
        assert "labels/README.md" in hub.data_sets[REPO]
        again = self.run(
            world.project, "push", "hub", "--folder", "labels", "--delivery", str(run.deliveries.get().pk)
        )
        assert again["result"]["commit"] == ""


class TestConnecting:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            *(("bucket", name) for name in ("reviews", "a/b/c", "a/b--c", "../x")),
            ("region", "a..b"),
            ("prefix", "a/../b"),
            ("secret", "with space"),
        ],
    )
    def test_what_cannot_be_is_refused(self, hub, field, value):
        with pytest.raises(InputError) as raised:
            connected(make_project(), **{field: value})
        assert raised.value.where == field

    def test_through_the_api(self, hub):
        hub.add(REPO, **{"a.csv": rows("a1", "a2")})
        project = make_project()
        api = Api(project, project.created_by)
        made = api.post("connections/", name="hub", kind="hub", bucket=REPO, secret=TOKEN)
        assert made.status_code == 201, made.content
        told = made.json()
        assert (told["kind"], told["region"], told["endpoint"]) == ("hub", "main", "")
        assert TOKEN not in made.content.decode()
        assert api.post(f"connections/{told['id']}/test/").json() == {"objects": 1}
        answer = api.post("imports/", connection=told["id"], key="a.csv", id_column="id", text_column="text")
        done(Job.objects.get(pk=answer.json()["id"]))
        done(project.jobs.get(kind="import"))
        assert names(project) == {"a1", "a2"}
        refused = api.patch(f"connections/{told['id']}/", bucket="team/others")
        assert (refused.status_code, refused.json()["field"]) == (400, "secret")
        changed = api.patch(f"connections/{told['id']}/", bucket="team/others", secret=TOKEN)
        assert (changed.status_code, changed.json()["bucket"]) == (200, "team/others")
        missing = api.post("connections/", name="s3", bucket="data")
        assert (missing.status_code, missing.json()["code"]) == (400, "invalid_input")
        assert {fault["field"] for fault in missing.json()["faults"]} == {"endpoint", "access_key", "secret"}

    @pytest.mark.parametrize(
        ("name", "value"),
        [("endpoint", "https://s3.example.org"), ("path_style", False), ("access_key", "AK")],
    )
    def test_what_only_a_bucket_has_is_refused(self, hub, name, value):
        project = make_project()
        api = Api(project, project.created_by)
        made = connected(project)
        for answer in (
            api.post("connections/", name="other", kind="hub", bucket=REPO, **{name: value}),
            api.patch(f"connections/{made.pk}/", **{name: value}),
        ):
            assert (answer.status_code, answer.json()["field"]) == (400, name)

    def test_a_token_can_be_taken_away_and_the_key_of_a_bucket_not(self, hub, bucket):
        project = make_project()
        api = Api(project, project.created_by)
        made, other = connected(project), connected_to_bucket(project, bucket)
        assert api.patch(f"connections/{made.pk}/", secret="").status_code == 200
        made.refresh_from_db()
        assert made.secret == ""
        answer = api.patch(f"connections/{other.pk}/", secret="")
        assert (answer.status_code, answer.json()["field"]) == (400, "secret")

    def test_what_is_there_is_listed_and_brought(self, hub):
        hub.add(
            REPO, **{f"data/{number:03}.csv": rows("a") for number in range(120)}, **{"<b>.csv": rows("b")}
        )
        project = make_project()
        connection = connected(project)
        api = Api(project, project.created_by)
        told = api.post(f"connections/{connection.pk}/list/", folder="data").json()
        assert (len(told["results"]), told["more"]) == (100, True)
        assert told["results"][0] == {"key": "data/000.csv", "size": len(rows("a"))}
        refused = api.post(f"connections/{connection.pk}/list/", folder="a/../b")
        assert (refused.status_code, refused.json()["field"]) == (400, "folder")
        client = Client()
        client.force_login(project.created_by)
        base = f"/projects/{project.slug}/import/"
        assert "Show what is there" in client.get(base).content.decode()
        page = client.post(f"{base}browse/", {"connection": connection.pk, "key": ""}).content.decode()
        assert "&lt;b&gt;.csv" in page
        assert "There are more" in page
        assert (
            "nothing here"
            in client.post(f"{base}browse/", {"connection": connection.pk, "key": "none"}).content.decode()
        )
        hub.private.add(REPO)
        connection.secret = ""
        connection.save()
        again = client.post(f"{base}browse/", {"connection": connection.pk, "key": ""}, follow=True)
        assert "no such data set" in again.content.decode()

    def test_another_data_set_has_other_files(self, hub):
        project = make_project()
        connection = connected(project)
        update_connection(
            connection=connection, actor=project.created_by, bucket="team/others", region="v2", secret=TOKEN
        )
        connection.refresh_from_db()
        with hub_of(connection) as repository, pytest.raises(InputError, match="no such data set"):
            list(repository.list_objects(""))

    def test_by_its_page(self, hub):
        hub.add(REPO, **{"a.csv": rows("a")})
        project = make_project()
        client = Client()
        client.force_login(project.created_by)
        base = f"/projects/{project.slug}/connections/"
        assert "Hugging Face Hub" in client.get(base).content.decode()
        fields = {
            "kind": "hub",
            "name": "hub",
            "bucket": "no-owner",
            "region": "main",
            "folder": "",
            "secret": TOKEN,
        }
        refused = client.post(f"{base}new/", fields).content.decode()
        assert "organisation/reviews" in refused
        assert TOKEN not in refused
        assert client.post(f"{base}new/", fields | {"bucket": REPO}).status_code == 302
        made = project.connections.get()
        page = client.post(f"{base}{made.pk}/test/", follow=True).content.decode()
        assert "It works; there are" in page
        page = client.get(f"{base}{made.pk}/").content.decode()
        assert f'value="{REPO}"' in page
        assert TOKEN not in page
        changed = {"name": "renamed", "bucket": REPO, "region": "main", "folder": "data", "secret": ""}
        assert client.post(f"{base}{made.pk}/", changed).status_code == 302
        made.refresh_from_db()
        assert (made.name, made.prefix) == ("renamed", "data/")
        assert hub_of(made)._at.token == TOKEN
