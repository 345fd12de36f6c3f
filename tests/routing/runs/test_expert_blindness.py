"""What an expert gets is the same, byte for byte, whatever the reason that an item is brought to her."""

import json
import re
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from annotation.labelling import queue
from annotation.models import Item, Label, WorkItem
from routing.models import ExpertRequest, Run
from routing.runs.expert.requests import ask_about, hand_over
from testbed.experts import ExpertWorld
from testbed.worlds import CHOICES

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

Why = ExpertRequest.Why
EACH = 2
"""Items of each reason, at most, whose pages and answers are looked at in each way."""
LABEL = CHOICES[0]
"""Of what is looked at: pages repeat her answer."""
OF_THE_ITEM = {"work_item", "token", "id", "item", "text", "html", "expires_at", "created_at"}
"""Keys of answers that hold the item itself, its handles, and times."""
COUNTS = {"today", "total", "per_hour", "median_seconds", "waiting"}


class Desk:
    """The expert's browser and program: what they get about the item before her, with what is its own
    replaced by the names of what it is; the numbers of her own work are compared with what they have to be.
    """

    def __init__(self, here: ExpertWorld, client: Client, run: Run) -> None:
        self.here, self.client, self.run, self.keys = here, client, run, 0
        client.force_login(here.expert)
        self.page = f"/projects/{run.project.slug}/"
        self.api = f"/api/v1/projects/{run.project.slug}/"

    def task(self) -> queue.LeasedItem | None:
        return queue.claim(project=self.run.project, user=self.here.expert)

    def post(self, path: str, **body: Any) -> str:
        answer = self.client.post(path, body, content_type="application/json")
        assert answer.status_code == 200, answer.content
        return answer.content.decode()

    def sent(self, path: str, **fields: Any) -> str:
        """As the page's script sends it."""
        answer = self.client.post(path, fields, headers={"HX-Request": "true"})
        assert answer.status_code == 200, answer.content
        return answer.content.decode()

    def looks(self, task: queue.LeasedItem) -> dict[str, Any]:
        """Everything that shows the item, or goes with it, until and after she has answered."""
        work, held = task.work_item.pk, {"work_item": task.work_item.pk, "token": task.token}
        a, q = f"{self.page}annotate/", f"{self.api}queue/"
        seen: dict[str, Any] = {
            "page": self.html(self.client.get(a).content.decode(), task),
            "part": self.html(self.client.get(a, headers={"HX-Request": "true"}).content.decode(), task),
            "overview": self.html(self.client.get(self.page).content.decode(), task),
            "projects": self.html(self.client.get("/").content.decode(), task),
            "project": self.json(self.client.get(self.api).content.decode()),
            "claimed": self.json(self.post(f"{q}claim/")),
            "ahead": self.mine(self.post(f"{q}ahead/"), "tasks", work),
            "cards": self.mine(self.sent(f"{a}ahead/", holding="", **held), "ahead", work),
            "kept": self.json(self.sent(f"{a}heartbeat/", **held)),
            "kept by a program": self.json(self.post(f"{q}heartbeat/", **held)),
            "flagged": self.json(self.post(f"{q}flag/", work_item=work, text="Look")),
        }
        skipped = json.loads(self.post(f"{q}skip/", reason="unclear", **held))
        seen["skipped"] = self.plain(skipped)
        seen["back"] = self.json(self.post(f"{q}undo/"))
        again = queue.claim_ahead(project=self.run.project, user=self.here.expert)
        held["token"] = next(one.token for one in again if one.work_item.pk == work)
        answer = {"value": LABEL, "idempotency_key": self.key()}
        stored = json.loads(self.post(f"{q}submit/", **held, **answer))
        label = stored["label"]["id"]
        seen["stored"] = self.plain(stored["label"])
        mine = json.loads(self.client.get(f"{self.api}labels/", {"page_size": 1000}).content)["results"]
        seen["listed"] = [self.plain(row) for row in mine if row["id"] == label]
        lines = self.client.get(f"{self.api}labels.ndjson").getvalue().decode().splitlines()
        seen["lines"] = [self.json(line) for line in lines if json.loads(line)["id"] == label]
        seen["to correct"] = self.html(self.client.get(a, {"correct": label}).content.decode(), task, label)
        answer["idempotency_key"] = self.key()
        seen["corrected"] = self.json(self.post(f"{q}correct/", label=label, **answer))
        return seen

    def looks_at_page(self, task: queue.LeasedItem) -> dict[str, Any]:
        """What the page's own form brings back."""
        body = self.sent(
            f"{self.page}annotate/submit/",
            work_item=task.work_item.pk,
            token=task.token,
            value=LABEL,
            idempotency_key=self.key(),
            holding="",
            counts="yes",
        )
        found = json.loads(body)
        self.check(found.pop("counts"))
        return {"stored by the page": {**found, "ahead": len(found["ahead"]) > 0}}

    def key(self) -> str:
        self.keys += 1
        return f"seen-{self.keys}"

    def html(self, text: str, task: queue.LeasedItem, label: int | None = None) -> str:
        """A page without the item, its handles, and what is drawn for each page; her counts are checked."""
        told = dict(re.findall(r'data-count="(\w+)">([^<]*)<', text))
        if told and "correcting" not in text.split("data-state", 1)[-1][:20]:
            assert told["waiting"] == str(self.waiting())
        text = re.sub(r'(data-count="\w+">)[^<]*<', r"\1<", text)
        text = re.sub(r'(data-count-bar [^>]*) value="\d+" max="\d+"', r"\1", text)
        text = re.sub(r'name="(csrfmiddlewaretoken|idempotency_key)" value="[^"]*"', r'name="\1"', text)
        text = re.sub(r'"X-CSRFToken": "[^"]*"', "", text)
        if label is not None:
            for name in ("label", "before"):
                text = text.replace(f'name="{name}" value="{label}"', f'name="{name}"')
        text = re.sub(rf">{self.waiting()} items? waits? ", ">COUNT wait ", text)
        text = text.replace(f"<dd>{self.labelled()}</dd>", "<dd>COUNT</dd>")
        for own, name in (
            (f'name="work_item" value="{task.work_item.pk}"', 'name="work_item"'),
            (task.token or "-", "TOKEN"),
            (task.item.text, "TEXT"),
            (f">{task.item.short_name}<", ">NAME<"),
        ):
            text = text.replace(own, name)
        return text

    def json(self, text: str) -> Any:
        return self.plain(json.loads(text))

    def mine(self, text: str, key: str, work_item: int) -> Any:
        """Of what she has before and behind it, this item; and all that stands beside."""
        body = json.loads(text)
        if counts := body.pop("counts", None):
            self.check(counts)
        (mine,) = [self.plain(row) for row in body.pop(key) if row["work_item"] == work_item]
        return mine, body

    def plain(self, value: Any, key: str = "") -> Any:
        """An answer with what may differ replaced by the kind of what it is."""
        if key in OF_THE_ITEM and not isinstance(value, dict):
            return f"{key}: {type(value).__name__}"
        if isinstance(value, dict):
            # Of a card the name is the item's.
            of = {"name": "item"} if "work_item" in value else {}
            return {name: self.plain(one, of.get(name, name)) for name, one in value.items()}
        return [self.plain(one) for one in value] if isinstance(value, list) else value

    def check(self, counts: dict[str, Any]) -> None:
        """They are of all her work alone."""
        assert counts.keys() == COUNTS
        assert counts["waiting"] == self.waiting()
        assert counts["today"] == counts["total"] == self.labelled()

    def waiting(self) -> int:
        work = WorkItem.objects.filter(assigned_to=self.here.expert, state__in=WorkItem.UNFINISHED)
        return work.filter(batch__in=(self.run.expert_batch_id, self.run.expert_routed_batch_id)).count()

    def labelled(self) -> int:
        return Label.objects.filter(annotator=self.here.expert, version=1).count()


