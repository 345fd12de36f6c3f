"""Project files with something else where a number of a row has to stand, or a job that has not ended."""

from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from annotation.errors import HypacError, InputError, NotAllowedError
from annotation.jobs import jobs
from annotation.models import Job, Membership, Project, User
from annotation.people.own_passwords import OwnPasswordError
from hypac_site.portable import importing
from hypac_site.portable.exporting import export_project
from hypac_site.portable.ids import MANY, OF_RESULT, ONE
from hypac_site.portable.importing import import_project
from hypac_site.portable.manifest import PEOPLE
from routing.delivery.downloads import is_delivered_name
from routing.models import Delivery, Run
from testbed.factories import add_member, made_account, make_items, make_project, make_user
from testbed.worlds import make_world
from tests.annotation.projects.portable import Change, Lines, carried, forged

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]

JOB, VIEW = "tables/annotation.job.jsonl", "tables/routing.savedview.jsonl"
# Of a row, a number and nothing else: what stayed as it is would be taken for that of somebody else's row.
NONE: list[Any] = ["5", 5.0, True, -5, 2**63, [5], {"pk": 5}, " 5", ""]


@pytest.fixture
def project() -> Project:
    """With one job of each state in which a job may go out, the change to items first."""
    made = make_project()
    make_items(made, 3)
    Job.objects.create(
        project=made, kind="change_items", state="cancelled", result={"items": 0, "last": 0, "comments": []},
        params={"change": "flag", "filters": {}, "items": None, "shown_run": None, "text": ""},
    )  # fmt: skip
    for state in ("done", "failed"):
        Job.objects.create(project=made, kind="fetch", state=state)
    return made


def changed(project: Project, folder: Path, change: Change) -> Path:
    good = folder / "good.zip"
    export_project(slug=project.slug, target=good)
    return forged(good, folder / "forged.zip", change)


def refused(path: Path, words: str) -> None:
    before = Project.objects.count(), User.objects.count(), Job.objects.count()
    with pytest.raises(InputError, match=words):
        import_project(path=path, owner=make_user("owner-here").username, slug="other")
    assert (Project.objects.count(), User.objects.count() - 1, Job.objects.count()) == before


