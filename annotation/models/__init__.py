from annotation.models.audit import AuditEvent
from annotation.models.comments import Comment
from annotation.models.connections import Connection
from annotation.models.files import StoredFile
from annotation.models.idempotency import KeyedRequest
from annotation.models.invitations import Invitation
from annotation.models.items import Item
from annotation.models.jobs import Job, JobProblem
from annotation.models.labels import Label
from annotation.models.projects import MAX_OVERLAP, Choice, Membership, Project
from annotation.models.settlements import Settlement
from annotation.models.tokens import ApiToken
from annotation.models.users import AttemptBucket, User
from annotation.models.webhooks import Webhook, WebhookDelivery
from annotation.models.work import Draft, Skip, WorkBatch, WorkItem

__all__ = [
    "MAX_OVERLAP",
    "ApiToken",
    "AttemptBucket",
    "AuditEvent",
    "Choice",
    "Comment",
    "Connection",
    "Draft",
    "Invitation",
    "Item",
    "Job",
    "JobProblem",
    "KeyedRequest",
    "Label",
    "Membership",
    "Project",
    "Settlement",
    "Skip",
    "StoredFile",
    "User",
    "Webhook",
    "WebhookDelivery",
    "WorkBatch",
    "WorkItem",
]
