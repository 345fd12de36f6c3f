"""A project as one file: what comes in is what went out, and its certificates verify."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from annotation.errors import HypacError
from annotation.models import (
    AuditEvent,
    Connection,
    Invitation,
    Label,
    Project,
    User,
    Webhook,
    WorkItem,
)
from annotation.people.erase import erase_person
from hypac_site.portable.exporting import export_project
from hypac_site.portable.ids import WITH_IDS, WITHOUT_IDS
from hypac_site.portable.importing import import_project
from hypac_site.portable.tables import fields_of, name_of, refers_to, rows_of, travelling
from routing.delivery.deliver import deliver
from routing.models import Delivery, Source
from testbed.factories import add_member, make_project, make_user
from testbed.worlds import World, files_of
from tests.annotation.projects.portable import (
    carried,
    compare,
    done,
    json_columns,
    numbers_from,
    rows_there,
)
from tests.annotation.projects.portable_world import KEY, everything
from tests.conftest import Stored
from tests.verify.reports import found_in

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]

OLD, NEW = 70_000_000, 900_000_000


@pytest.fixture(scope="module")
def _full(stored: Stored) -> World:
    def make() -> World:
        numbers_from(OLD)
        return everything()

    return stored(make)


@pytest.fixture
def full(_full: World) -> World:
    numbers_from(NEW)
    return _full


class TestEverything:
    def test_it_comes_in_as_it_went_out(self, full: World, tmp_path: Path) -> None:
        first, second = tmp_path / "first.zip", tmp_path / "second.zip"
        export_project(slug=full.project.slug, target=first)
        before = rows_there(full.project)
        imported = import_project(path=first, owner=make_user("owner-here").username, slug="other")
        assert rows_there(full.project) == before
        export_project(slug="other", target=second)
        compare(first, second, imported.made)

    def test_no_table_is_left_out_that_belongs_to_a_project(self, full: World, tmp_path: Path) -> None:
        """But those of runs with an expert, or with measured losses, which have tests of their own."""
        empty = {name_of(model) for model, count in rows_there(full.project).items() if not count}
        assert empty == {
            *("routing.expertrequest", "routing.finalaudit", "routing.finalcertificate"),
            *("routing.finalsample", "routing.rosterentry", "routing.givenlosses"),
            "routing.wantedlosses",
        }

    def test_no_number_of_before_is_left(self, full: World, tmp_path: Path) -> None:
        """Numbers of rows began with 7 before, and begin with 9 now: in columns, JSON, keys and targets."""
        assert full.project.pk > OLD
        project = carried(full.project, tmp_path)
        old = re.compile(r"(?<![0-9a-fA-F.])70[0-9]{6}(?![0-9a-fA-F.])")
        for model in travelling():
            for row in rows_of(model, project.pk).values():
                found = old.search(json.dumps(row, default=str))
                assert found is None, (name_of(model), row)
                assert row["id"] > NEW

    def test_every_json_column_is_known(self) -> None:
        assert json_columns() == WITH_IDS | WITHOUT_IDS
        assert not WITH_IDS & WITHOUT_IDS

    def test_all_that_rows_refer_to_travels(self) -> None:
        for model in travelling():
            for field in fields_of(model):
                assert refers_to(field) in {None, User, *travelling()}, field

    def test_the_delivery_verifies_and_one_that_is_made_there(self, full: World, tmp_path: Path) -> None:
        project = carried(full.project, tmp_path)
        run = project.runs.get()
        theirs = Delivery.objects.filter(run__project=full.project).order_by("number")
        for old, new in zip(theirs, Delivery.objects.filter(run=run).order_by("number"), strict=True):
            assert files_of(new) == files_of(old)
        first = files_of(Delivery.objects.get(run=run, number=1))
        assert found_in(tmp_path / "delivered", first).code == 0
        deliver(run=run, user=None)
        done(project, "deliver_run")
        found = found_in(tmp_path / "delivered", files_of(Delivery.objects.filter(run=run).latest("number")))
        assert (found.code, found.faults) == (0, "")

    def test_what_is_new_since_a_delivery_of_before_is_told(self, full: World, tmp_path: Path) -> None:
        """By the items' numbers, which stand in a file: nothing is new but what changed since."""
        project = carried(full.project, tmp_path)
        told = []
        for one in (full.project, project):
            run = one.runs.get()
            deliver(run=run, user=None, since=Delivery.objects.get(run=run, number=1))
            job = done(one, "deliver_run")
            told.append((job.result["rows"], job.result["gone"]))
        assert told[0] == told[1]
        assert told[0][0] < full.project.items.count() / 4

    def test_keys_and_links_stay_behind(self, full: World, tmp_path: Path) -> None:
        path = tmp_path / "it.zip"
        manifest = export_project(slug=full.project.slug, target=path)
        with zipfile.ZipFile(path) as content:
            tables = b"".join(content.read(name) for name in content.namelist() if name.endswith("l"))
            files = {name for name in content.namelist() if name.startswith("files/")}
        key = Source.objects.get(project=full.project, name="server").api_key
        lease = WorkItem.objects.get(batch__project=full.project, state="leased").lease_token
        for secret in (KEY, key, lease, "example.org/told", "127.0.0.1"):
            assert secret not in tables.decode(), secret
        assert manifest.left_out == {
            "connections to buckets, with their keys": 1,
            "files found in them": 1,
            "invitations": 1,
            "messages of webhooks": 1,
            "tokens": 1,
            "webhooks, with their secrets": 1,
            "what is done with them by itself": 1,
        }
        project = import_project(path=path, owner=full.manager.username, slug="other").project
        for model in (Connection, Invitation, Webhook):
            assert not model._default_manager.filter(project=project).exists()
        assert Source.objects.get(project=project, name="server").api_key == ""
        assert not WorkItem.objects.filter(batch__project=project, state="leased").exists()
        assert len(files) == manifest.files == len(set(project.files.values_list("sha256", flat=True)))
        for stored in project.files.all():
            assert stored.storage_name.startswith(f"projects/{project.pk}/")
            assert default_storage.size(stored.storage_name) == stored.size

    def test_twice_makes_two_projects(self, full: World, tmp_path: Path) -> None:
        first = carried(full.project, tmp_path, slug="b")
        second = carried(full.project, tmp_path, slug="c", match_people=True)
        third = carried(full.project, tmp_path, slug="d", match_people=True)
        counts = [rows_there(one) for one in (first, second, third)]
        for model in travelling():
            if name_of(model) not in ("annotation.auditevent", "annotation.membership"):
                assert len({count[model] for count in counts}) == 1, model
        # Of one person there are labels in three projects now, each under a key of its own.
        labels = Label.objects.filter(annotator=full.annotators[0], item__project__in=[second, third])
        assert labels.count() == 2 * full.annotators[0].labels.filter(item__project=full.project).count()

    def test_html_of_guidelines_is_made_here(self, full: World, tmp_path: Path) -> None:
        project = carried(full.project, tmp_path)
        assert "<strong>twice</strong>" in project.guidelines_html
        assert "<script" not in project.guidelines_html


