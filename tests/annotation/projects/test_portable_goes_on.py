"""A project that came in as a file goes on; and the commands."""

import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection

from annotation.common.files import open_file, store_file
from annotation.errors import ConflictError, HypacError, InputError
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import (
    AuditEvent,
    Job,
    Label,
    Membership,
    Project,
    User,
)
from annotation.projects.lifecycle import archive_project, unarchive_project
from hypac_site.portable.exporting import export_project
from hypac_site.portable.importing import import_project
from hypac_site.portable.manifest import NAME
from routing.core import losses
from routing.delivery.deliver import deliver
from routing.elsewhere.losses import take_losses
from routing.models import Commitment, Delivery, Run, Source
from routing.runs.ask_losses import ask_losses
from routing.runs.commitment_queries import project_named
from routing.runs.draw import store_draw
from routing.runs.losses_to_measure import losses_so_far
from testbed.experts import ExpertWorld
from testbed.factories import make_items, make_project, make_user
from testbed.measured import PLAN, rows_given_out, with_losses, world_of_meshes
from testbed.worlds import World, files_of, make_world
from tests.annotation.projects.portable import (
    carried,
    compare,
    done,
    lines_of,
)
from tests.routing.runs import test_final_audit
from tests.routing.runs.slow_loss import PATH, SLOW, Slow, compute_all
from tests.verify.reports import found_in

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


