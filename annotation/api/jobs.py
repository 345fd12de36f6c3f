"""Background work: how far it is, and what went wrong."""

from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.base import KeysetPages, ProjectView
from annotation.models import Job

MAX_PROBLEMS_SHOWN = 100


class JobPages(KeysetPages):
    ordering = "-id"


class JobList(ProjectView):
    actions = {"GET": "jobs.view"}

    def get(self, request: Request, slug: str) -> Response:
        pages = JobPages()
        jobs = Job.objects.filter(project=self.access.project)
        page = pages.paginate_queryset(jobs, request, view=self) or []
        return pages.get_paginated_response([_content(job) for job in page])


class JobDetail(ProjectView):
    actions = {"GET": "jobs.view"}

    def get(self, request: Request, slug: str, job_id: int) -> Response:
        job = Job.objects.filter(project=self.access.project, pk=job_id).first()
        if job is None:
            raise Http404
        problems = job.problems.values("where", "message")[:MAX_PROBLEMS_SHOWN]
        return Response({**_content(job), "problem_count": job.problems.count(), "problems": list(problems)})


def _content(job: Job) -> dict[str, Any]:
    return {
        "id": job.pk,
        "kind": job.kind,
        "state": job.state,
        "stage": job.stage,
        "done": job.done,
        "total": job.total,
        "error": job.error,
        "result": job.result,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
    }
