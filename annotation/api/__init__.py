"""The part of /api/v1/ that is about people and data. It calls the same services as the pages.

`urlpatterns` is included by hypac_site.urls.
"""

from django.urls import path

from annotation.api import jobs, projects, queue

urlpatterns = [
    path("projects/", projects.ProjectList.as_view(), name="api_projects"),
    path("projects/<slug:slug>/", projects.ProjectDetail.as_view(), name="api_project"),
    path("projects/<slug:slug>/items/", projects.ItemList.as_view(), name="api_items"),
    path("projects/<slug:slug>/jobs/", jobs.JobList.as_view(), name="api_jobs"),
    path("projects/<slug:slug>/jobs/<int:job_id>/", jobs.JobDetail.as_view(), name="api_job"),
    path("projects/<slug:slug>/jobs/<int:job_id>/pause/", jobs.JobPause.as_view(), name="api_job_pause"),
    path("projects/<slug:slug>/jobs/<int:job_id>/resume/", jobs.JobResume.as_view(), name="api_job_resume"),
    path("projects/<slug:slug>/queue/claim/", queue.Claim.as_view(), name="api_queue_claim"),
    path("projects/<slug:slug>/queue/submit/", queue.Submit.as_view(), name="api_queue_submit"),
    path("projects/<slug:slug>/queue/skip/", queue.SkipItem.as_view(), name="api_queue_skip"),
    path("projects/<slug:slug>/queue/heartbeat/", queue.Heartbeat.as_view(), name="api_queue_heartbeat"),
    path("projects/<slug:slug>/queue/release/", queue.Release.as_view(), name="api_queue_release"),
    path("projects/<slug:slug>/queue/undo/", queue.Undo.as_view(), name="api_queue_undo"),
    path("projects/<slug:slug>/queue/correct/", queue.Correct.as_view(), name="api_queue_correct"),
]
