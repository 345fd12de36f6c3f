"""Data sets of the Hugging Face Hub, beside a server of the tests' own that speaks its API: files come from
there, and deliveries go there.
"""

import io
import json
from pathlib import Path
from typing import Any

import httpx2
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import constants

from annotation.errors import HypacError, InputError
from annotation.imports.bucket_sync import HowToImport, look_now, save_sync
from annotation.imports.columns import ColumnMapping
from annotation.imports.fetching import fetch
from annotation.models import AuditEvent, Connection, Job, Project
from annotation.outside.connections import (
    create_connection,
    try_connection,
)
from annotation.outside.hub import DataSet, Repository, _library, has_content
from routing.delivery import hub_export
from routing.delivery.deliver import deliver
from routing.delivery.exports import export_delivery
from routing.delivery.write_back import write_deliveries
from routing.models import Delivery
from testbed.factories import make_project
from testbed.hub_server import LARGE, TOKEN, blob, sha256
from testbed.worlds import World, files_of, make_world
from tests.services.test_bucket_sync import names, rows
from tests.services.test_connections import done

pytestmark = pytest.mark.django_db
REPO = "team/reviews"
BY_ID = ColumnMapping(id_column="id", text_column="text")


def connected(project: Project, **fields: Any) -> Connection:
    values = {"name": "hub", "kind": "hub", "bucket": REPO, "secret": TOKEN, **fields}
    return create_connection(project=project, actor=project.created_by, **values)


def parquet(count: int) -> bytes:
    out = io.BytesIO()
    table = {"id": [f"p{n}" for n in range(count)], "text": [f"text {n} ü" for n in range(count)]}
    pq.write_table(pa.table(table), out)
    return out.getvalue()


def fetched(project: Project, key: str, **fields: Any) -> Job:
    connection = connected(project, **fields)
    return done(fetch(connection=connection, user=project.created_by, key=key, mapping=BY_ID))