def test_pages_and_answers_of_the_expert_are_the_same_whatever_the_reason(client) -> None:
    here = ExpertWorld(240, human_cost="4")
    run = here.asked(here.start(m=120, audit_share=Decimal("0.3"), recheck_share=Decimal("0.3")))
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    by_page: dict[str, list[dict[str, Any]]] = defaultdict(list)
    desk = Desk(here, client, run)
    for _stage in range(2):
        while task := desk.task():
            reason = ExpertRequest.objects.get(run=run, item=task.item).why
            same = here.world.truth[task.item.external_id] == LABEL
            if not same or desk.labelled() < 6 or desk.waiting() < 3:  # no pace yet, or nothing behind it
                here.label(here.expert, limit=1)
            elif len(seen[reason]) < EACH and len(seen[reason]) <= len(by_page[reason]):
                seen[reason].append(desk.looks(task))
            elif len(by_page[reason]) < EACH:
                by_page[reason].append(desk.looks_at_page(task))
            else:
                here.label(here.expert, limit=1)
        if run.state == Run.State.CHECKING:
            desk.run = run = here.routed_from(run)
            every_reason(here, run)
    assert set(seen) == {*Why.values} - {Why.UNDECIDED}
    first, told = seen[Why.ASKED][0], by_page[Why.ASKED][0]
    tells = {
        (name, reason)
        for looks, one in ((seen, first), (by_page, told))
        for reason, several in looks.items()
        for other in several
        for name in one.keys() | other.keys()
        if one.get(name) != other.get(name)
    }
    assert not tells, "these are not the same for each reason"


def every_reason(here: ExpertWorld, run: Run) -> None:
    """Bring items to the expert for each reason there is after the routing, as services do."""
    absent, other, third = here.world.annotators
    hand_over(run=run, user=absent, actor=here.world.manager)
    rest = queue.withdraw_work_of(batch=run.routed_batch, user=other)
    deal(here, run, rest, Why.ALARM, Why.ROUTED)
    here.label(third)
    labelled = Label.objects.filter(work_item__batch=run.routed_batch).values("item")
    asked = ExpertRequest.objects.filter(run=run).values("item")
    free = list(Item.objects.filter(pk__in=labelled).exclude(pk__in=asked).values_list("pk", flat=True))
    deal(here, run, free[::2], Why.SECOND_LOOK, Why.AUDIT)
    deal(here, run, free[1::2], Why.FINAL, Why.FINAL)


def deal(here: ExpertWorld, run: Run, items: list[int], one: str, other: str) -> None:
    """Ask about half of the items for each of two reasons, of those that are looked at as well."""
    names = dict(Item.objects.filter(pk__in=items).values_list("pk", "external_id"))
    same_first = sorted(items, key=lambda item: here.world.truth[names[item]] != LABEL)
    ask_about(run, dict.fromkeys(same_first[::2], one) | dict.fromkeys(same_first[1::2], other))
