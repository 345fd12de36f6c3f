"""People who answer, and one who corrects, all at the same moment."""

import threading
from collections.abc import Callable, Sequence

from django.db import connection

from annotation.common.value_reader import Value
from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import Item, Label, Project, User
from testbed.worlds import CHOICES


def all_at_once(
    project: Project, people: Sequence[User], answer: Callable[[User, Item], Value], first: Label
) -> list[Exception]:
    """Each of `people` answers until nothing waits for them, while `first` is corrected 20 times; what
    failed, but for answers to what was withdrawn meanwhile.
    """
    start, failed = threading.Barrier(len(people) + 1), []

    def work(do: Callable[[], None]) -> None:
        try:
            start.wait()
            do()
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    def label(user: User) -> None:
        keys = 0
        while task := queue.claim(project=project, user=user):
            keys += 1
            try:
                queue.submit(
                    user=user,
                    work_item_id=task.work_item.pk,
                    token=task.token,
                    value=answer(user, task.work_item.item),
                    idempotency_key=f"{user.pk}-{keys}",
                )
            except ConflictError:
                continue

    def correct() -> None:
        label = first
        for number in range(20):
            value = CHOICES[number % len(CHOICES)]
            label = queue.correct(
                user=label.annotator, label_id=label.pk, value=value, idempotency_key=f"again-{number}"
            )

    ways = [lambda user=user: label(user) for user in people] + [correct]
    threads = [threading.Thread(target=work, args=[do]) for do in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed
