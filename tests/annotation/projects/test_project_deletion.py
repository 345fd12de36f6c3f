"""What happens around a deleted project until the last row of it is gone."""

import io
import json
import subprocess
import sys
from datetime import timedelta

import pytest
from django.apps import apps
from django.utils import timezone

from annotation import maintenance
from annotation.common import events
from annotation.common.files import store_file
from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.jobs.context import JobContext, JobLostError
from annotation.labelling import queue
from annotation.models import AuditEvent, Item, Job, Membership, Project, StoredFile, WebhookDelivery
from annotation.outside.webhooks import sending
from annotation.outside.webhooks.manage import create_webhook
from annotation.people.invitations import accept, create_invitation
from annotation.people.members import add_member as add
from annotation.projects import removal
from annotation.projects.lifecycle import archive_project, delete_project
from routing.models import Prediction, Run
from testbed.factories import add_member, make_items, make_project, make_user, remove_deleted
from testbed.worlds import make_world
from tests.support import child_environment

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


@pytest.fixture
def project():
    return make_project(name="Reviews")


def delete(project: Project) -> Job:
    """Delete it; the job that is to remove it."""
    delete_project(project=project, actor=project.created_by, name=project.name)
    return Job.objects.get(project=project, kind=removal.KIND)


def start_an_import(project: Project, rows: int = 40) -> Job:
    lines = "".join(f"{number},text {number}\n" for number in range(rows))
    stored = store_file(
        project=project,
        content=io.BytesIO(f"id,text\n{lines}".encode()),
        original_name="more.csv",
        media_type="text/csv",
    )
    mapping = ColumnMapping(id_column="id", text_column="text")
    return start_import(project=project, user=project.created_by, stored_file=stored, mapping=mapping)


class TestAtOnce:
    def test_nothing_is_removed_in_the_request_but_who_could_reach_it(self, project) -> None:
        make_items(project, 5)
        delete(project)
        assert project.items.count() == 5
        assert not project.memberships.exists()

    def test_name_and_short_name_are_free(self, project) -> None:
        delete(project)
        again = make_project(name="Reviews")
        assert again.slug == "reviews"
        remove_deleted(project)
        assert Project.objects.get() == again

    def test_twice_has_one_effect(self, project) -> None:
        delete(project)
        delete(project)
        assert AuditEvent.objects.filter(action="project.deleted").count() == 1
        remove_deleted(project)
        delete_project(project=project, actor=project.created_by, name=project.name)

    def test_what_is_under_way_is_cancelled_and_nothing_begins(self, project) -> None:
        waiting = start_an_import(project)
        delete(project)
        waiting.refresh_from_db()
        assert waiting.state == Job.State.CANCELLED
        assert not jobs.run(waiting.pk)
        with pytest.raises(ConflictError, match="being deleted"):
            jobs.enqueue(project=project, kind_name="import", params={})

    def test_a_job_that_was_in_the_middle_of_a_chunk_is_stopped_without_the_removal(self, project) -> None:
        """On PostgreSQL its row is locked then; the removal may wait for the worker that does it."""
        delete(project)
        Job.objects.create(project=project, kind="import", state=Job.State.RUNNING, params={})
        maintenance.run_maintenance()
        assert project.jobs.get(kind="import").state == Job.State.CANCELLED
        assert project.jobs.get(kind=removal.KIND).state == Job.State.QUEUED

    def test_nobody_labels_or_joins(self, project) -> None:
        world = make_world(40)
        world.start(m=20)
        world.do("prepare_run")
        annotator = world.annotators[0]
        assert queue.claim(project=world.project, user=annotator)
        invitation, _ = create_invitation(
            project=world.project, actor=world.manager, role="annotator", max_uses=2, days=1
        )
        delete(world.project)
        with pytest.raises(NotAllowedError):
            queue.claim(project=world.project, user=annotator)
        with pytest.raises(ConflictError):
            accept(invitation=invitation, user=make_user("late"))
        with pytest.raises(ConflictError):
            add(project=world.project, actor=world.manager, username="late", role="viewer")
        assert not Membership.objects.filter(project=world.project).exists()

    def test_its_webhooks_are_silent(self, project) -> None:
        create_webhook(
            project=project,
            actor=project.created_by,
            url="https://example.org/",
            events=["project.archived"],
        )
        events.emit(project=project, event="project.archived", data={})
        WebhookDelivery.objects.update(next_attempt_at=timezone.now() - timedelta(hours=1))
        assert len(sending.overdue_webhooks()) == 1
        delete(project)
        assert sending.overdue_webhooks() == []
        assert sending.send_due(project.webhooks.get().pk) == 0
        assert WebhookDelivery.objects.get().attempts == 0

    def test_an_archived_one_too(self, project) -> None:
        archive_project(project=project, actor=project.created_by)
        delete(project)
        remove_deleted(project)