class TestNumbers:
    @pytest.mark.parametrize("value", NONE, ids=repr)
    @pytest.mark.parametrize(
        ("column", "name"), [("params", "run"), ("params", "source"), ("result", "delivery")]
    )
    def test_one(self, project: Project, tmp_path: Path, column: str, name: str, value: Any) -> None:
        path = changed(project, tmp_path, lambda lines: lines[JOB][0][column].update({name: value}))
        refused(path, f"job.*{name} is no number of a row")

    def test_each_name_is_looked_at(self, project: Project, tmp_path: Path) -> None:
        names = [("params", name) for name in (*ONE, *MANY)]
        names += [("result", name) for name in (*OF_RESULT, "batches", "comments", "last")]
        good = tmp_path / "good.zip"
        export_project(slug=project.slug, target=good)
        make_user("owner-here")
        for column, name in names:
            path = forged(
                good, tmp_path / "p.zip",
                lambda lines, column=column, name=name: lines[JOB][0][column].update({name: "7"}),
            )  # fmt: skip
            with pytest.raises(InputError, match=f"{name} (is|are) no number"):
                import_project(path=path, owner="owner-here", slug="other")

    @pytest.mark.parametrize("value", [["7"], [7, 7.0], [True], [[7]], "7", 7, {"7": 7}], ids=repr)
    @pytest.mark.parametrize(
        ("column", "name"), [("params", "items"), ("params", "batches"), ("result", "comments")]
    )
    def test_many(self, project: Project, tmp_path: Path, column: str, name: str, value: Any) -> None:
        path = changed(project, tmp_path, lambda lines: lines[JOB][0][column].update({name: value}))
        refused(path, f"{name} are no numbers of rows")

    @pytest.mark.parametrize("value", [5, ["5"], "ada", "5 or 6"], ids=repr)
    def test_a_filter_for_a_person(self, project: Project, tmp_path: Path, value: Any) -> None:
        def change(lines: Lines) -> None:
            lines[JOB][0]["params"]["filters"] = {"annotator": value}

        refused(changed(project, tmp_path, change), "annotator is no number of a person")

    def test_a_number_of_no_row_of_the_file_is_nobodys(self, project: Project, tmp_path: Path) -> None:
        """Also rows that were removed since leave such numbers, so that they are no reason to refuse."""

        def change(lines: Lines) -> None:
            lines[JOB][0]["params"] |= {"run": 5, "items": [5, 10**9], "filters": {"annotator": "5"}}
            lines[JOB][0]["result"] |= {"comments": [5, 6], "batches": [5], "last": 5}

        path = changed(project, tmp_path, change)
        job = import_project(path=path, owner=make_user("me").username, slug="b").project.jobs.last()
        assert (job.params["run"], job.params["items"], job.params["filters"]) == (0, [], {"annotator": "0"})
        assert (job.result["comments"], job.result["batches"]) == ([], [])

    def test_a_job_that_is_started_again_delivers_no_run_of_others(self, tmp_path: Path) -> None:
        """What somebody would gain: labels of another project, in a delivery of theirs."""
        world = make_world(40)
        run = world.complete(m=20)
        mine = make_project()
        Job.objects.create(project=mine, kind="deliver_run", state="cancelled", params={"run": run.pk})
        for number, forged_run in enumerate((run.pk, str(run.pk))):
            folder = tmp_path / str(number)
            folder.mkdir()
            path = changed(
                mine, folder, lambda lines, value=forged_run: lines[JOB][0]["params"].update(run=value)
            )
            owner = make_user(f"mallory-{number}").username
            if isinstance(forged_run, str):
                with pytest.raises(InputError, match="run is no number of a row"):
                    import_project(path=path, owner=owner, slug="other")
                continue
            job = import_project(path=path, owner=owner, slug="b").project.jobs.get()
            jobs.retry(job=job)
            jobs.run(job.pk)
            job.refresh_from_db()
            assert job.state == Job.State.FAILED
        assert not Delivery.objects.exists()
        assert Run.objects.get(pk=run.pk).state == run.state

    def test_a_view_that_somebody_typed(self, project: Project, tmp_path: Path) -> None:
        for number, query in enumerate(("annotator=ada", "annotator=5&annotator=+6")):
            project.saved_views.create(name=str(number), owner=project.created_by, query=query)
        copy = carried(project, tmp_path)
        queries = list(copy.saved_views.order_by("name").values_list("query", flat=True))
        assert queries == ["annotator=ada", "annotator=0&annotator=+6"]


class TestJobs:
    @pytest.mark.parametrize("state", ["queued", "running", "paused"])
    def test_one_that_has_not_ended(self, project: Project, tmp_path: Path, state: str) -> None:
        refused(
            changed(project, tmp_path, lambda lines: lines[JOB][1].update(state=state)),
            f"its work has not ended, it is {state}",
        )

    def test_one_that_nobody_here_does(self, project: Project, tmp_path: Path) -> None:
        refused(
            changed(project, tmp_path, lambda lines: lines[JOB][1].update(kind="evil")), "no work of the kind"
        )

    def test_no_worker_has_one_that_ended(self, project: Project, tmp_path: Path) -> None:
        def claimed(lines: Lines) -> None:
            lines[JOB][1].update(claim_token="a" * 32, heartbeat_at="2026-01-01T00:00:00+00:00")
            lines[JOB][1].update(pause_asked=True)

        path = changed(project, tmp_path, claimed)
        copy = import_project(path=path, owner=make_user("me").username, slug="b").project
        free = copy.jobs.filter(claim_token="", heartbeat_at=None, pause_asked=False)
        assert free.count() == 3


