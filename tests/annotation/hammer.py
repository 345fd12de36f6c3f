"""Annotators who label at once, started together at a barrier; prints what came of it as JSON.

Run as `python -m tests.annotation.hammer processes|threads ITEMS WORKERS` on a migrated, empty database.
Two workers share a person, as two tabs do, and two others another one. One batch is blind and goes first, one
asks two people about each item, and one asks once more about items of the first. Everybody does everything in
turn (KINDS), each beginning with something else, while the leases are watched.
"""

import json
import multiprocessing
import queue as threads_queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django

DEADLINE_SECONDS = 400
AWAY_SECONDS = 5  # at the most, until somebody else has taken what has expired


class Worker:
    def __init__(self, number: int, username: str, project_id: int) -> None:
        from annotation.models import Project, User

        self.number = number
        self.user = User.objects.get(username=username)
        self.project = Project.objects.get(pk=project_id)
        self.count = 0
        self.seen: Counter[str] = Counter()
        self.errors: list[str] = []

    def run(self, wait: Callable[[], Any]) -> None:
        from annotation import queue
        from annotation.errors import ConflictError
        from annotation.models import WorkItem

        unfinished = WorkItem.objects.filter(batch__project=self.project, state__in=("open", "leased"))
        wait()
        end = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < end:
            try:
                tasks = (
                    queue.claim_ahead(project=self.project, user=self.user)
                    if self.count % 3 == 2
                    else [queue.claim(project=self.project, user=self.user)]
                )
                if not tasks or tasks[0] is None:
                    if not unfinished.exists():
                        return
                    time.sleep(0.05)
                    continue
                kind = KINDS[(self.number + self.count) % len(KINDS)]
                self.count += 1
                self.seen[kind.__name__] += 1
                kind(self, {"work_item_id": tasks[0].work_item.pk, "token": tasks[0].token})
            except ConflictError:
                self.seen["conflict"] += 1
        self.errors.append("not finished in time")

    def answer(self, held: dict[str, Any]) -> Any:
        from annotation import queue

        return queue.submit(**self._answer(held))

    def answer_again(self, held: dict[str, Any]) -> None:
        """The same request once more, as when its reply was lost."""
        from annotation import queue

        answer = self._answer(held)
        if queue.submit(**answer) != queue.submit(**answer):
            self.errors.append("sent twice, stored twice")

    def answer_twice_at_once(self, held: dict[str, Any]) -> None:
        """A double click."""
        from django.db import connection

        from annotation import queue

        answer = self._answer(held)
        together = threading.Barrier(2)

        def send(_: int) -> Any:
            try:
                together.wait(60)
                return queue.submit(**answer)
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(send, range(2))
        if one != other:
            self.errors.append("sent twice at once, stored twice")

    def answer_and_correct(self, held: dict[str, Any]) -> None:
        from annotation import queue

        label = self.answer(held)
        other = "dog" if label.value == "cat" else "cat"
        key = f"c{self.number}-{self.count}"
        queue.correct(user=self.user, label_id=label.pk, value=other, idempotency_key=key)

    def answer_after_a_heartbeat(self, held: dict[str, Any]) -> None:
        from annotation import queue

        queue.heartbeat(user=self.user, **held)
        self.answer(held)

    def answer_late(self, held: dict[str, Any]) -> None:
        from annotation.models import WorkItem

        own = WorkItem.objects.filter(pk=held["work_item_id"], lease_token=held["token"])
        own.update(lease_expires_at="2020-01-01T00:00Z")
        end = time.monotonic() + AWAY_SECONDS
        while own.exists() and time.monotonic() < end:
            time.sleep(0.05)
        self.answer(held)

    def skip(self, held: dict[str, Any]) -> None:
        from annotation import queue

        queue.skip(user=self.user, **held, reason="unclear")

    def skip_and_undo(self, held: dict[str, Any]) -> None:
        from annotation import queue

        queue.skip(user=self.user, **held, reason="unclear")
        queue.undo(project=self.project, user=self.user)

    def release(self, held: dict[str, Any]) -> None:
        from annotation import queue

        queue.release(user=self.user, **held)

    def release_all(self, held: dict[str, Any]) -> None:
        from annotation import queue

        queue.release_all(project=self.project, user=self.user)

    def _answer(self, held: dict[str, Any]) -> dict[str, Any]:
        value = "dog" if held["work_item_id"] % 3 else "cat"
        key = f"{self.number}-{self.count}"
        return {"user": self.user, **held, "value": value, "idempotency_key": key}


# In this order nobody gives back more than they answer.
KINDS = (
    Worker.answer_after_a_heartbeat,
    Worker.skip_and_undo,
    Worker.answer_twice_at_once,
    Worker.answer_late,
    Worker.release,
    Worker.answer_again,
    Worker.skip,
    Worker.answer_and_correct,
    Worker.release_all,
    Worker.answer,
)


