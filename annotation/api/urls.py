"""Addresses of the API that belong to projects, of what annotation holds."""

from django.urls import path

from annotation.imports import api as imports
from annotation.items import api as items, images_views as images
from annotation.labelling import api as queue, practice_api as practice
from annotation.people import invitations_api as invitations, members_api as members
from annotation.projects import api as projects, jobs_api as jobs, label_config_api as label_config
from annotation.review import api as reviews

P = "projects/<slug:slug>/"
JOB = f"{P}jobs/<row:job_id>/"

urlpatterns = [
    path("invitations/", invitations.OwnInvitationList.as_view(), name="api_own_invitations"),
    path(
        "invitations/<row:invitation_id>/accept/",
        invitations.OwnInvitationAccept.as_view(),
        name="api_own_invitation_accept",
    ),
    path(
        "invitations/<row:invitation_id>/decline/",
        invitations.OwnInvitationDecline.as_view(),
        name="api_own_invitation_decline",
    ),
    path("projects/", projects.ProjectList.as_view(), name="api_projects"),
    path(P, projects.ProjectDetail.as_view(), name="api_project"),
    path(f"{P}archive/", projects.ProjectArchive.as_view(), name="api_project_archive"),
    path(f"{P}unarchive/", projects.ProjectUnarchive.as_view(), name="api_project_unarchive"),
    path(f"{P}duplicate/", projects.ProjectDuplicate.as_view(), name="api_project_duplicate"),
    path(f"{P}choices/", projects.ProjectChoices.as_view(), name="api_choices"),
    path(f"{P}config.xml", label_config.LabelConfig.as_view(), name="api_label_config"),
    path(f"{P}members/", members.MemberList.as_view(), name="api_members"),
    path(f"{P}members/<row:user_id>/", members.MemberDetail.as_view(), name="api_member"),
    path(f"{P}invitations/", invitations.InvitationList.as_view(), name="api_invitations"),
    path(
        f"{P}invitations/<row:invitation_id>/", invitations.InvitationDetail.as_view(), name="api_invitation"
    ),
    path(f"{P}files/", imports.FileList.as_view(), name="api_files"),
    path(f"{P}files/<row:file_id>/", imports.FileDetail.as_view(), name="api_file"),
    path(f"{P}files/<row:file_id>/preview/", imports.FilePreview.as_view(), name="api_file_preview"),
    path(f"{P}imports/", imports.ImportList.as_view(), name="api_imports"),
    path(f"{P}items/", items.ItemList.as_view(), name="api_items"),
    path(f"{P}items/<row:item_id>/", items.ItemDetail.as_view(), name="api_item"),
    path(f"{P}items.ndjson", items.ItemLines.as_view(), name="api_item_lines"),
    path(f"{P}images/<str:sha256>/", images.ItemImage.as_view(), name="api_image"),
    path(f"{P}images/<str:sha256>/link/", images.ItemImageLink.as_view(), name="api_image_link"),
    path(f"{P}labels/", items.LabelList.as_view(), name="api_labels"),
    path(f"{P}labels/<row:label_id>/", items.LabelDetail.as_view(), name="api_label"),
    path(f"{P}labels.ndjson", items.LabelLines.as_view(), name="api_label_lines"),
    path(f"{P}jobs/", jobs.JobList.as_view(), name="api_jobs"),
    path(JOB, jobs.JobDetail.as_view(), name="api_job"),
    path(f"{JOB}problems/", jobs.JobProblems.as_view(), name="api_job_problems"),
    path(f"{JOB}pause/", jobs.JobPause.as_view(), name="api_job_pause"),
    path(f"{JOB}resume/", jobs.JobResume.as_view(), name="api_job_resume"),
    path(f"{JOB}cancel/", jobs.JobCancel.as_view(), name="api_job_cancel"),
    path(f"{JOB}retry/", jobs.JobRetry.as_view(), name="api_job_retry"),
    path(f"{JOB}try-now/", jobs.JobTryNow.as_view(), name="api_job_try_now"),
    path(f"{JOB}undo/", jobs.JobUndo.as_view(), name="api_job_undo"),
    path(f"{P}practice/", practice.Practice.as_view(), name="api_practice"),
    path(f"{P}queue/claim/", queue.Claim.as_view(), name="api_queue_claim"),
    path(f"{P}queue/ahead/", queue.Ahead.as_view(), name="api_queue_ahead"),
    path(f"{P}queue/submit/", queue.Submit.as_view(), name="api_queue_submit"),
    path(f"{P}queue/skip/", queue.SkipItem.as_view(), name="api_queue_skip"),
    path(f"{P}queue/flag/", queue.Flag.as_view(), name="api_queue_flag"),
    path(f"{P}queue/heartbeat/", queue.Heartbeat.as_view(), name="api_queue_heartbeat"),
    path(f"{P}queue/release/", queue.Release.as_view(), name="api_queue_release"),
    path(f"{P}queue/undo/", queue.Undo.as_view(), name="api_queue_undo"),
    path(f"{P}queue/correct/", queue.Correct.as_view(), name="api_queue_correct"),
    path(f"{P}queue/mine/", queue.Mine.as_view(), name="api_queue_mine"),
    path(f"{P}work/", queue.StuckList.as_view(), name="api_work"),
    path(f"{P}work/<row:work_item_id>/decide/", queue.WorkDecide.as_view(), name="api_work_decide"),
    path(f"{P}reviews/", reviews.ReviewList.as_view(), name="api_reviews"),
    path(f"{P}flags/", reviews.FlagList.as_view(), name="api_flags"),
    path(f"{P}flags/<row:comment_id>/resolve/", reviews.FlagResolve.as_view(), name="api_flag_resolve"),
    path(f"{P}agreement/", reviews.AgreementDetail.as_view(), name="api_agreement"),
    path(f"{P}audit/", projects.AuditList.as_view(), name="api_audit"),
]
