"""Addresses of the pages about people and data."""

from django.urls import path

from annotation.views import accounts, annotate, audit, images, imports, jobs, members, projects, work

urlpatterns = [
    path("", projects.project_list, name="project_list"),
    path("login/", accounts.login, name="login"),
    path("logout/", accounts.logout, name="logout"),
    path("password/", accounts.password, name="password"),
    path("healthz", accounts.health, name="health"),
    path("projects/new/", projects.project_new, name="project_new"),
    path("projects/<slug:slug>/settings/", projects.project_settings, name="project_settings"),
    path("projects/<slug:slug>/import/", imports.import_upload, name="import_upload"),
    path("projects/<slug:slug>/import/<int:file_id>/", imports.import_mapping, name="import_mapping"),
    path("projects/<slug:slug>/images/<str:sha256>/", images.image, name="image"),
    path("projects/<slug:slug>/annotate/", annotate.annotate, name="annotate"),
    path("projects/<slug:slug>/annotate/submit/", annotate.submit, name="annotate_submit"),
    path("projects/<slug:slug>/annotate/correct/", annotate.correct, name="annotate_correct"),
    path("projects/<slug:slug>/annotate/skip/", annotate.skip, name="annotate_skip"),
    path("projects/<slug:slug>/annotate/undo/", annotate.undo, name="annotate_undo"),
    path("projects/<slug:slug>/annotate/heartbeat/", annotate.heartbeat, name="annotate_heartbeat"),
    path("projects/<slug:slug>/annotate/release/", annotate.release, name="annotate_release"),
    path("projects/<slug:slug>/work/<int:work_item_id>/", work.work_decide, name="work_decide"),
    path("projects/<slug:slug>/members/", members.members, name="members"),
    path("projects/<slug:slug>/members/add/", members.member_add, name="member_add"),
    path("projects/<slug:slug>/members/create/", members.member_create, name="member_create"),
    path("projects/<slug:slug>/members/<int:user_id>/role/", members.member_role, name="member_role"),
    path("projects/<slug:slug>/members/<int:user_id>/remove/", members.member_remove, name="member_remove"),
    path("projects/<slug:slug>/jobs/", jobs.jobs, name="jobs"),
    path("projects/<slug:slug>/jobs/<int:job_id>/", jobs.job, name="job"),
    path("projects/<slug:slug>/jobs/<int:job_id>/problems.csv", jobs.job_problems, name="job_problems"),
    path("projects/<slug:slug>/jobs/<int:job_id>/cancel/", jobs.job_cancel, name="job_cancel"),
    path("projects/<slug:slug>/jobs/<int:job_id>/pause/", jobs.job_pause, name="job_pause"),
    path("projects/<slug:slug>/jobs/<int:job_id>/resume/", jobs.job_resume, name="job_resume"),
    path("projects/<slug:slug>/jobs/<int:job_id>/retry/", jobs.job_retry, name="job_retry"),
    path("projects/<slug:slug>/jobs/<int:job_id>/try-now/", jobs.job_try_now, name="job_try_now"),
    path("projects/<slug:slug>/audit/", audit.audit, name="audit"),
]