class TestGoingOn:
    def test_a_calibration_goes_on_with_the_same_draw(self, tmp_path: Path) -> None:
        world = make_world(120)
        run = world.calibrating(m=60)
        world.label(limit=20)
        project = carried(world.project, tmp_path, match_people=True)
        new = project.runs.get()
        assert (new.state, new.entropy, new.salt) == (run.state, run.entropy, run.salt)
        drawn = [
            one.draw.items.order_by("order").values_list("item__external_id", "asked") for one in (run, new)
        ]
        assert list(drawn[0]) == list(drawn[1])
        there = World(project, world.manager, world.annotators, world.truth, world.keys)
        before = Label.objects.filter(item__project=project).count()
        assert before == 20
        for one, its_run in ((there, new), (world, run)):
            one.finish()
            one.complete_from(its_run)
        files = {}
        for one in (world, there):
            deliver(run=one.project.runs.get(), user=one.manager)
            one.do("deliver_run")
            files[one.project.pk] = files_of(Delivery.objects.get(run__project=one.project))
        # The same labels, by the same people: the same bytes, also of what names the project.
        mine, theirs = files[world.project.pk], files[project.pk]
        assert theirs["certificate.json"] == mine["certificate.json"]
        assert theirs["draw.jsonl"] == mine["draw.jsonl"]
        found = found_in(tmp_path / "delivered", theirs)
        assert (found.code, found.faults) == (0, "")

    def test_nobody_sees_model_output_while_it_is_blind(self, tmp_path: Path, client_of: Any) -> None:
        world = make_world(120)
        world.calibrating(m=60)
        project = carried(world.project, tmp_path)
        client = client_of(world.manager)
        for one in (world.project, project):
            told = client.get(f"/api/v1/projects/{one.slug}/predictions/")
            assert (told.status_code, told.json()["code"]) == (403, "still_blind"), one
        item = project.items.first()
        page = client.get(f"/projects/{project.slug}/items/{item.pk}/").content.decode()
        assert "Model 1" not in page

    @pytest.mark.database
    def test_a_job_that_was_cancelled_is_begun_again_there(self, tmp_path: Path) -> None:
        world = make_world(120)
        world.start(m=60)
        job = world.project.jobs.get(kind="prepare_run")
        with pytest.raises(ConflictError, match="cancelled job can be started again"):
            carried(world.project, tmp_path)
        jobs.cancel(job=job)
        project = carried(world.project, tmp_path)
        again = project.jobs.get(kind="prepare_run")
        jobs.retry(job=again)
        jobs.run(again.pk)
        again.refresh_from_db()
        assert again.state == Job.State.DONE, again.error
        assert project.runs.get().state == Run.State.CALIBRATING
        assert world.project.runs.get().state == Run.State.PREPARING

    @pytest.mark.database
    def test_jobs_keep_the_keys_that_have_them_done_once(self, tmp_path: Path) -> None:
        """Of a kind of change as it is; of another job with its number here; numbers of whatever else go."""
        project = make_project()
        (item,) = make_items(project, 1)
        changed = Job.objects.create(
            project=project, kind="change_items", state="cancelled", unique_key="change_items:ask_people",
            params={"change": "ask_people", "filters": {}, "items": [item.pk]},
        )  # fmt: skip
        for kind, key, params in (
            ("undo_change_items", f"undo_change_items:{changed.pk}", {"job": changed.pk}),
            ("export_delivery", "export_delivery:71:72", {"delivery": 71, "connection": 72}),
            ("fetch", "fetch:0a1b", {}),
            ("deliver_run", "deliver_run:5", {"run": 6}),
            ("settle_run", "unknown:5", {}),
        ):
            Job.objects.create(project=project, kind=kind, state="cancelled", unique_key=key, params=params)
        copy = carried(project, tmp_path)
        new = copy.jobs.get(kind="change_items")
        keys = dict(copy.jobs.values_list("kind", "unique_key"))
        assert keys == {
            "change_items": "change_items:ask_people",
            "undo_change_items": f"undo_change_items:{new.pk}",
            "export_delivery": "export_delivery:0:0",
            "fetch": "fetch:0a1b",
            "deliver_run": "",
            "settle_run": "",
        }
        assert new.params["items"] == [copy.items.get().pk]
        # Numbers of rows that did not come along are none from then on, and go out and in as such.
        again = carried(copy, tmp_path, owner=project.created_by.username)
        assert again.jobs.get(kind="export_delivery").params == {"delivery": 0, "connection": 0}

    def test_items_that_are_much_alike(self, tmp_path: Path) -> None:
        """Packed to a thousandth: what goes out comes in."""
        project = make_project()
        make_items(project, ["a" * 100_000] * 200)
        assert carried(project, tmp_path).items.count() == 200
        with zipfile.ZipFile(tmp_path / f"{project.slug}.zip") as content:
            table = content.getinfo("tables/annotation.item.jsonl")
        assert table.file_size > 200 * table.compress_size

    @pytest.mark.parametrize("committed", [True, False])
    def test_documents_go_on_naming_the_project_as_before(self, tmp_path: Path, committed: bool) -> None:
        """By its commitments, and by its certificate where its runs are from before there were any."""
        world = make_world(60)
        run = world.start(m=30)
        if not committed:  # as runs were drawn before there were commitments
            world.way = None
            store_draw(run, entropy=int(run.entropy), randomness=None)
        world.do("prepare_run")
        world.finish()
        run.refresh_from_db()
        world.analyse(run)
        assert Commitment.objects.filter(run=run).exists() == committed
        copy = carried(world.project, tmp_path, slug="elsewhere")
        assert project_named(Run(project=copy, number=2)) == world.project.slug
        fresh = make_project()
        assert project_named(Run(project=fresh, number=1)) == fresh.slug

    @pytest.mark.database
    def test_a_run_with_an_expert(self, tmp_path: Path) -> None:
        """From its calibration on there; then with its final audit, and all tables that such runs have."""
        here = test_final_audit.world(error=0.0)
        run = here.asked(here.start(**test_final_audit.PLAN))
        project = carried(here.world.project, tmp_path, match_people=True)
        here.world.project = project
        test_final_audit.analysed(
            here, test_final_audit.drawn(here, here.finish(here.routed_from(project.runs.get())))
        )
        assert run.state == Run.State.CHECKING
        first, second = tmp_path / "first.zip", tmp_path / "second.zip"
        export_project(slug=project.slug, target=first)
        imported = import_project(path=first, owner=make_user("owner-here").username, slug="other")
        export_project(slug="other", target=second)
        compare(first, second, imported.made)
        for name in ("expertrequest", "finalaudit", "finalcertificate", "finalsample", "rosterentry"):
            assert lines_of(second)[f"tables/routing.{name}.jsonl"], name
        last = imported.project
        deliver(run=last.runs.get(), user=None)
        done(last, "deliver_run")
        found = found_in(tmp_path / "d", files_of(Delivery.objects.get(run__project=last)))
        assert (found.code, found.faults) == (0, "")

    @pytest.mark.database
    def test_a_run_goes_on_that_waits_for_losses(self, settings: Any, tmp_path: Path) -> None:
        """No export waits for the job that computes them; what is undecided is decided there."""
        settings.HYPAC_LOSSES = [PATH]
        here = ExpertWorld(240, error=0.2)
        run = here.routed(here.start(loss=PATH))
        while here.label(*here.world.annotators, *here.experts):
            pass
        undecided = run.expert_requests.filter(why="undecided").count()
        assert here.world.project.computed_losses.exists()
        # Of losses that are computed again nobody is told.
        assert not export_project(slug=here.world.project.slug, target=tmp_path / "told.zip").left_out
        assert here.world.project.jobs.filter(kind="compute_losses", state=Job.State.QUEUED).exists()
        project = carried(here.world.project, tmp_path, match_people=True)
        new = project.runs.get()
        assert new.state == Run.State.LABELLING
        assert new.expert_requests.filter(why="undecided").count() == undecided > 0
        here.world.project = project
        while compute_all(project) or here.label(*here.experts):
            pass
        new.refresh_from_db()
        assert new.state == Run.State.COMPLETE
        assert not new.expert_requests.filter(why="undecided").exists()

    @pytest.mark.parametrize("away", ["its code raises", "its code is not installed"])
    def test_a_loss_that_is_not_to_be_had_here_is_no_forgery(
        self, settings: Any, monkeypatch: Any, tmp_path: Path, away: str
    ) -> None:
        settings.HYPAC_LOSSES = [PATH]
        world = make_world(120)
        world.complete(m=40, loss=PATH)
        target = tmp_path / "project.zip"
        export_project(slug=world.project.slug, target=target)
        owner = make_user("owner-here").username
        losses._made.cache_clear()
        with monkeypatch.context() as patched:
            if away == "its code raises":
                patched.setattr(Slow, "__call__", lambda *_pair: 1 / 0)
            else:
                patched.setitem(sys.modules, PATH.partition(":")[0], None)
            with pytest.raises(HypacError, match="cannot be computed here now") as refused:
                import_project(path=target, owner=owner, slug="there")
        losses._made.cache_clear()
        assert PATH in str(refused.value)
        assert "run 1" in str(refused.value)
        assert "not what its rows give" not in str(refused.value)
        assert not refused.value.permanent
        assert not Project.objects.filter(slug="there").exists()
        assert import_project(path=target, owner=owner, slug="there").project.runs.get().certificate.holds

    @pytest.mark.database
    def test_slow_losses_are_computed_while_nothing_is_stored(
        self, settings: Any, monkeypatch: Any, tmp_path: Path
    ) -> None:
        """Once each, and what they say of a forged file is said."""
        settings.HYPAC_LOSSES = [PATH]
        world = make_world(120)
        world.complete(m=40, loss=PATH)
        target = tmp_path / "project.zip"
        export_project(slug=world.project.slug, target=target)
        owner = make_user("owner-here").username
        open_transactions = len(connection.savepoint_ids)
        SLOW.pairs.clear()
        depths = set[int]()
        compute = Slow.__call__

        def computing(loss: Slow, label: str, prediction: str) -> float:
            depths.add(len(connection.savepoint_ids) - open_transactions)
            return compute(loss, label, prediction)

        with monkeypatch.context() as patched:
            patched.setattr(Slow, "__call__", computing)
            copy = import_project(path=target, owner=owner, slug="there").project
        assert depths == {0}
        assert len(SLOW.pairs) == len(set(SLOW.pairs))
        then, now = (one.runs.get().certificate for one in (world.project, copy))
        assert (now.figures, now.messages) == (then.figures, then.messages)

        # Who is switched off while they are computed, gets nothing.
        leaver = make_user("leaver")

        def leaving(loss: Slow, label: str, prediction: str) -> float:
            User.objects.filter(pk=leaver.pk).update(is_active=False)
            return compute(loss, label, prediction)

        same = {world.annotators[0].username: leaver.username}
        for people in ({"owner": leaver.username}, {"owner": owner, "same": same}):
            User.objects.filter(pk=leaver.pk).update(is_active=True)
            with monkeypatch.context() as patched:
                patched.setattr(Slow, "__call__", leaving)
                with pytest.raises(InputError, match="'leaver' was switched off or erased meanwhile"):
                    import_project(path=target, slug="elsewhere", **people)
            assert not Project.objects.filter(slug="elsewhere").exists()
        monkeypatch.setattr(Slow, "__call__", lambda *_pair: 0.0)
        with pytest.raises(InputError, match="not what its rows give"):
            import_project(path=target, owner=owner, slug="elsewhere")
        assert not Project.objects.filter(slug="elsewhere").exists()

    @pytest.mark.database
    def test_a_run_whose_losses_are_being_measured(self, tmp_path: Path) -> None:
        world = world_of_meshes(80)
        run = world.calibrated(**PLAN, m=40, epsilon="0.3")
        ask_losses(run=run, user=world.manager)
        rows = [with_losses(row) for row in rows_given_out(run, world.manager)]
        take_losses(run=run, actor=world.manager, rows=rows[3:])
        world.project = carried(world.project, tmp_path, match_people=True)
        new = world.project.runs.get()
        assert set(losses_so_far(new).missing) == {row["name"] for row in rows[:3]}
        rest = [with_losses(row) for row in rows_given_out(new, world.manager)]
        taken = take_losses(run=new, actor=world.manager, rows=rest)
        assert (taken.stored, taken.known) == (3, len(rows) - 3)
        world.way = None
        assert world.analyse(new).certificate.holds

    def test_a_model_in_a_network_that_is_not_reached_from_here(self, tmp_path: Path) -> None:
        """Whether it can be asked here is told where it is asked."""
        project = make_world(20).project
        params = {"url": "http://10.0.0.5:8000/v1", "model": "m"}
        made = {"backend": "openai_api", "position": 9, "cost_per_label": 1, "params": params}
        Source.objects.create(project=project, name="own GPU", **made)
        copy = carried(project, tmp_path)
        assert copy.sources.get(name="own GPU").params == params

    def test_an_archived_project_stays_archived(self, tmp_path: Path) -> None:
        project = make_project()
        make_items(project, 3)
        archive_project(project=project, actor=project.created_by)
        copy = carried(project, tmp_path)
        assert copy.archived_at == Project.objects.get(pk=project.pk).archived_at
        unarchive_project(project=copy, actor=project.created_by)
        queue.create_batch(project=copy, item_ids=[copy.items.first().pk], blind=False, priority=1, entropy=1)
        copy.refresh_from_db()
        assert queue.claim(project=copy, user=project.created_by) is not None


