"""Sending answers in from outside, for the tests of it."""

import io
import json
from decimal import Decimal

from annotation.jobs import jobs
from annotation.models import Job, JobProblem
from routing.sources.manage import save_source
from routing.sources.sent_answers import send_answers, store_answers_file


def uploaded(project, *, source=None, revision="1", name="Outside", **fields):
    return save_source(
        project=project,
        user=project.created_by,
        source=source,
        name=name,
        backend="uploaded",
        params={"model": "house-7b", "revision": revision},
        cost_per_label=Decimal("0.5"),
        **fields,
    )


def sent(source, lines, **options) -> Job:
    """A job that has read the lines: objects, or texts as they are."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    project = source.project
    file = store_answers_file(project=project, content=io.BytesIO(text.encode()), name="answers.jsonl")
    job = send_answers(source=source, user=project.created_by, stored_file=file, **options)
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def problems(job: Job) -> dict[str, str]:
    return dict(JobProblem.objects.filter(job=job).values_list("where", "message"))


def counts(job: Job) -> tuple[int, int, int]:
    return tuple(job.result[name] for name in ("added", "already_there", "problems"))
