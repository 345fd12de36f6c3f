"""The list of projects; archiving, duplicating and deleting them."""

import io
from decimal import Decimal

import pytest
from django.apps import apps
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.common.files import store_file
from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import (
    AgreedSettings,
    AttemptBucket,
    AuditEvent,
    AuthenticatorApp,
    Item,
    KeyedRequest,
    Label,
    Mail,
    Passkey,
    Project,
    RecoveryCode,
    SignOnSession,
    StoredFile,
    UsedOnce,
    User,
)
from annotation.people.invitations import accept, create_invitation
from annotation.permissions import access_to
from annotation.projects.lifecycle import (
    archive_project,
    delete_project,
    duplicate_project,
    unarchive_project,
)
from annotation.projects.queries import contents, projects_of, work_waits
from annotation.projects.removal import remove_files, tables_of
from routing.delivery.deliver import deliver
from routing.models import ModelPrice, Source
from routing.sources.backends import Prompt
from routing.sources.manage import save_source
from routing.sources.prompt_versions import add_version
from testbed.factories import (
    add_member,
    make_image_items,
    make_items,
    make_project,
    make_user,
    remove_deleted,
)
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def text(answer) -> str:
    return answer.content.decode()


class TestList:
    def test_it_says_what_waits_for_whom_and_leaders_what_to_do(self, waiting, client_of) -> None:
        ann = add_member(waiting, "annotator")
        page = text(client_of(ann).get("/"))
        assert "3 items wait for you" in page
        assert "Next:" not in page
        page = text(client_of(add_member(waiting, "manager")).get("/"))
        assert "3 items wait for you" in page
        assert "Next:" in page
        assert "wait for you" not in text(client_of(add_member(waiting, "viewer")).get("/"))

    def test_names_are_searched(self, client_of) -> None:
        user = make_user("ann")
        for name in ("Birds of 100 %", "Fish", "Bird calls"):
            make_project(user, name=name)
        make_project(name="Bird of others")
        client = client_of(user)
        page = text(client.get("/", {"q": "bird"}))
        assert ("Birds of" in page, "Bird calls" in page, "Fish" in page, "of others" in page) == (
            True, True, False, False
        )  # fmt: skip
        assert "Fish" not in text(client.get("/", {"q": "%"}))
        assert "No project has such a name" in text(client.get("/", {"q": "<b>no</b>"}))

    def test_many_are_on_pages_that_keep_the_search(self, client_of) -> None:
        user = make_user("ann")
        for number in range(21):
            make_project(user, name=f"P&Q {number:02}")
        client = client_of(user)
        page = text(client.get("/", {"q": "P&Q"}))
        assert "P&amp;Q 19" in page
        assert "P&amp;Q 20" not in page
        assert 'href="?page=2&amp;q=P%26Q"' in page
        assert "P&amp;Q 20" in text(client.get("/", {"q": "P&Q", "page": "2"}))

    def test_somebody_who_is_not_active_sees_nothing_of_it(self, project, client_of) -> None:
        ann = add_member(project)
        project.memberships.filter(user=ann).update(is_active=False)
        assert project.name not in text(client_of(ann).get("/"))
        assert projects_of(ann).count() == 0