def work(number: int, username: str, project_id: int, barrier: Any, report: Any) -> None:
    from django.db import connection

    seen: dict[str, int] = {}
    errors: list[str] = []
    try:
        worker = Worker(number, username, project_id)
        seen, errors = worker.seen, worker.errors
        worker.run(lambda: barrier.wait(120))
    except Exception as error:
        errors.append(f"worker {number}: {type(error).__name__}: {error}")
    finally:
        connection.close()
        report.put((dict(seen), errors))


def wrong_leases() -> list[str]:
    """What may not be, as it is at this moment: one query, so that nothing moves while it is read."""
    from annotation import queue
    from annotation.models import WorkItem

    rows = list(
        WorkItem.objects.filter(state="leased").values_list("item", "slot", "batch__overlap", "leased_to")
    )
    of_item = Counter((item, slot) for item, slot, _, _ in rows)
    of_person = Counter((item, person) for item, _, _, person in rows)
    alone = Counter(item for item, _, overlap, _ in rows if overlap == 1)
    held = Counter(person for *_, person in rows)
    return [
        *(f"two hold item {item}" for (item, _), count in of_item.items() if count > 1),
        *(f"two hold item {item}, that one is asked about" for item, count in alone.items() if count > 1),
        *(f"one person holds item {item} twice" for (item, _), count in of_person.items() if count > 1),
        *(f"{person} holds {count}" for person, count in held.items() if count > 1 + queue.MAX_AHEAD),
    ]


def prepare(items: int, workers: int) -> tuple[Any, list[str]]:
    from annotation import queue
    from testbed.factories import add_member, make_items, make_project, make_user

    project = make_project(make_user("owner"))
    rows = [item.pk for item in make_items(project, items)]
    people = [add_member(project, user=make_user(f"person{index}")) for index in range(workers - 2)]
    third = items // 3
    for priority, part, overlap in (
        (1, rows[:third], 1),
        (5, rows[third : 2 * third], 2),
        (7, rows[2 * third :], 1),
        (9, rows[: third // 2], 1),
    ):
        queue.create_batch(
            project=project,
            item_ids=part,
            blind=priority == 1,
            priority=priority,
            entropy=items,
            overlap=overlap,
        )
    return project, [person.username for person in people] + ["person0", "person1"]


def main(kind: str, items: int, workers: int) -> dict[str, Any]:
    from django.db import connections
    from django.db.models import Count

    from annotation.models import Draft, Label, WorkItem

    project, names = prepare(items, workers)
    connections.close_all()
    context = multiprocessing.get_context("fork")
    start: Any = context.Process if kind == "processes" else threading.Thread
    barrier: Any = context.Barrier(workers) if kind == "processes" else threading.Barrier(workers)
    report: Any = context.Queue() if kind == "processes" else threads_queue.Queue()
    started = [
        start(target=work, args=(number, name, project.pk, barrier, report))
        for number, name in enumerate(names)
    ]
    for one in started:
        one.start()
    reports: list[tuple[dict[str, int], list[str]]] = []
    errors: list[str] = []
    looks = 0
    end = time.monotonic() + 2 * DEADLINE_SECONDS
    while len(reports) < workers and time.monotonic() < end:
        try:
            reports.append(report.get(timeout=0.1))
        except threads_queue.Empty:
            errors += wrong_leases()
            looks += 1
    for one in started:
        one.join()

    seen: Counter[str] = Counter()
    for counts, found in reports:
        seen.update(counts)
        errors += found
    first = Label.objects.filter(version=1)
    twice = first.values("work_item__batch", "item", "annotator").annotate(n=Count("pk")).filter(n__gt=1)
    return {
        "errors": errors,
        "looks": looks,
        "asked": WorkItem.objects.count(),
        "labelled": first.values("work_item").distinct().count(),
        "first_labels": first.count(),
        "twice_by_one": twice.count(),
        "people": first.values("annotator").distinct().count(),
        "states": dict(Counter(WorkItem.objects.values_list("state", flat=True))),
        "drafts": Draft.objects.count(),
        "seen": dict(seen),
        "not_tried": [kind.__name__ for kind in KINDS if not seen[kind.__name__]],
    }


def check(found: dict[str, Any], *, asked: int, people: int) -> None:
    """What has to hold of the outcome."""
    assert found["errors"] == []
    assert found["states"] == {"done": asked}
    assert found["asked"] == found["labelled"] == found["first_labels"] == asked
    assert found["twice_by_one"] == 0
    assert 1 < found["people"] <= people
    # What the workers are there for did happen: somebody was too late, and that answer was kept.
    assert found["not_tried"] == []
    assert found["seen"]["conflict"] > 0
    assert found["drafts"] > 0
    assert found["looks"] > 0


def be_patient() -> None:
    """Twenty processes on one slow core wait longer for their turn at an SQLite file than people ever do.

    What may not be is a lock that no waiting opens: that one fails at once.
    """
    from django.db import connections

    database = connections.settings["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"]["timeout"] = DEADLINE_SECONDS


if __name__ == "__main__":
    django.setup()
    be_patient()
    print(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:4]))))