class TestCommand:
    def test_out_and_in(self, project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "p.zip"
        owner = project.created_by.username
        make_items(project, 3)
        call_command("project", "export", project.slug, to=path, json=True)
        told = json.loads(capsys.readouterr().out)
        assert (told["files"], told["missing"], told["left_out"]) == (0, [], {})
        assert path.stat().st_mode & 0o077 == 0
        call_command("project", "import", str(path), owner=owner, slug="there")
        said = capsys.readouterr().out
        assert "there: " in said
        assert f"{owner} as {owner} (there)" in said
        assert Project.objects.get(slug="there").items.count() == 3
        assert Membership.objects.filter(project__slug="there", user=project.created_by, role="owner")
        event = AuditEvent.objects.get(action="project.exported")
        assert (event.project, event.target) == (project, f"project:{project.slug}")

    def test_what_it_wants(self, project: Project, tmp_path: Path) -> None:
        path = tmp_path / "p.zip"
        for arguments, options, words in (
            (["export", project.slug], {}, "where to"),
            (["export", "nothing"], {"to": path}, "There is no project 'nothing'"),
            (["import"], {}, "Say which file"),
            (["import", str(path)], {"owner": project.created_by.username}, "There is no file"),
            (["import", str(path)], {"person": ["ann"]}, "THEIRS=HERE"),
        ):
            with pytest.raises(CommandError, match=words):
                call_command("project", *arguments, **options)
        path.write_bytes(b"mine")
        with pytest.raises(CommandError, match="already there"):
            call_command("project", "export", project.slug, to=path)
        assert path.read_bytes() == b"mine"

    def test_a_file_that_the_storage_lost_is_told(self, project: Project, tmp_path: Path) -> None:
        lost = store_file(
            project=project, content=io.BytesIO(b"lost"), original_name="a.csv", media_type="text/csv"
        )
        default_storage.delete(lost.storage_name)
        path = tmp_path / "it.zip"
        manifest = export_project(slug=project.slug, target=path)
        assert manifest.missing == [lost.sha256]
        copy = import_project(path=path, owner=project.created_by.username, slug="other").project
        with pytest.raises(InputError, match="no longer in the storage"):
            open_file(copy.files.get())

    def test_the_manifest_says_what_it_is(self, project: Project, tmp_path: Path) -> None:
        path = tmp_path / "p.zip"
        export_project(slug=project.slug, target=path)
        with zipfile.ZipFile(path) as content:
            told = json.loads(content.read(NAME))
        assert (told["format"], told["version"], told["slug"]) == ("hypac-project", 1, project.slug)
        assert [
            part["rows"] for part in told["parts"] if part["name"] == "tables/annotation.choice.jsonl"
        ] == [2]