class TestRemoval:
    def test_an_import_at_work_loses_its_job_and_leaves_nothing(self, project, monkeypatch) -> None:
        """The project is deleted between two of its chunks."""
        running = start_an_import(project)
        monkeypatch.setattr("annotation.imports.job.CHUNK_ROWS", 10)
        chunk = JobContext.chunk
        chunks = []

        def deleting(context, **values):
            if context.job.pk == running.pk:
                chunks.append(values)
                if len(chunks) == 3:
                    delete(project)
            return chunk(context, **values)

        monkeypatch.setattr(JobContext, "chunk", deleting)
        assert not jobs.run(running.pk)
        assert Item.objects.filter(project=project).count() == 20
        remove_deleted(project)
        assert not Item.objects.exists()

    def test_rows_that_come_late_go_too(self, project, monkeypatch) -> None:
        """Of a request that began before the project was deleted."""
        job = delete(project)
        folder = removal.remove_folder

        def late(name):
            monkeypatch.setattr(removal, "remove_folder", folder)
            make_items(project, 3)
            folder(name)

        monkeypatch.setattr(removal, "remove_folder", late)
        # On SQLite and PostgreSQL the check is made at the end of the transaction, which here is the test's.
        monkeypatch.setattr(removal._Removal, "end", checked(removal._Removal.end))
        jobs.run(job.pk)
        assert not Project.objects.exists()
        assert not Item.objects.exists()

    def test_one_that_failed_is_tried_again_later(self, project, monkeypatch) -> None:
        make_items(project, 2)
        job = delete(project)
        monkeypatch.setattr(removal._Removal, "items", lambda removal: 1 / 0)
        jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == Job.State.FAILED
        monkeypatch.undo()
        maintenance.run_maintenance()
        assert Job.objects.get(pk=job.pk).state == Job.State.FAILED, "not at once"
        Job.objects.filter(pk=job.pk).update(finished_at=timezone.now() - timedelta(hours=2))
        maintenance.run_maintenance()
        remove_deleted(project)

    def test_who_has_lost_the_job_removes_nothing(self, project) -> None:
        make_items(project, 2)
        job = delete(project)
        job.state, job.claim_token = Job.State.RUNNING, "another worker"
        job.save()
        with pytest.raises(JobLostError):
            removal.remove_project(JobContext(job, "mine"))
        assert project.items.count() == 2

    def test_a_project_beside_it_keeps_every_row(self) -> None:
        world, other = make_world(40), make_world(30)
        world.routed(m=20)
        other.complete(m=20)
        before = rows_of(other.project)
        delete(world.project)
        remove_deleted(world.project)
        assert rows_of(other.project) == before
        assert Run.objects.get().project == other.project
        assert not Prediction.objects.exclude(item__project=other.project).exists()
        assert not StoredFile.objects.exclude(project=other.project).exists()

    def test_items_of_others_between_its_own_stay(self, project) -> None:
        make_items(project, 3)
        kept = make_items(make_project(), 3)
        make_items(project, 3)
        delete(project)
        remove_deleted(project)
        assert list(Item.objects.order_by("pk")) == kept

    def test_what_hangs_on_others_comes_before_them(self) -> None:
        order = [model for model, _ in removal.tables_of(Project)]
        assert order[-1] is Project
        for place, model in enumerate(order):
            for field in model._meta.concrete_fields:
                assert field.related_model not in order[:place], (model, field)

    def test_every_table_that_names_an_item_is_emptied_with_it(self) -> None:
        found = {model for model, _ in removal.tables_of(Item, everything=True)}
        naming = {
            model
            for app in ("annotation", "routing")
            for model in apps.get_app_config(app).get_models()
            if any(field.related_model is Item for field in model._meta.concrete_fields)
        }
        assert naming <= found

    def test_the_name_is_asked_for(self, project) -> None:
        with pytest.raises(InputError):
            delete_project(project=project, actor=project.created_by, name="reviews")


def checked(end):
    """The end of a removal with the foreign keys checked in it."""

    def checking(removal):
        from django.db import connection, transaction

        with transaction.atomic():
            end(removal)
            connection.check_constraints()

    return checking


def rows_of(project: Project) -> dict[str, int]:
    return {
        model.__name__: model._default_manager.filter(**{path: project.pk}).count()
        for model, path in removal.tables_of(Project)
    }


@pytest.mark.django_db(transaction=True)
def test_two_processes_delete_and_two_remove_at_once() -> None:
    """Both requests are answered, one of them has an effect; both workers end, and all is gone."""
    project, kept = make_project(name="Reviews"), make_project(name="kept")
    make_items(project, 60)
    make_items(kept, 4)
    add_member(project, "annotator")

    def together(code: str) -> list[str]:
        program = f"import django; django.setup()\n{code}"
        children = [
            subprocess.Popen(
                [sys.executable, "-c", program],
                env=child_environment(HYPAC_LOG_LEVEL="ERROR"),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        ended = [child.communicate(timeout=300) for child in children]
        assert [child.returncode for child in children] == [0, 0], ended
        return [output for output, _ in ended]

    together(
        "from annotation.models import Project\n"
        "from annotation.projects.lifecycle import delete_project\n"
        f"project = Project.objects.get(pk={project.pk})\n"
        "delete_project(project=project, actor=project.created_by, name='Reviews')\n"
    )
    assert AuditEvent.objects.filter(action="project.deleted").count() == 1
    job = Job.objects.get(kind=removal.KIND)
    said = together(
        "import json\n"
        "from annotation.jobs import jobs\n"
        "from annotation.projects import removal as project_removal\n"
        "project_removal.ITEMS = 3\n"
        f"print(json.dumps(jobs.run({job.pk})))\n"
    )
    assert [json.loads(output.splitlines()[-1]) for output in said] == [False, False]
    assert Project.objects.get() == kept
    assert Item.objects.count() == 4
    assert AuditEvent.objects.filter(action="project.removed").count() == 1
