"""Background work: how far it is, and what went wrong."""

from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.base import KeysetPages, ProjectView
from annotation.models import Job
from annotation.permissions import Access
from annotation.services.job_pauses import pause_job, resume_job

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
        job = _job(self.access, job_id)
        problems = job.problems.values("where", "message")[:MAX_PROBLEMS_SHOWN]
        return Response({**_content(job), "problem_count": job.problems.count(), "problems": list(problems)})


class JobPause(ProjectView):
    """Where the job has stored what is under way, its state is "paused"."""

    actions = {"POST": "jobs.edit"}

    def post(self, request: Request, slug: str, job_id: int) -> Response:
        job = _job(self.access, job_id)
        pause_job(job=job, user=self.access.user)
        return Response(_content(_job(self.access, job_id)))


class JobResume(ProjectView):
    actions = {"POST": "jobs.edit"}

    def post(self, request: Request, slug: str, job_id: int) -> Response:
        job = _job(self.access, job_id)
        resume_job(job=job, user=self.access.user)
        return Response(_content(_job(self.access, job_id)))


def _job(access: Access, job_id: int) -> Job:
    job = Job.objects.filter(project=access.project, pk=job_id).first()
    if job is None:
        raise Http404
    return job


def _content(job: Job) -> dict[str, Any]:
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
