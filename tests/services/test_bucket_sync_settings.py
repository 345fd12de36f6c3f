"""When buckets are looked at, what may be set, and deliveries that are written back."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone

from annotation.errors import ConflictError, HypacError, InputError, UnderWayError
from annotation.imports.bucket_sync import (
    HowToImport,
    end_sync,
    look_now,
    looks_of,
    save_sync,
    start_due,
)
from annotation.imports.columns import ColumnMapping
from annotation.models import AuditEvent, BucketSync, Connection, Job, Membership, Project, User
from annotation.outside.buckets import Bucket as Client
from annotation.outside.circles import refuse_watched
from annotation.outside.connections import update_connection
from routing.delivery.deliver import deliver
from routing.delivery.exports import export_delivery
from testbed.factories import add_member, make_project
from testbed.object_store import SECRET
from testbed.worlds import World, make_world
from tests.services.test_bucket_sync import HOW, looked, put, rows, synchronised
from tests.services.test_connections import connected, done

pytestmark = pytest.mark.django_db


class TestSchedule:
    def test_it_looks_when_it_is_time_and_once(self, bucket):
        sync = synchronised(make_project(), bucket, every_minutes=15)
        assert start_due() == 1
        assert start_due() == 0
        done(looks_of(sync).get())
        sync.refresh_from_db()
        assert sync.looked_at is not None
        minutes = (sync.next_at - sync.looked_at) / timedelta(minutes=1)
        assert 14.9 < minutes < 15.1
        BucketSync.objects.update(next_at=timezone.now() - timedelta(seconds=1))
        assert start_due() == 1

    def test_of_looks_that_found_nothing_one_is_kept_and_nobody_is_told(self, bucket, monkeypatch):
        told = []
        monkeypatch.setattr("annotation.common.events.job_ended", lambda job, event: told.append(job.kind))
        sync = synchronised(make_project(), bucket)
        for _time in range(3):
            looked(sync)
        assert looks_of(sync).count() == 1
        assert told == []
        put(bucket, "in/a.csv", rows("a"))
        looked(sync)
        looked(sync)
        looked(sync)
        assert [job.result["found"] for job in looks_of(sync)] == [0, 1]
        assert told == ["import", "bucket_sync"]

    def test_a_look_that_takes_what_an_earlier_one_found_is_kept_and_told(self, bucket, monkeypatch):
        told = []
        monkeypatch.setattr("annotation.common.events.job_ended", lambda job, event: told.append(job.kind))
        project = make_project()
        sync = synchronised(project, bucket)
        put(bucket, "in/a.csv", b"name,words\nx,some words\n")
        looked(sync)
        how = HowToImport(ColumnMapping(id_column="name", text_column="words"))
        save_sync(connection=sync.connection, actor=project.created_by, how=how, take_from="in")
        told.clear()
        for _time in range(2):
            looked(sync)
        assert [(job.result["found"], job.result["taken"]) for job in looks_of(sync)] == [
            (0, 0),
            (0, 1),
            (1, 0),
        ]
        assert told == ["import", "bucket_sync"]

    def test_after_a_failure_the_next_look_is_late(self, bucket):
        sync = synchronised(make_project(), bucket, every_minutes=5)
        Connection.objects.update(bucket="no-such-bucket-here")
        start_due()
        assert done(looks_of(sync).get()).state == Job.State.FAILED
        sync.refresh_from_db()
        assert sync.next_at > timezone.now() + timedelta(hours=5)

    def test_an_archived_project_is_left_alone(self, bucket):
        project = make_project()
        sync = synchronised(project, bucket)
        Project.objects.update(archived_at=timezone.now())
        assert start_due() == 0
        with pytest.raises(ConflictError, match="archived"):
            look_now(sync=sync, user=project.created_by)
        Project.objects.update(archived_at=None)
        assert start_due() == 1

    def test_one_is_enough_at_a_time(self, bucket):
        sync = synchronised(make_project(), bucket)
        look_now(sync=sync, user=sync.user)
        with pytest.raises(UnderWayError):
            look_now(sync=sync, user=sync.user)
        assert start_due() == 0


class TestSettings:
    @pytest.mark.parametrize(
        ("fields", "where"),
        [
            ({"how": None}, "takes"),
            ({"every_minutes": 7}, "every_minutes"),
            ({"take_from": "a/../b"}, "take_from"),
            ({"write_to": "a/./b"}, "write_to"),
            ({"take_from": "", "write_to": "out"}, "take_from"),
            ({"take_from": "out", "write_to": "out"}, "take_from"),
            ({"how": HowToImport(format_name="no such")}, ""),
        ],
    )
    def test_what_cannot_be_is_refused(self, bucket, fields, where):
        with pytest.raises(InputError) as raised:
            synchronised(make_project(), bucket, **fields)
        assert raised.value.where == where or not where
        assert not BucketSync.objects.exists()

    def test_another_connection_may_not_take_what_one_writes(self, bucket):
        project = make_project()
        synchronised(project, bucket, how=None, write_to="data")
        other = connected(project, bucket, name="other", prefix="data")
        with pytest.raises(InputError, match="imported again"):
            save_sync(connection=other, actor=project.created_by, how=HOW)

    @pytest.mark.parametrize("endpoint", ["http://localhost:1", "http://LOCALHOST:1"])
    def test_another_name_of_the_store_makes_no_difference(self, bucket, endpoint):
        project = make_project()
        synchronised(project, bucket, how=None, write_to="data")
        other = connected(project, bucket, name="other", prefix="data")
        Connection.objects.filter(pk=other.pk).update(endpoint=endpoint, bucket=bucket.name.upper())
        other.refresh_from_db()
        with pytest.raises(InputError, match="imported again"):
            save_sync(connection=other, actor=project.created_by, how=HOW)

    def test_a_connection_may_not_be_changed_into_one(self, bucket, object_store):
        """Neither by its folder nor by its bucket."""
        project, elsewhere = make_project(), object_store.bucket()
        synchronised(project, bucket, how=None, write_to="data")
        other = connected(project, bucket, name="other", prefix="apart")
        third = connected(project, elsewhere, name="third", prefix="data")
        for connection in (other, third):
            save_sync(connection=connection, actor=project.created_by, how=HOW)
        for connection, name, value in ((other, "prefix", "data"), (third, "bucket", bucket.name)):
            with pytest.raises(InputError, match="imported again") as raised:
                update_connection(
                    connection=connection, actor=project.created_by, secret="s", **{name: value}
                )
            assert raised.value.where == name
            connection.refresh_from_db()
            assert getattr(connection, name).rstrip("/") != value
        update_connection(connection=other, actor=project.created_by, prefix="still/apart", secret="s")

    def test_nothing_is_delivered_by_hand_into_a_folder_that_is_taken_from(self, bucket):
        sync = synchronised(make_project(), bucket)
        with pytest.raises(InputError, match="choose another one"):
            refuse_watched(connection=sync.connection, prefix="in/out/")
        refuse_watched(connection=sync.connection, prefix="out/")

    def test_who_did_what_is_in_the_trail(self, bucket):
        sync = synchronised(make_project(), bucket)
        looked(sync)
        end_sync(sync=sync, actor=sync.user)
        trail = AuditEvent.objects.filter(target=f"connection:{sync.connection_id}").order_by("pk")
        assert [event.action for event in trail] == [
            "connection.made",
            "connection.synchronised",
            "connection.looked_at",
            "connection.synchronised_no_more",
        ]
        assert SECRET not in str([event.data for event in trail])


class TestWriting:
    @pytest.fixture
    def world(self) -> World:
        world = make_world(60)
        world.complete(m=30)
        return world

    def deliver(self, world: World, **options: Any) -> Any:
        run = world.project.runs.get()
        deliver(run=run, user=world.manager, **options)
        world.do("deliver_run")
        return run.deliveries.order_by("-pk").first()

    def test_each_new_delivery_is_written_once_its_sums_last(self, bucket, world, monkeypatch):
        self.deliver(world)  # before anything was set
        synchronised(world.project, bucket, how=None, write_to="out")
        delivery = self.deliver(world)
        job = world.project.jobs.get(kind="export_delivery")
        order: list[str] = []
        put_ = Client.put
        monkeypatch.setattr(
            Client,
            "put",
            lambda self, key, *args, **options: (order.append(key), put_(self, key, *args, **options)),
        )
        assert done(job).state == Job.State.DONE, job.error
        below = f"out/{world.project.slug}/run-1-delivery-{delivery.number}/"
        assert bucket.names() == {
            below + name for name in (*delivery.files.values_list("name", flat=True), "SHA256SUMS")
        }
        assert order[-2:] == [f"{below}manifest.json", f"{below}SHA256SUMS"]
        sync = BucketSync.objects.get()
        assert looked(sync).result["written"] == 0
        assert world.project.jobs.filter(kind="export_delivery").count() == 1

    def test_one_that_could_not_be_written_is_written_when_somebody_asks(self, bucket, world):
        sync = synchronised(world.project, bucket, how=None, write_to="out")
        Connection.objects.update(bucket="no-such-bucket-here")
        self.deliver(world)
        failed = done(world.project.jobs.get(kind="export_delivery"))
        assert failed.state == Job.State.FAILED
        Connection.objects.update(bucket=bucket.name)
        sync.connection.refresh_from_db()
        assert looked(sync).result["written"] == 1
        world.do("export_delivery")
        assert len(bucket.names()) > 3

    @pytest.mark.parametrize("lost", ["role", "active"])
    def test_nothing_is_written_for_somebody_who_may_deliver_no_more(self, bucket, world, lost):
        other = add_member(world.project, "manager")
        sync = save_sync(connection=connected(world.project, bucket), actor=other, write_to="out")
        if lost == "role":
            Membership.objects.filter(user=other).update(role="viewer")
        else:
            User.objects.filter(pk=other.pk).update(is_active=False)
        self.deliver(world)
        assert not world.project.jobs.filter(kind="export_delivery").exists()
        reader = Browser()
        reader.force_login(world.manager)
        page = f"/projects/{world.project.slug}/connections/{sync.connection_id}/sync/"
        told = reader.get(page).content.decode()
        assert "1 delivery is not in the bucket" in told
        assert f"{other.username}, in whose name deliveries are written" in told
        job = done(look_now(sync=sync, user=world.manager))
        assert (job.state, job.error_code) == (Job.State.FAILED, "may_not_write")
        assert other.username in job.error
        save_sync(connection=sync.connection, actor=world.manager, write_to="out")
        assert done(look_now(sync=sync, user=world.manager)).result["written"] == 1
        assert "is not in the bucket" not in reader.get(page).content.decode()

    def test_a_delivery_does_not_hang_on_the_bucket(self, bucket, world, monkeypatch):
        sync = synchronised(world.project, bucket, how=None, write_to="out")

        def away(**options: Any) -> Any:
            raise HypacError("Not now.", permanent=False)

        monkeypatch.setattr("routing.delivery.write_back.export_delivery", away)
        delivery = self.deliver(world)
        monkeypatch.undo()
        assert not world.project.jobs.filter(kind="export_delivery").exists()
        assert done(look_now(sync=sync, user=sync.user)).result["written"] == 1
        assert world.project.jobs.get(kind="export_delivery").params["delivery"] == delivery.pk

    def test_by_hand_it_goes_on_as_before(self, bucket, world):
        sync = synchronised(world.project, bucket, write_to="out")
        delivery = self.deliver(world)
        world.do("export_delivery")
        with pytest.raises(InputError) as raised:
            export_delivery(delivery=delivery, connection=sync.connection, user=world.manager, prefix="in/x")
        assert raised.value.where == "prefix"
