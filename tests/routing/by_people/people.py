"""Runs without any model, and people who label in them."""

from typing import Any

from django.urls import reverse

from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Job, Project, User
from annotation.permissions import access_to
from routing.by_people.start import Wanted, start_people_run
from routing.models import Delivery, Run


def page_of(client: Any, name: str, *args: Any) -> str:
    response = client.get(reverse(name, args=args), follow=True)
    assert response.status_code == 200, (name, response.status_code)
    return plain(response.content.decode())


def plain(text: str) -> str:
    return text.replace("\xa0", " ").replace("\u202f", " ")


def asked(project: Project, **wanted: Any) -> Run:
    access = access_to(project.created_by, project.slug)
    assert access is not None
    return start_people_run(access=access, wanted=Wanted(**{"filters": {}, **wanted}))


def answer(project: Project, user: User, value: str = "cat", most: int = 1000) -> list[str]:
    """Names of the items that this person then labels, all with the same label."""
    named = []
    while len(named) < most and (task := queue.claim(project=project, user=user)):
        key = f"{user.pk}-{task.work_item.pk}"
        queue.submit(
            user=user,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=value,
            idempotency_key=key.ljust(32, "k"),
        )
        named.append(task.item.external_id)
    return named


def delivered(client: Any, run: Run) -> Delivery:
    client.post(reverse("run_deliver", args=[run.project.slug, run.number]))
    job = run.project.jobs.filter(kind="deliver_run").order_by("-pk")[0]
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    return Delivery.objects.get(pk=job.result["delivery"])