class TestBadge:
    @pytest.fixture(autouse=True)
    def empty_cache(self):
        cache.clear()
        yield
        cache.clear()

    def waits(self, user: User) -> bool:
        cache.clear()
        return work_waits(user)

    def test_it_is_there_while_an_item_waits_for_this_person(self, waiting) -> None:
        ann, viewer = add_member(waiting), add_member(waiting, "viewer")
        assert self.waits(ann)
        assert not self.waits(viewer)
        assert not self.waits(make_user("stranger"))
        task = queue.claim(project=waiting, user=ann)
        queue.skip(user=ann, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
        for number in range(2):
            task = queue.claim(project=waiting, user=ann)
            queue.submit(
                user=ann, work_item_id=task.work_item.pk, token=task.token, value="cat",
                idempotency_key=str(number),
            )  # fmt: skip
        assert not self.waits(ann)
        assert self.waits(add_member(waiting))

    def test_neither_an_archived_project_nor_one_that_paused_the_person_counts(self, waiting) -> None:
        ann = add_member(waiting)
        archive_project(project=waiting, actor=waiting.created_by)
        assert not self.waits(ann)
        unarchive_project(project=waiting, actor=waiting.created_by)
        assert self.waits(ann)
        waiting.memberships.filter(user=ann).update(is_active=False)
        assert not self.waits(ann)

    def test_a_page_pays_one_query_for_it_and_then_none(self, waiting, client_of):
        ann = add_member(waiting)
        with CaptureQueriesContext(connection) as asked:
            assert work_waits(ann)
        # On PostgreSQL its time limit is set around it.
        limits = ("SAVEPOINT", "SET LOCAL", "RELEASE")
        assert len([query for query in asked if not query["sql"].startswith(limits)]) == 1
        with CaptureQueriesContext(connection) as asked:
            assert work_waits(ann)
        assert len(asked) == 0
        page = text(client_of(ann).get("/account/"))
        assert "Work waits for you" in page
        assert "<title>• " in page


class TestArchive:
    def test_nothing_changes_in_it_and_everything_can_be_looked_at(self, waiting, owner) -> None:
        ann = add_member(waiting)
        held = queue.claim(project=waiting, user=ann)
        slug = waiting.slug
        assert owner.post(reverse("project_archive", args=[slug])).status_code == 302
        held.work_item.refresh_from_db()
        assert held.work_item.state == "open"
        with pytest.raises(NotAllowedError):
            queue.claim(project=waiting, user=ann)
        with pytest.raises(ConflictError, match="archived"):
            jobs.enqueue(project=waiting, kind_name="import", params={})
        assert not waiting.jobs.exists()
        for name in ("overview", "items", "members", "jobs", "runs", "project_manage"):
            answer = owner.get(reverse(name, args=[slug]))
            assert answer.status_code == 200, name
            assert "This project is archived" in text(answer)
        for name in ("project_settings", "import_upload", "sources", "plan", "annotate"):
            answer = owner.get(reverse(name, args=[slug]))
            assert answer.status_code == 403, name
            assert "This project is archived" in text(answer)
        answer = owner.post(f"/api/v1/projects/{slug}/queue/claim/")
        assert (answer.status_code, answer.json()["detail"]) == (
            403, "This project is archived: nothing in it can be changed."
        )  # fmt: skip
        assert "nothing is to be done" in text(owner.get(reverse("overview", args=[slug])))
        assert waiting.name not in text(owner.get("/"))
        assert waiting.name in text(owner.get("/?archived=1"))

    def test_it_comes_back_as_it_was(self, waiting, owner) -> None:
        archive_project(project=waiting, actor=waiting.created_by)
        archive_project(project=waiting, actor=waiting.created_by)
        assert owner.post(reverse("project_unarchive", args=[waiting.slug])).status_code == 302
        assert queue.claim(project=waiting, user=add_member(waiting)) is not None
        assert owner.get(reverse("import_upload", args=[waiting.slug])).status_code == 200
        actions = AuditEvent.objects.filter(action__contains="archived").order_by("id")
        assert [event.action for event in actions] == ["project.archived", "project.unarchived"]

    def test_not_while_a_job_is_unfinished(self, project, owner) -> None:
        jobs.enqueue(project=project, kind_name="import", params={})
        answer = owner.post(reverse("project_archive", args=[project.slug]), follow=True)
        assert "is not finished" in text(answer)
        project.refresh_from_db()
        assert project.archived_at is None


class TestDuplicate:
    def make(self) -> Project:
        project = make_project(
            choices=("cat", "dog"), guidelines="Look **twice**.", human_cost=Decimal("0.25"), lease_seconds=60
        )
        project.text_format, project.overlap, project.overlap_share = "markdown", 3, Decimal("0.5")
        project.save()
        make_items(project, 3)
        price = ModelPrice.objects.create(
            project=project, name="small", cost_function="tokens", prices={"per_token": "1"}
        )
        source = save_source(
            project=project, user=project.created_by, name="file", backend="recorded",
            params={"label_column": "text"}, cost_per_label=Decimal("0.01"),
        )  # fmt: skip
        # As a language model would have it, whose server nobody asks here.
        Source.objects.filter(pk=source.pk).update(
            backend="openai_api", params={"url": "https://models.example/v1", "model": "m"},
            api_key="gAAAA-secret", price=price, cost_function="tokens", prices={"per_token": "1"},
        )  # fmt: skip
        source.refresh_from_db()
        for template in ("First {{ text }}", "Second {{ text }}"):
            add_version(source=source, user=project.created_by, prompt=Prompt(template=template))
        return project

    def test_settings_labels_prices_sources_and_prompts_come_along_and_no_keys(self) -> None:
        project = self.make()
        actor = add_member(project, "manager")
        copy = duplicate_project(project=project, actor=actor, name="Another one")
        assert (copy.name, copy.slug, copy.created_by) == ("Another one", "another-one", actor)
        for field in ("task_type", "guidelines", "currency", "human_cost", "lease_seconds", "text_format",
                      "overlap", "overlap_share", "consensus"):  # fmt: skip
            assert getattr(copy, field) == getattr(project, field), field
        fields = ("key", "name", "hotkey", "color", "position")
        assert list(copy.choices.values_list(*fields)) == list(project.choices.values_list(*fields))
        (source,) = copy.sources.all()
        (old,) = project.sources.all()
        assert (source.name, source.params, source.cost_per_label) == (
            old.name,
            old.params,
            old.cost_per_label,
        )
        assert source.api_key == ""
        assert source.price.project == copy
        assert [prompt.template for prompt in source.prompt_versions.all()] == ["Second {{ text }}"]
        assert (copy.items.count(), copy.runs.count()) == (0, 0)
        assert [(m.user, m.role) for m in copy.memberships.all()] == [(actor, "owner")]

    def test_members_are_invited_where_an_owner_asks_for_it(self, client_of) -> None:
        project = self.make()
        ann, manager, paused = (add_member(project, role) for role in ("annotator", "manager", "annotator"))
        project.memberships.filter(user=ann).update(max_per_day=7)
        project.memberships.filter(user=paused).update(is_active=False)
        url = reverse("project_duplicate", args=[project.slug])
        everybody = {(manager, "manager"), (ann, "annotator")}
        for user, expected in ((manager, set()), (project.created_by, everybody)):
            name = f"Copy by {user.username}"
            client_of(user).post(url, {"name": name, "with_members": "on"})
            copy = Project.objects.get(name=name)
            assert [(m.user, m.role) for m in copy.memberships.all()] == [(user, "owner")]
            assert {(one.user, one.role) for one in copy.invitations.all()} == expected
        membership = accept(invitation=copy.invitations.get(user=ann), user=ann)
        assert (membership.role, membership.max_per_day) == ("annotator", 7)

    def test_a_bad_name_is_said_beside_it(self, project, owner) -> None:
        answer = owner.post(reverse("project_duplicate", args=[project.slug]), {"name": " "})
        assert "This field is required" in text(answer)
        assert Project.objects.count() == 1


class TestDelete:
    def test_everything_goes_and_nothing_of_others(self, client_of) -> None:
        world, other = make_world(60), make_world(30)
        world.complete(m=40)
        other.start(m=10)
        project = world.project
        make_image_items(project, 1)
        deliver(run=project.runs.get(), user=world.manager)
        world.do("deliver_run")
        create_invitation(project=project, actor=world.manager, role="viewer", max_uses=1, days=1)
        names = list(project.files.values_list("storage_name", flat=True))
        kept = store_file(
            project=other.project, content=io.BytesIO(b"x"), original_name="x", media_type="text/plain"
        )
        left_over = default_storage.save(f"projects/{project.pk}/ab/abc", ContentFile(b"half an import"))
        before = {model: rows(model, path, other.project) for model, path in tables_of(Project)}
        owner = client_of(world.manager)
        page = text(owner.get(reverse("project_manage", args=[project.slug])))
        for words in ("Items", "Labels by people", "Certificates", "Deliveries", "Runs", "Predictions"):
            assert words in page
        counts = dict(contents(project).counts)
        assert (counts["Items"], counts["Runs"], counts["Certificates"], counts["Deliveries"]) == (
            61,
            1,
            1,
            1,
        )
        url = reverse("project_delete", args=[project.slug])
        assert "Type the name of the project as it is" in text(owner.post(url, {"name": "another"}))
        assert project.items.count() == 61
        answer = owner.post(url, {"name": project.name}, follow=True)
        assert answer.redirect_chain == [("/", 302)]
        assert "is being removed in the background" in text(answer)
        remove_deleted(project)
        for model, path in tables_of(Project):
            assert rows(model, path, project) == 0, model
            assert rows(model, path, other.project) == before[model], model
        assert not Project.objects.filter(pk=project.pk).exists()
        assert len(names) > 1
        assert not any(default_storage.exists(name) for name in [*names, left_over])
        assert default_storage.exists(kept.storage_name)
        deleted, removed = AuditEvent.objects.filter(project=None).order_by("id")
        assert (deleted.action, deleted.actor, deleted.data) == (
            "project.deleted", world.manager, {"name": project.name}
        )  # fmt: skip
        assert (removed.action, removed.target) == ("project.removed", deleted.target)

    def test_no_table_of_a_project_is_forgotten(self) -> None:
        """All but accounts and how they log in, letters to them, and what is kept of requests for a day."""
        listed = {model for model, _ in tables_of(Project)}
        own = {model for app in ("annotation", "routing") for model in apps.get_app_config(app).get_models()}
        log_in = {AuthenticatorApp, Passkey, RecoveryCode, SignOnSession, UsedOnce}
        assert own - listed == {User, Mail, KeyedRequest, AttemptBucket, AgreedSettings, *log_in}

    def test_the_page_says_that_work_under_way_is_cancelled(self, project, owner) -> None:
        jobs.enqueue(project=project, kind_name="import", params={})
        page = text(owner.get(reverse("project_manage", args=[project.slug])))
        assert "Deleting the project cancels it" in page

    def test_the_name_is_asked_for(self, project) -> None:
        with pytest.raises(InputError):
            delete_project(project=project, actor=project.created_by, name=project.name.lower())

    def test_a_file_that_another_project_names_stays(self, project) -> None:
        stored = store_file(
            project=project, content=io.BytesIO(b"shared"), original_name="s", media_type="text/plain"
        )
        StoredFile.objects.create(
            project=make_project(), sha256=stored.sha256, storage_name=stored.storage_name,
            original_name="s", media_type="text/plain", size=6,
        )  # fmt: skip
        remove_files([stored.storage_name], project=project.pk)
        assert default_storage.exists(stored.storage_name)

    def test_an_archived_project_can_be_deleted(self, project, owner) -> None:
        archive_project(project=project, actor=project.created_by)
        assert access_to(project.created_by, project.slug).allows("project.delete")
        assert owner.post(reverse("project_delete", args=[project.slug]), {"name": project.name}).url == "/"
        remove_deleted(project)
        assert not Item.objects.exists()
        assert not Label.objects.exists()


def rows(model, path, project) -> int:
    return model._default_manager.filter(**{path: project.pk}).count()


def test_work_that_failed_does_not_begin_again_in_the_archive(project) -> None:
    job = jobs.enqueue(project=project, kind_name="import", params={})
    project.jobs.update(state="failed")
    archive_project(project=project, actor=project.created_by)
    with pytest.raises(ConflictError, match="archived"):
        jobs.retry(job=job)
    job.refresh_from_db()
    assert job.state == "failed"
