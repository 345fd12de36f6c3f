"""Background work: how far it is, what went wrong, and what people have it do."""

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import NewestFirst, OldestFirst, ProjectView
from annotation.common.api.schema import Nothing, PageQuery, page_of
from annotation.errors import HypacError
from annotation.imports.undo import start_undo
from annotation.jobs import jobs
from annotation.jobs.manage import cancel_job, pause_job, resume_job, retry_job, try_job_now
from annotation.jobs.serializers import (
    PROBLEM,
    JobBody,
    JobProblemBody,
    accepted,
    job_content,
    with_problem_counts,
)
from annotation.models import Job

MAX_PROBLEMS_SHOWN = 100


class JobQuery(PageQuery):
    kind = serializers.CharField(required=False, max_length=40, help_text="For example import.")
    state = serializers.ChoiceField(required=False, choices=Job.State.choices)

    def validate_kind(self, kind: str) -> str:
        # What there is is known once all applications are: no choices of a class.
        try:
            return jobs.kind(kind).name
        except HypacError as error:
            raise serializers.ValidationError(str(error)) from None


class JobDetails(JobBody):
    problems = JobProblemBody(many=True, help_text=f"The first {MAX_PROBLEMS_SHOWN}.")


class JobView(ProjectView):
    """A job by its id."""

    def find_job(self, job_id: int) -> Job:
        """As it stands now."""
        found = Job.objects.select_related("project").filter(project=self.access.project, pk=job_id).first()
        if found is None:
            raise Http404
        return found


class JobList(ProjectView):
    actions = {"GET": "jobs.view"}

    @extend_schema(parameters=[JobQuery], responses=page_of(JobBody))
    def get(self, request: Request, slug: str) -> Response:
        """Newest first."""
        asked = self.query(JobQuery)
        wanted = {name: asked[name] for name in ("kind", "state") if name in asked}
        found = Job.objects.filter(project=self.access.project, **wanted)
        return self.paged(NewestFirst(), with_problem_counts(found), job_content)


class JobDetail(JobView):
    actions = {"GET": "jobs.view"}

    @extend_schema(responses=JobDetails)
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """One of them with the first of its problems."""
        job = self.find_job(job_id)
        problems = job.problems.values(*PROBLEM)[:MAX_PROBLEMS_SHOWN]
        return Response({**job_content(job), "problems": list(problems)})


class JobProblems(JobView):
    actions = {"GET": "jobs.view"}

    @extend_schema(parameters=[PageQuery], responses=page_of(JobProblemBody))
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """All lines and items that the job could not use."""
        rows = self.find_job(job_id).problems.all()
        return self.paged(
            OldestFirst(), rows, lambda problem: {name: getattr(problem, name) for name in PROBLEM}
        )


class JobAction(JobView):
    actions = {"POST": "jobs.edit"}

    def changed(self, job_id: int) -> Response:
        return Response(job_content(self.find_job(job_id)))


class JobPause(JobAction):
    @extend_schema(request=None, responses=JobBody)
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Where the job has stored what is under way, its state is "paused"."""
        self.parsed(Nothing)
        pause_job(job=self.find_job(job_id), user=self.access.user)
        return self.changed(job_id)


class JobResume(JobAction):
    @extend_schema(request=None, responses=JobBody)
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Go on where it stopped, or take back that it is to pause."""
        self.parsed(Nothing)
        resume_job(job=self.find_job(job_id), user=self.access.user)
        return self.changed(job_id)


class JobCancel(JobAction):
    @extend_schema(request=None, responses=JobBody)
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Stop it; what it had finished is kept. One that had ended already stays as it was."""
        self.parsed(Nothing)
        cancel_job(job=self.find_job(job_id), user=self.access.user)
        return self.changed(job_id)


class JobRetry(JobAction):
    @extend_schema(request=None, responses={202: JobBody})
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Start a failed or cancelled job again where it stopped."""
        self.parsed(Nothing)
        retry_job(job=self.find_job(job_id), user=self.access.user)
        return accepted(self.find_job(job_id))


class JobTryNow(JobAction):
    @extend_schema(request=None, responses={202: JobBody})
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Make the next attempt of work that waits after a failure without waiting longer."""
        self.parsed(Nothing)
        try_job_now(job=self.find_job(job_id), user=self.access.user)
        return accepted(self.find_job(job_id))


class JobUndo(JobView):
    actions = {"POST": "items.import"}

    @extend_schema(request=None, responses={202: JobBody})
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Take an import back, as long as nothing rests on the items that it brought."""
        self.parsed(Nothing)
        return accepted(start_undo(job=self.find_job(job_id), user=self.access.user))