class TestReading:
    def test_files_of_a_data_set_become_items(self, hub):
        content = parquet(400)
        assert len(content) > LARGE  # it is one of the large files
        hub.add(REPO, **{"data/train.parquet": content, "data/more.csv": rows("c1", "c2"), "README.md": b"x"})
        project = make_project()
        job = fetched(project, "data/train.parquet")
        assert job.state == Job.State.DONE, job.error
        imported = done(Job.objects.get(pk=job.result["import"]))
        assert imported.result["added"] == 400
        job = fetched(project, "more.csv", prefix="data", name="second")
        assert done(Job.objects.get(pk=job.result["import"])).result["added"] == 2

    def test_all_of_it_is_found_page_by_page(self, hub):
        hub.page = 3
        hub.add(REPO, **{f"d/{number}.csv": b"x" for number in range(8)}, **{"e.csv": b"y"})
        with Repository(DataSet(REPO, "main")) as repository:
            assert [found.key for found in repository.list_objects("d/")] == [
                f"d/{number}.csv" for number in range(8)
            ]
            assert len(list(repository.list_objects(""))) == 9
            assert len(list(repository.list_objects("", at_most=1))) == 1
            assert list(repository.list_objects("no such folder/")) == []
            assert repository.head("none.csv") is None
            found = repository.head("e.csv")
            assert found is not None
            assert (found.size, found.etag) == (1, blob(b"y"))
            assert b"".join(repository.chunks(found)) == b"y"

    def test_a_private_one_is_shown_to_its_token_alone(self, hub):
        hub.add(REPO, **{"a.csv": rows("a")})
        hub.private.add(REPO)
        project = make_project()
        with_token = connected(project)
        assert try_connection(connection=with_token) == 1
        for secret in ("", "hf_another"):
            without = connected(project, secret=secret, name=f"other {secret}")
            with pytest.raises(InputError, match="no such data set"):
                try_connection(connection=without)
        with pytest.raises(InputError, match="no branch “next”"):
            try_connection(connection=connected(project, region="next", name="branch"))

    def test_no_token_of_the_machine_is_sent(self, hub, monkeypatch):
        hub.add(REPO, **{"a.csv": rows("a")})
        monkeypatch.setenv("HF_TOKEN", "hf_of_the_machine")
        with Repository(DataSet(REPO, "main")) as repository:
            for found in repository.list_objects(""):
                assert list(repository.chunks(found))
        sent = {name.lower(): value for _, _, headers in hub.asked for name, value in headers.items()}
        assert "authorization" not in sent
        assert "hf_of_the_machine" not in str(hub.asked)

    def test_nothing_is_told_but_what_is_asked(self, hub):
        """No telemetry, no look for a newer version, no list of what else is installed."""
        hub.add(REPO, **{"a.csv": rows("a")})
        fetched(make_project(), "a.csv")
        paths = {path.partition("?")[0] for _, path, _ in hub.asked}
        assert paths <= {
            f"/api/datasets/{REPO}/paths-info/main",
            f"/datasets/{REPO}/resolve/main/a.csv",
            f"/api/datasets/{REPO}/revision/main",
        }
        agents = {headers.get("User-Agent") or headers.get("user-agent") for _, _, headers in hub.asked}
        assert not [agent for agent in agents if "torch" in str(agent) or "agent/" in str(agent)]
        assert constants.HF_HUB_DISABLE_TELEMETRY
        assert constants.HF_HUB_DISABLE_XET

    def test_a_file_that_changes_meanwhile_is_not_mixed(self, hub):
        files = hub.add(REPO, **{"a.csv": rows("a")})
        with Repository(DataSet(REPO, "main")) as repository:
            found = repository.head("a.csv")
            files["a.csv"] = rows("b")
            with pytest.raises(HypacError, match="changed meanwhile"):
                list(repository.chunks(found))

    def test_a_hub_that_fails_is_asked_again_later(self, hub, monkeypatch):
        hub.add(REPO, **{"a.csv": rows("a")})
        project = make_project()
        hub.fails = 1000
        job = fetched(project, "a.csv")
        assert (job.state, job.error_code) == (Job.State.QUEUED, "hub_not_now")
        hub.fails = 0
        assert done(job).state == Job.State.DONE

    def test_nobody_there_and_no_hub_at_all_are_said(self, hub, settings):
        project = make_project()
        connection = connected(project)
        settings.HYPAC_HUB_ENDPOINT = "http://127.0.0.1:9"
        with pytest.raises(HypacError, match="no answer") as raised:
            try_connection(connection=connection)
        assert not raised.value.permanent
        settings.HYPAC_HUB_ENDPOINT = ""
        with pytest.raises(InputError, match="asks no Hub"):
            try_connection(connection=connection)
        with pytest.raises(InputError, match="asks no Hub"):
            connected(project, name="other")

    @pytest.mark.parametrize(
        "answer",
        [b"[]", b"{}", b'[{"type": "file"}]', b"<html>", b'[{"type":"file","path":"a","size":-1,"oid":"x"}]'],
    )
    def test_answers_that_cannot_be_read_are_no_crash(self, hub, monkeypatch, answer):
        hub.add(REPO)
        monkeypatch.setattr("testbed.hub_server.Handler.answer", _answering(answer))
        with Repository(DataSet(REPO, "main")) as repository:
            if answer in (b"[]", b"{}"):
                assert list(repository.list_objects("")) == []
            else:
                with pytest.raises(HypacError, match="cannot be read"):
                    list(repository.list_objects(""))

    def test_a_request_has_an_end(self, hub):
        _library()
        assert huggingface_hub.utils.get_session().timeout == httpx2.Timeout(60.0, connect=5.0)

    def test_it_can_be_synchronised(self, hub):
        large = parquet(400)
        assert len(large) > LARGE
        files = hub.add(REPO, **{"data/a.csv": rows("a"), "data/l.parquet": large, "README.md": b"card"})
        project = make_project()
        how = HowToImport(BY_ID)
        sync = save_sync(connection=connected(project), actor=project.created_by, how=how, take_from="data")
        assert done(look_now(sync=sync, user=sync.user)).result["taken"] == 2
        files["data/b.csv"] = rows("b")
        assert done(look_now(sync=sync, user=sync.user)).result["taken"] == 1
        assert done(look_now(sync=sync, user=sync.user)).result["found"] == 0
        assert names(project) == {"a", "b", *(f"p{number}" for number in range(400))}


def _answering(content: bytes) -> Any:
    from testbed.hub_server import Handler

    whole = Handler.answer
    return lambda self, status, body=b"", **headers: whole(self, status, content, **headers)