class TestOwnPasswords:
    """Whoever made an account may know its password: with it they get into nothing else."""

    def made(self, project: Project) -> User:
        account, _password = made_account(make_project(), "made")
        add_member(project, "manager", make_user("made-there"))
        return account

    def test_an_owner_chooses_one_first(self, project: Project, tmp_path: Path) -> None:
        account = self.made(project)
        before = Project.objects.count(), User.objects.count()
        with pytest.raises(OwnPasswordError, match="account made may know its password"):
            carried(project, tmp_path, owner="made")
        assert (Project.objects.count(), User.objects.count()) == before
        account.password_chosen_at = project.created_at
        account.save()
        assert carried(project, tmp_path, owner="made").memberships.get(user=account).role == "owner"

    def test_and_so_does_whoever_is_matched(self, project: Project, tmp_path: Path) -> None:
        account = self.made(project)
        with pytest.raises(NotAllowedError, match="account made may know its password"):
            carried(project, tmp_path, same={"made-there": "made"})
        path = tmp_path / "by-name.zip"
        User.objects.filter(username="made-there").update(username="made-everywhere")
        export_project(slug=project.slug, target=path)
        User.objects.filter(username="made-everywhere").update(username="somebody")
        User.objects.filter(pk=account.pk).update(username="made-everywhere")
        owner = project.created_by.username
        with pytest.raises(NotAllowedError, match="account made-everywhere may know its password"):
            import_project(path=path, owner=owner, slug="b", match_people=True)
        assert not Membership.objects.filter(user=account).exclude(project=account.made_in).exists()
        # Nobody is matched who is not said to be: the account stays out, and the project comes in.
        assert import_project(path=path, owner=owner, slug="b").project.slug == "b"


def test_what_hinders_cleaning_up_hides_nothing(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*args: Any, **options: Any) -> None:
        raise OperationalError("the disk is full")

    def broken(folder: str) -> None:
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(importing, "join", fails)
    monkeypatch.setattr(importing, "remove_folder", broken)
    with pytest.raises(HypacError, match="Nothing was imported: the disk is full"):
        carried(project, tmp_path, owner=make_user("me").username)
    assert "could not be removed" in caplog.text


AUDIT, PROJECT = "tables/annotation.auditevent.jsonl", "tables/annotation.project.jsonl"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda all_: all_[AUDIT][0].update(project=None), "auditevent.*it belongs to no project"),
        (lambda all_: all_[PROJECT][0].update(gold_share=10**400), "gold_share"),
        (lambda all_: all_[JOB][0].update(created_at="0001-01-01T00:00:00+14:00"), "no database stores"),
        (lambda all_: all_[JOB][0].update(created_at="9999-12-31T23:59:59-12:00"), "no database stores"),
        (lambda all_: all_[PEOPLE][0].update(erased_at="0001-01-01T00:00:00+14:00"), "no database stores"),
    ],
)
def test_what_no_row_may_be(project: Project, tmp_path: Path, change: Change, words: str) -> None:
    refused(changed(project, tmp_path, change), words)


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/../b", "a\r\nb", "..", "a//b", "C:\\x", ""])
def test_names_of_delivered_files_lead_nowhere_else(name: str) -> None:
    assert not is_delivered_name(name)


def test_an_export_that_breaks_off_says_why(project: Project, tmp_path: Path) -> None:
    Job.objects.filter(project=project, kind="change_items").update(params={"run": "5"})
    with pytest.raises(HypacError, match=r"annotation\.job cannot be used: run is no number of a row"):
        export_project(slug=project.slug, target=tmp_path / "p.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_short_name_that_is_taken_meanwhile(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = importing._stored

    def later(*args: Any) -> Any:
        Project.objects.filter(pk=make_project().pk).update(slug="other")
        return stored(*args)

    monkeypatch.setattr(importing, "_stored", later)
    with pytest.raises(InputError, match="There is a project 'other' here already: say with --slug"):
        carried(project, tmp_path, slug="other")
