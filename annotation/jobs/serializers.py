"""Work in the background: what is told of a job, and the answer to a request that began one."""

from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from rest_framework import serializers
from rest_framework.response import Response

from annotation.models import Job, JobProblem


class JobBody(serializers.Serializer[Any]):
    """A job; `result` and `error` are filled in at its end."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    state = serializers.ChoiceField(choices=Job.State.choices)
    pause_asked = serializers.BooleanField()
    stage = serializers.CharField(allow_blank=True)
    done = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True)
    error = serializers.CharField(allow_blank=True)
    result = serializers.JSONField(allow_null=True)
    problem_count = serializers.IntegerField(
        help_text="Lines and items that it could not use, or had to say something of."
    )
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


def with_problem_counts(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """So that `job_content` of each need not count."""
    problems = JobProblem.objects.filter(job=OuterRef("pk")).order_by().values("job")
    counted = Subquery(problems.annotate(count=Count("pk")).values("count"))
    return jobs.annotate(problem_count=Coalesce(counted, 0))


def job_content(job: Job) -> dict[str, Any]:
    counted = getattr(job, "problem_count", None)
    return {
        "id": job.pk,
        "kind": job.kind,
        "state": job.state,
        "pause_asked": job.pause_asked,
        "stage": job.stage,
        "done": job.done,
        "total": job.total,
        "error": job.error,
        "result": job.result,
        "problem_count": job.problems.count() if counted is None else counted,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
    }


def accepted(job: Job) -> Response:
    """202: the work has begun, or waits for a worker; the header Location says where to look."""
    place = reverse("api_job", kwargs={"slug": job.project.slug, "job_id": job.pk})
    return Response(job_content(job), status=202, headers={"Location": place})


class JobProblemBody(serializers.Serializer[Any]):
    """One line or item that the job could not use; the rest of it went on."""

    where = serializers.CharField()
    line = serializers.IntegerField(allow_null=True, help_text="Of a file of lines or rows, from 1.")
    column = serializers.CharField(allow_blank=True, help_text="Of a table.")
    message = serializers.CharField()


PROBLEM = ("where", "line", "column", "message")
