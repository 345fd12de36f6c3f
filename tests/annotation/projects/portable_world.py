"""A project that has rows in every table that a project may have them in."""

import io
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from annotation.common import audit
from annotation.common.files import store_file
from annotation.labelling import queue
from annotation.labelling.comments import add_comment
from annotation.models import (
    ApiToken,
    BucketFile,
    BucketSync,
    Connection,
    Draft,
    HeldOutItem,
    Job,
    JobProblem,
    PracticeAnswer,
    ReplacedChoice,
    Settlement,
    ShownSuggestion,
    Skip,
    WorkItem,
)
from annotation.outside.secrets import encrypt
from annotation.outside.webhooks.manage import create_webhook, send_test
from annotation.people.invitations import create_invitation
from annotation.permissions import access_to
from routing.delivery.deliver import deliver
from routing.items.changes import change_items
from routing.items.erase import erase_items
from routing.models import (
    AuditedItem,
    Delivery,
    Intake,
    MeasuredItem,
    MeasuredSource,
    Measurement,
    MendVersion,
    ModelPrice,
    PromptCandidate,
    PromptVersion,
    Reservation,
    RoundNote,
    Run,
    SavedView,
    SentAnswer,
    Source,
    SourceRevision,
    SourceTry,
)
from routing.rounds.start import close_round, start_round
from testbed.factories import add_member, make_image_items, make_items
from testbed.worlds import World, make_world

KEY = "the-key-of-a-server"


def everything(*, size: int = 120) -> World:
    """A project with a whole run, two deliveries, and at least one row of whatever a project may have beside
    those of runs with an expert. Its words may be hostile.
    """
    world = make_world(size)
    project, manager = world.project, world.manager
    project.guidelines = "Look **twice** <script>alert(1)</script>."
    project.save()
    run = world.complete(m=60, pilot_size=10)
    deliver(run=run, user=manager)
    world.do("deliver_run")
    first = Delivery.objects.get(run=run)
    add_comment(item=project.items.first(), author=manager, text="odd", is_flag=True)
    _change(world)
    deliver(run=run, user=manager, since=first)
    world.do("deliver_run")
    erase_items(project=project, actor=manager, external_ids=[project.items.first().external_id])
    _beside_the_run(world, run)
    _of_sources(world)
    _left_behind(world)
    return world


def _change(world: World) -> None:
    access = access_to(world.manager, world.project.slug)
    assert access is not None
    items = list(world.project.items.values_list("pk", flat=True)[3:6])
    change_items(access=access, change_name="flag", filters={}, item_ids=items, text="look again")
    held = {"annotator": str(world.annotators[0].pk)}
    change_items(access=access, change_name="comment", filters=held, text="by this person")
    Job.objects.filter(project=world.project, state="queued").update(state="cancelled")


def _beside_the_run(world: World, run: Run) -> None:
    project, manager, (person, other) = world.project, world.manager, world.annotators
    more = make_items(project, 6)
    make_image_items(project, 2)
    stored = store_file(
        project=project, content=io.BytesIO(b"text\nhello\n"), original_name="a.csv", media_type="text/csv"
    )
    done = Job.objects.create(
        project=project,
        kind="import",
        state="done",
        created_by=manager,
        params={"file": stored.pk, "format": "csv", "id_column": "", "text_column": "text"},
    )
    JobProblem.objects.create(job=done, where="line 2", message="it is empty")
    started = start_round(access=_access(world), names=[one.external_id for one in more[:2]])
    close_round(access=_access(world), found=started)
    RoundNote.objects.create(round=started, item=more[0], author=person, text="why", value="cat")
    held = HeldOutItem.objects.create(
        project=project, item=more[3], purpose="practice", at_random=True, answer="cat", created_by=manager
    )
    PracticeAnswer.objects.create(held_out=held, user=person, value="dog", is_right=False)
    batch = queue.create_batch(
        project=project, item_ids=[more[4].pk, more[5].pk], blind=False, priority=1, entropy=1
    )
    leased = queue.claim(project=project, user=other)
    assert leased is not None
    work = WorkItem.objects.filter(batch=batch).exclude(pk=leased.work_item.pk).get()
    Skip.objects.create(work_item=work, user=person, reason="unclear", comment='\u2028 \\ud800 " {}')
    Draft.objects.create(work_item=work, user=person, value="cat")
    ShownSuggestion.objects.create(work_item=work, user=person, value="cat", source="Model 1")
    ReplacedChoice.objects.create(project=project, key="ant", name="Ant", into=["cat"], created_by=manager)
    SavedView.objects.create(
        project=project, name="hers", owner=person, query=f"annotator={person.pk}&label=cat&q=a+b"
    )
    Intake.objects.create(run=run, number=1, last=9, abandoned_at=timezone.now())
    settled = Settlement.objects.create(batch=batch, item=more[4], value="cat", method="majority")
    Settlement.objects.create(
        batch=batch, item=more[4], value="dog", method="adjudicated", version=2, supersedes=settled,
        decided_by=manager,
    )  # fmt: skip
    AuditedItem.objects.create(run=run, item=more[5], place=0)
    Run.objects.filter(pk=run.pk).update(
        audit_found={"place": 0, "item": more[5].pk, "audited": 1, "differ": 0, "logs": [0.0], "highest": 0.0}
    )
    audit.record(
        project=project, actor=manager, action="round.started", target="round:1",
        data={"people": [person.username, "somebody else"]},
    )  # fmt: skip
    audit.record(
        project=project, actor=manager, action="member.removed", target=f"user:{person.username}",
        data={"role": "viewer", "user": person.pk},
    )  # fmt: skip


