from annotation.models.common import AuditEvent, KeyedRequest
from annotation.models.held_out import HeldOutItem, PracticeAnswer
from annotation.models.items import Item, StoredFile
from annotation.models.jobs import Job, JobProblem
from annotation.models.labelling import Comment, Draft, Label, Settlement, Skip, WorkBatch, WorkItem
from annotation.models.outside import Connection, Mail, Webhook, WebhookDelivery
from annotation.models.people import ApiToken, AttemptBucket, Invitation, User
from annotation.models.projects import MAX_OVERLAP, Choice, Membership, Project, ReplacedChoice

__all__ = [
    "MAX_OVERLAP",
    "ApiToken",
    "AttemptBucket",
    "AuditEvent",
    "Choice",
    "Comment",
    "Connection",
    "Draft",
    "HeldOutItem",
    "Invitation",
    "Item",
    "Job",
    "JobProblem",
    "KeyedRequest",
    "Label",
    "Mail",
    "Membership",
    "PracticeAnswer",
    "Project",
    "ReplacedChoice",
    "Settlement",
    "Skip",
    "StoredFile",
    "User",
    "Webhook",
    "WebhookDelivery",
    "WorkBatch",
    "WorkItem",
]
