"""Workers that label at once, started together at a barrier; prints what came of it as JSON.

Run as `python -m tests.annotation.hammer processes|threads ITEMS WORKERS SEED` on a migrated, empty database.
Two workers share a person, as two tabs do, and two others another one. Now and then an answer is sent twice,
skipped and taken back, or late.
"""

import json
import multiprocessing
import random
import sys
import threading
import time
from collections import Counter
from typing import Any

import django

DEADLINE_SECONDS = 120


def work(worker: int, username: str, project_id: int, seed: int, barrier: Any, report: Any) -> None:
    from django.db import connection

    from annotation import queue
    from annotation.errors import ConflictError
    from annotation.models import Project, User, WorkItem

    rng = random.Random(seed * 1000 + worker)
    seen: Counter[str] = Counter()
    errors: list[str] = []
    try:
        user = User.objects.get(username=username)
        project = Project.objects.get(pk=project_id)
        unfinished = WorkItem.objects.filter(batch__project=project, state__in=("open", "leased"))
        barrier.wait(60)
        end = time.monotonic() + DEADLINE_SECONDS
        for number in range(1_000_000):
            if time.monotonic() > end:
                errors.append("not finished in time")
                break
            try:
                task = queue.claim(project=project, user=user)
                if task is None:
                    if not unfinished.exists():
                        break
                    time.sleep(0.05)
                    continue
                if WorkItem.objects.filter(state="leased", leased_to=user).count() > 1:
                    errors.append(f"{username} holds two items")
                held = {"user": user, "work_item_id": task.work_item.pk, "token": task.token}
                chance = rng.random()
                if chance < 0.08:
                    queue.skip(**held, reason="unclear")
                    queue.undo(project=project, user=user)
                    seen["skipped and taken back"] += 1
                    continue
                if chance < 0.12:
                    queue.release(**held)
                    seen["released"] += 1
                    continue
                if chance < 0.16:
                    WorkItem.objects.filter(pk=task.work_item.pk, lease_token=task.token).update(
                        lease_expires_at="2020-01-01T00:00Z"
                    )
                    seen["expired"] += 1
                answer = {
                    **held,
                    "value": rng.choice(["cat", "dog"]),
                    "idempotency_key": f"{worker}-{number}",
                }
                label = queue.submit(**answer)
                seen["submitted"] += 1
                if chance > 0.8 and queue.submit(**answer) != label:
                    errors.append("sent twice, stored twice")
                if chance > 0.9:
                    other = "dog" if label.value == "cat" else "cat"
                    queue.correct(
                        user=user, label_id=label.pk, value=other, idempotency_key=f"c{worker}-{number}"
                    )
                    seen["corrected"] += 1
            except ConflictError:
                seen["conflict"] += 1
    except Exception as error:
        errors.append(f"worker {worker}: {type(error).__name__}: {error}")
    finally:
        connection.close()
        report.put((dict(seen), errors))


def main(kind: str, items: int, workers: int, seed: int) -> dict[str, Any]:
    from django.db import connections

    from annotation import queue
    from annotation.models import Label, WorkItem
    from tests.factories import add_member, make_items, make_project, make_user

    project = make_project(make_user("owner"))
    rows = make_items(project, items)
    people = [add_member(project, user=make_user(f"person{index}")) for index in range(workers - 2)]
    names = [person.username for person in people] + ["person0", "person1"]
    for priority, part in ((1, rows[::2]), (5, rows[1::2])):
        queue.create_batch(
            project=project,
            item_ids=[item.pk for item in part],
            blind=priority == 1,
            priority=priority,
            entropy=seed,
        )
    connections.close_all()

    context = multiprocessing.get_context("fork")
    if kind == "processes":
        barrier, report = context.Barrier(workers), context.Queue()
        start: Any = context.Process
    else:
        import queue as threads_queue

        barrier, report = threading.Barrier(workers), threads_queue.Queue()
        start = threading.Thread
    started = [
        start(target=work, args=(index, name, project.pk, seed, barrier, report))
        for index, name in enumerate(names)
    ]
    for one in started:
        one.start()
    reports = [report.get(timeout=2 * DEADLINE_SECONDS) for _ in started]
    for one in started:
        one.join()

    first = Label.objects.filter(version=1)
    seen: Counter[str] = Counter()
    for counts, _ in reports:
        seen.update(counts)
    return {
        "errors": [error for _, errors in reports for error in errors],
        "labelled_items": first.values("item").distinct().count(),
        "first_labels": first.count(),
        "people": first.values("annotator").distinct().count(),
        "states": dict(Counter(WorkItem.objects.values_list("state", flat=True))),
        "seen": dict(seen),
    }


if __name__ == "__main__":
    django.setup()
    print(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:5]))))