def _access(world: World) -> Any:
    return access_to(world.manager, world.project.slug)


def _of_sources(world: World) -> None:
    project, manager = world.project, world.manager
    item = project.items.last()
    price = ModelPrice.objects.create(
        project=project, name="small", cost_function="tokens", prices={"per_token": "0.000001"}
    )
    source = Source.objects.create(
        project=project, position=9, name="server", backend="openai_api", price=price,
        params={"url": "https://models.example/v1", "model": "m"}, api_key=encrypt(KEY),
    )  # fmt: skip
    PromptVersion.objects.create(source=source, number=1, template="{{ text }}", created_by=manager)
    MendVersion.objects.create(source=source, number=1, labels={"Cat!": "cat"}, created_by=manager)
    frozen = {"source": source, "cost_per_label": Decimal("0.5"), "fingerprint": "f" * 64}
    candidate = PromptCandidate.objects.create(
        project=project, number=1, template="{{ text }}?", position=1, created_by=manager, **frozen
    )
    Reservation.objects.create(
        candidate=candidate, source=source, stage="prompts", claim_token="t", calls=1, amount=Decimal("0.25"),
        state="settled",
    )  # fmt: skip
    revision = SourceRevision.objects.create(source=source, model="m", revision="1", fields=["confidence"])
    SentAnswer.objects.create(revision=revision, item=item, answer={"label": "cat", "confidence": 1e16})
    tried = Job.objects.create(
        project=project, kind="try_source", params={"source": source.pk, "items": [item.pk]}, state="done",
        unique_key=f"try:{source.pk}",
    )  # fmt: skip
    row = {
        "item": item.pk, "name": "x", "text": "cat", "reasoning": "", "value": "cat", "reason": "",
        "tokens_in": 9, "tokens_out": None, "finish_reason": "stop", "latency_ms": 2.5, "cost": "0.0001",
        "cost_note": "", "served_model": "m", "prompt": 1, "asked_as": "b" * 64,
        "asked": [{"role": "user", "content": "Cat?"}],
    }  # fmt: skip
    SourceTry.objects.create(job=tried, source=source, rows=[row])
    measurement = Measurement.objects.create(
        project=project,
        outside=True,
        pool_size=5,
        last=4,
        size=2,
        entropy=str(2**127),
        discarded_at=timezone.now(),
    )
    MeasuredSource.objects.create(measurement=measurement, position=1, asked_as="a" * 64, **frozen)
    MeasuredItem.objects.create(measurement=measurement, item=item, order=0)


def _left_behind(world: World) -> None:
    project, manager = world.project, world.manager
    store = Connection.objects.create(
        project=project, name="store", endpoint="http://127.0.0.1:9", bucket="bucket", access_key="key",
        secret=encrypt(KEY), created_by=manager,
    )  # fmt: skip
    sync = BucketSync.objects.create(connection=store, user=manager)
    BucketFile.objects.create(sync=sync, key="in/a.csv", size=1, changed_at=timezone.now())
    Job.objects.create(
        project=project, kind="fetch", params={"connection": store.pk, "key": "a.csv"}, state="failed",
        error="gone",
    )  # fmt: skip
    audit.record(project=project, actor=manager, action="connection.made", target=f"connection:{store.pk}")
    create_invitation(project=project, actor=manager, role="viewer", max_uses=1, days=1)
    webhook, _secret = create_webhook(
        project=project, actor=manager, url="https://example.org/told", events=["run.routed"]
    )
    send_test(webhook=webhook, actor=manager)
    ApiToken.objects.issue(
        user=manager, name="t", project=project, password_stamp="", lasts=timedelta(days=1)
    )
    add_member(project, "viewer")