class TestPeople:
    def test_a_name_is_nobody_here_unless_somebody_says_so(self, full: World, tmp_path: Path) -> None:
        person = full.annotators[0]
        project = carried(full.project, tmp_path)
        theirs = Label.objects.filter(item__project=project).exclude(annotator=person)
        assert theirs.count() == Label.objects.filter(item__project=project).count()
        stands = User.objects.get(username=f"{person.username} ({project.slug})")
        assert (stands.is_active, stands.has_usable_password(), stands.email) == (False, False, "")
        assert stands.labels.count() == person.labels.filter(item__project=full.project).count()
        owners = project.memberships.filter(role="owner", user__is_active=True)
        assert [one.user for one in owners] == [full.manager]

    def test_people_are_matched_where_that_is_asked_for(self, full: World, tmp_path: Path) -> None:
        other, person = full.annotators
        other_here = make_user("other-here")
        project = carried(
            full.project, tmp_path, owner="", match_people=True, same={other.username: "other-here"}
        )
        assert project.created_by == full.manager
        assert project.memberships.get(user=person).role == "annotator"
        assert Label.objects.filter(item__project=project, annotator=other_here).exists()
        assert not Label.objects.filter(item__project=project, annotator=other).exists()
        trail = AuditEvent.objects.filter(project=project)
        removed = trail.filter(action="member.removed").latest("pk")
        assert (removed.data["user"], removed.target) == (other_here.pk, "user:other-here")

    def test_the_trail_tells_of_people_by_their_names_here(self, full: World, tmp_path: Path) -> None:
        person = full.annotators[0]
        project = carried(full.project, tmp_path)
        stands = User.objects.get(username=f"{person.username} ({project.slug})")
        trail = AuditEvent.objects.filter(project=project)
        started = trail.filter(action="round.started").latest("pk")
        assert started.data["people"] == [stands.username, "somebody else"]
        removed = trail.filter(action="member.removed").latest("pk")
        assert (removed.target, removed.data["user"]) == (f"user:{stands.username}", stands.pk)
        view = project.saved_views.get(name="hers")
        assert view.query == f"annotator={stands.pk}&label=cat&q=a+b"
        told = trail.get(action="project.imported")
        assert (told.actor, told.data["people_matched"]) == (full.manager, 0)

    def test_an_erased_person_stays_a_number(self, full: World, tmp_path: Path) -> None:
        person = full.annotators[0]
        count = person.labels.filter(item__project=full.project).count()
        name = person.username
        erase_person(user=person, actor=None, typed=name)
        make_user(name)  # somebody else
        path = tmp_path / f"{full.project.slug}.zip"
        project = carried(full.project, tmp_path, match_people=True)
        erased = User.objects.filter(erased_at__isnull=False).latest("pk")
        assert erased.username == f"person {erased.pk}"
        assert erased.pk != person.pk
        assert erased.labels.filter(item__project=project).count() == count
        with zipfile.ZipFile(path) as content:
            for table in ("annotation.auditevent", "annotation.label", "annotation.membership"):
                assert name not in content.read(f"tables/{table}.jsonl").decode()

    def test_an_erased_item_stays_erased(self, full: World, tmp_path: Path) -> None:
        project = carried(full.project, tmp_path)
        item = project.items.get(erased_at__isnull=False)
        assert (item.text, item.data, item.position) == ("", {}, 0)
        event = AuditEvent.objects.get(project=project, action="item.erased")
        assert event.target == f"item:{item.pk}"

    def test_somebody_has_to_own_it(self, full: World, tmp_path: Path) -> None:
        with pytest.raises(HypacError, match="Nobody here would own"):
            carried(full.project, tmp_path, owner="")
        with pytest.raises(HypacError, match="no active account 'nobody'"):
            carried(full.project, tmp_path / "..", owner="nobody")

    @pytest.mark.parametrize(
        ("same", "words"),
        [
            ({"nobody": "me"}, "The file names nobody 'nobody'"),
            ({"ann": "nobody"}, "no active account 'nobody'"),
            ({"ann": "me", "bob": "me"}, "Two people of the file would be one"),
        ],
    )
    def test_who_is_who_is_checked(self, same: dict[str, str], words: str, tmp_path: Path) -> None:
        project = make_project()
        for name in ("ann", "bob"):
            add_member(project, user=make_user(name))
        make_user("me")
        before = Project.objects.count(), User.objects.count()
        with pytest.raises(HypacError, match=words):
            carried(project, tmp_path, same=same)
        assert (Project.objects.count(), User.objects.count()) == before