class TestWriting:
    @pytest.fixture
    def world(self) -> World:
        world = make_world(60)
        world.complete(m=30)
        return world

    def delivered(self, world: World, *formats: str) -> Delivery:
        run = world.project.runs.get()
        deliver(run=run, user=world.manager, formats=formats or ("csv", "parquet"))
        world.do("deliver_run")
        return run.deliveries.order_by("-pk").first()

    def pushed(self, delivery: Delivery, connection: Connection, **options: Any) -> Job:
        user = delivery.run.project.created_by
        return done(export_delivery(delivery=delivery, connection=connection, user=user, **options))

    def test_a_delivery_is_one_commit_with_a_data_card(self, hub, world):
        delivery = self.delivered(world)
        connection = connected(world.project)
        job = self.pushed(delivery, connection)
        assert job.state == Job.State.DONE, job.error
        assert REPO in hub.private  # it was not there, and nobody else sees it
        there = hub.data_sets[REPO]
        assert {name: there[f"delivery/{name}"] for name in files_of(delivery)} == files_of(delivery)
        assert len(there) == len(files_of(delivery)) + 1
        card = there["README.md"].decode()
        data = huggingface_hub.DatasetCard(card).data
        assert data.pretty_name == world.project.name
        assert data.configs[0]["data_files"][0]["path"] == "delivery/labels.parquet"
        assert card.endswith(files_of(delivery)["README.md"].decode())
        assert [title for _, title, _ in hub.commits] == [f"Delivery 1 of run 1 of {world.project.slug}"]
        assert job.result["commit"].startswith(f"{hub.url}/datasets/{REPO}/commit/")
        assert TOKEN not in json.dumps(
            [job.params, job.result, *AuditEvent.objects.values_list("data", flat=True)]
        )
        again = self.pushed(delivery, connection)
        assert (again.state, again.result["sent"]) == (Job.State.DONE, 0)
        assert len(hub.commits) == 1

    def test_the_next_one_takes_its_place_whole(self, hub, world):
        connection = connected(world.project)
        self.pushed(self.delivered(world, "csv", "jsonl"), connection)
        hub.data_sets[REPO]["notes.txt"] = b"mine"
        second = self.delivered(world, "parquet")
        assert self.pushed(second, connection).state == Job.State.DONE
        there = hub.data_sets[REPO]
        assert {name for name in there if name.startswith("delivery/")} == {
            f"delivery/{name}" for name in files_of(second)
        }
        assert there["notes.txt"] == b"mine"
        assert len(hub.commits) == 2

    def test_a_worker_that_dies_before_the_commit_leaves_nothing_and_after_it_one(
        self, hub, world, monkeypatch
    ):
        delivery, connection = self.delivered(world), connected(world.project)
        job = export_delivery(delivery=delivery, connection=connection, user=world.manager)

        class Died(BaseException):
            pass

        def die(*args: Any, **options: Any) -> Any:
            raise Died

        for place, commits in (("Repository.commit", 0), ("_compare", 1)):
            monkeypatch.setattr(
                hub_export if place == "_compare" else Repository, place.rpartition(".")[2], die
            )
            with pytest.raises(Died):
                done(job)
            monkeypatch.undo()
            assert len(hub.commits) == commits
            Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, claim_token="")
        assert done(job).state == Job.State.DONE, job.error
        assert len(hub.commits) == 1

    def test_a_branch_is_made_from_main_which_stays_as_it_is(self, hub, world):
        hub.add(REPO, **{"notes.txt": b"mine"})
        delivery, connection = self.delivered(world), connected(world.project, region="labels")
        job = self.pushed(delivery, connection)
        assert job.state == Job.State.DONE, job.error
        assert hub.data_sets[REPO] == {"notes.txt": b"mine"}
        branch = hub.data_sets[f"{REPO}@labels"]
        assert branch["notes.txt"] == b"mine"
        assert "delivery/manifest.json" in branch
        assert self.pushed(self.delivered(world, "jsonl"), connection).state == Job.State.DONE

    def test_somebody_elses_card_stays_unless_it_is_to_be_replaced(self, hub, world):
        hub.add(REPO, **{"README.md": b"mine"})
        delivery, connection = self.delivered(world), connected(world.project)
        job = self.pushed(delivery, connection)
        assert (job.state, job.error_code) == (Job.State.FAILED, "other_object_there")
        assert hub.data_sets[REPO] == {"README.md": b"mine"}
        assert self.pushed(delivery, connection, overwrite=True).state == Job.State.DONE
        assert b"mine" not in [hub.data_sets[REPO]["README.md"]]

    def test_without_the_right_token_it_is_refused_and_not_tried_for_ever(self, hub, world):
        hub.add(REPO)
        job = self.pushed(self.delivered(world), connected(world.project, secret="hf_another"))
        assert (job.state, job.error_code) == (Job.State.FAILED, "hub_refused_token")
        assert "hf_another" not in job.error

    def test_what_is_not_there_as_it_was_sent_is_sent_again(self, hub, world, monkeypatch):
        delivery = self.delivered(world)
        whole = Repository.commit

        def damaged(self: Repository, *args: Any, **options: Any) -> str:
            told = whole(self, *args, **options)
            hub.data_sets[REPO]["delivery/labels.csv"] += b"x"
            return told

        monkeypatch.setattr(Repository, "commit", damaged)
        connection = connected(world.project)
        job = self.pushed(delivery, connection)
        assert (job.state, job.error_code) == (Job.State.QUEUED, "not_as_sent")
        monkeypatch.undo()
        assert done(job).state == Job.State.DONE
        assert hub.data_sets[REPO]["delivery/labels.csv"] == files_of(delivery)["labels.csv"]

    def test_each_new_delivery_is_pushed_by_itself(self, hub, world):
        connection = connected(world.project)
        save_sync(connection=connection, actor=world.manager, write_to="")
        delivery = self.delivered(world)
        job = world.do("export_delivery")
        assert job.params["prefix"] == ""
        assert "delivery/manifest.json" in hub.data_sets[REPO]
        assert job.params["delivery"] == delivery.pk

    def test_an_older_delivery_never_takes_the_place_of_a_newer_one(self, hub, world):
        connection = connected(world.project)
        sync = save_sync(connection=connection, actor=world.manager, write_to="")
        self.delivered(world)
        first = world.project.jobs.get(kind="export_delivery")
        newest = self.delivered(world)
        assert done(first).state == Job.State.DONE, first.error
        for job in world.project.jobs.filter(kind="export_delivery"):
            done(job)
        assert first.params["delivery"] == newest.pk
        assert [title for _, title, _ in hub.commits] == [f"Delivery 2 of run 1 of {world.project.slug}"]
        for again in (False, True):
            assert write_deliveries(sync=sync, user=None, again=again) == 0

    def test_one_that_is_made_while_another_is_pushed_follows_it(self, hub, world, monkeypatch):
        save_sync(connection=connected(world.project), actor=world.manager, write_to="")
        self.delivered(world)
        first, made = world.project.jobs.get(kind="export_delivery"), []
        whole = Repository.commit

        def meanwhile(*args: Any, **options: Any) -> str:
            made.append(self.delivered(world, "jsonl"))
            return whole(*args, **options)

        monkeypatch.setattr(Repository, "commit", meanwhile)
        assert done(first).state == Job.State.DONE, first.error
        monkeypatch.undo()
        second = world.project.jobs.filter(kind="export_delivery").latest("pk")
        assert second.params["delivery"] == made[0].pk
        assert done(second).state == Job.State.DONE, second.error
        assert [title[:10] for _, title, _ in hub.commits] == ["Delivery 1", "Delivery 2"]

    def test_what_somebody_else_writes_meanwhile_is_not_overwritten(self, hub, world, monkeypatch):
        connection, delivery = connected(world.project), self.delivered(world)
        whole = Repository.commit

        def after_others(*args: Any, **options: Any) -> str:
            hub.commits.append((REPO, "another one", []))
            return whole(*args, **options)

        monkeypatch.setattr(Repository, "commit", after_others)
        job = self.pushed(delivery, connection)
        assert (job.state, job.error_code) == (Job.State.QUEUED, "hub_not_now")
        assert not hub.data_sets[REPO]
        monkeypatch.undo()
        assert done(job).state == Job.State.DONE

    def test_deliveries_are_not_taken_for_new_files(self, hub):
        project = make_project()
        options = {"how": HowToImport(BY_ID), "write_to": ""}
        for folder in ("", "delivery"):
            with pytest.raises(InputError, match="imported again"):
                save_sync(
                    connection=connected(project, name=f"c{folder}"),
                    actor=project.created_by,
                    take_from=folder,
                    **options,
                )

    def test_contents_are_told_apart(self, tmp_path):
        path: Path = tmp_path / "it"
        path.write_bytes(b"abc")
        from annotation.outside.buckets import ObjectInfo

        assert has_content(path, ObjectInfo("it", 3, blob(b"abc")))
        assert has_content(path, ObjectInfo("it", 3, sha256(b"abc")))
        assert not has_content(path, ObjectInfo("it", 3, blob(b"abd")))
        assert not has_content(path, ObjectInfo("it", 4, blob(b"abc")))
