"""Addresses of the pages about people and data."""

from django.urls import path

from annotation.imports import views as imports
from annotation.items import images_views as images
from annotation.labelling import own_labels_views as own_labels, practice_views as practice, views as annotate
from annotation.mail import views as mail
from annotation.outside.webhooks import views as webhooks
from annotation.people import (
    accounts_views as accounts,
    invitations_views as invitations,
    members_views as members,
    sign_on_views as sign_on,
    tokens_views as tokens,
)
from annotation.people.second_factor import account_views as second_factor, log_in_views as second_step
from annotation.projects import (
    bucket_sync_views as bucket_sync,
    connections_views as connections,
    go,
    jobs_views as jobs,
    views as projects,
)
from annotation.review import views as review

urlpatterns = [
    path("", projects.project_list, name="project_list"),
    path("login/", accounts.login, name="login"),
    path("logout/", accounts.logout, name="logout"),
    path("sign-on/", sign_on.sign_on_start, name="sign_on"),
    path("sign-on/done/", sign_on.sign_on_done, name="sign_on_done"),
    path("sign-on/log-out/", sign_on.sign_on_log_out, name="sign_on_log_out"),
    path("account/", accounts.account, name="account"),
    path("account/erase/", accounts.account_erase, name="account_erase"),
    path("account/data/", accounts.account_data, name="account_data"),
    path("password/", accounts.password, name="password"),
    path("password/<str:uidb64>/<str:token>/", accounts.reset, name="password_reset"),
    path("join/", invitations.join, name="join"),
    path("join/<str:token>/", invitations.join_link, name="join_link"),
    path("invitations/<row:invitation_id>/accept/", invitations.invitation_accept, name="invitation_accept"),
    path(
        "invitations/<row:invitation_id>/decline/",
        invitations.invitation_decline,
        name="invitation_decline",
    ),
    path("go/", go.go, name="go"),
    path("healthz", accounts.health, name="health"),
    path("projects/new/", projects.project_new, name="project_new"),
    path("projects/<slug:slug>/settings/", projects.project_settings, name="project_settings"),
    path(
        "projects/<slug:slug>/settings/config.xml", projects.project_label_config, name="project_label_config"
    ),
    path("projects/<slug:slug>/manage/", projects.manage, name="project_manage"),
    path("projects/<slug:slug>/archive/", projects.archive, name="project_archive"),
    path("projects/<slug:slug>/unarchive/", projects.unarchive, name="project_unarchive"),
    path("projects/<slug:slug>/duplicate/", projects.duplicate, name="project_duplicate"),
    path("projects/<slug:slug>/delete/", projects.delete, name="project_delete"),
    path("projects/<slug:slug>/import/", imports.import_upload, name="import_upload"),
    path("projects/<slug:slug>/import/<row:file_id>/", imports.import_mapping, name="import_mapping"),
    path("projects/<slug:slug>/jobs/<row:job_id>/undo/", imports.import_undo, name="import_undo"),
    path("projects/<slug:slug>/images/<str:sha256>/", images.image, name="image"),
    path("images/<str:name>/", images.linked_image, name="image_link"),
    path("projects/<slug:slug>/annotate/", annotate.annotate, name="annotate"),
    path("projects/<slug:slug>/annotate/mine/", own_labels.own_labels_page, name="annotate_mine"),
    path("projects/<slug:slug>/annotate/practice/", practice.practice, name="practice"),
    path("projects/<slug:slug>/annotate/submit/", annotate.submit, name="annotate_submit"),
    path("projects/<slug:slug>/annotate/correct/", annotate.correct, name="annotate_correct"),
    path("projects/<slug:slug>/annotate/skip/", annotate.skip, name="annotate_skip"),
    path("projects/<slug:slug>/annotate/undo/", annotate.undo, name="annotate_undo"),
    path("projects/<slug:slug>/annotate/heartbeat/", annotate.heartbeat, name="annotate_heartbeat"),
    path("projects/<slug:slug>/annotate/ahead/", annotate.ahead, name="annotate_ahead"),
    path("projects/<slug:slug>/annotate/flag/", annotate.flag, name="annotate_flag"),
    path("projects/<slug:slug>/annotate/shortcuts/", annotate.shortcuts, name="annotate_shortcuts"),
    path("projects/<slug:slug>/annotate/release/", annotate.release, name="annotate_release"),
    path("projects/<slug:slug>/work/<row:work_item_id>/", annotate.work_decide, name="work_decide"),
    path("projects/<slug:slug>/agreement/", review.agreement_page, name="agreement"),
    path("projects/<slug:slug>/review/", review.review, name="review"),
    path("projects/<slug:slug>/review/decide/", review.review_decide, name="review_decide"),
    path("projects/<slug:slug>/review/count/", review.review_count, name="review_count"),
    path("projects/<slug:slug>/review/flags/", review.review_flags, name="review_flags"),
    path("projects/<slug:slug>/review/flags/<row:comment_id>/", review.flag_resolve, name="flag_resolve"),
    path("projects/<slug:slug>/members/", members.members, name="members"),
    path("projects/<slug:slug>/members/add/", members.member_add, name="member_add"),
    path("projects/<slug:slug>/members/create/", members.member_create, name="member_create"),
    path("projects/<slug:slug>/members/<row:user_id>/", members.member, name="member"),
    path("projects/<slug:slug>/members/<row:user_id>/limits/", members.member_limits, name="member_limits"),
    path("projects/<slug:slug>/members/<row:user_id>/active/", members.member_active, name="member_active"),
    path("projects/<slug:slug>/members/<row:user_id>/reset/", members.member_reset, name="member_reset"),
    path("projects/<slug:slug>/members/<row:user_id>/role/", members.member_role, name="member_role"),
    path("projects/<slug:slug>/members/<row:user_id>/remove/", members.member_remove, name="member_remove"),
    path("projects/<slug:slug>/invitations/new/", invitations.invitation_new, name="invitation_new"),
    path(
        "projects/<slug:slug>/invitations/<row:invitation_id>/revoke/",
        invitations.invitation_revoke,
        name="invitation_revoke",
    ),
    path("projects/<slug:slug>/jobs/", jobs.jobs, name="jobs"),
    path("projects/<slug:slug>/jobs/<row:job_id>/", jobs.job, name="job"),
    path("projects/<slug:slug>/jobs/<row:job_id>/problems.csv", jobs.job_problems, name="job_problems"),
    path("projects/<slug:slug>/jobs/<row:job_id>/cancel/", jobs.job_cancel, name="job_cancel"),
    path("projects/<slug:slug>/jobs/<row:job_id>/pause/", jobs.job_pause, name="job_pause"),
    path("projects/<slug:slug>/jobs/<row:job_id>/resume/", jobs.job_resume, name="job_resume"),
    path("projects/<slug:slug>/jobs/<row:job_id>/retry/", jobs.job_retry, name="job_retry"),
    path("projects/<slug:slug>/jobs/<row:job_id>/try-now/", jobs.job_try_now, name="job_try_now"),
    path("projects/<slug:slug>/audit/", projects.audit, name="audit"),
    *second_factor.urlpatterns,
    *second_step.urlpatterns,
    *tokens.urlpatterns,
    *mail.urlpatterns,
    *webhooks.urlpatterns,
    *connections.urlpatterns,
    *bucket_sync.urlpatterns,
]
