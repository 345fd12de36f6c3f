"""Work in the background: what is told of a job, and the answer to a request that began one."""

from typing import Any

from django.urls import reverse
from rest_framework import serializers
from rest_framework.response import Response

from annotation.models import Job


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
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


def job_content(job: Job) -> dict[str, Any]:
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
    message = serializers.CharField()
