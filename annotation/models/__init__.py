from annotation.models.audit import AuditEvent
from annotation.models.comments import Comment
from annotation.models.files import StoredFile
from annotation.models.invitations import Invitation
from annotation.models.items import Item
from annotation.models.jobs import Job, JobProblem
from annotation.models.labels import Label
from annotation.models.projects import MAX_OVERLAP, Choice, Membership, Project
from annotation.models.settlements import Settlement
from annotation.models.users import User
from annotation.models.work import Draft, Skip, WorkBatch, WorkItem

__all__ = [
    "MAX_OVERLAP",
    "AuditEvent",
    "Choice",
    "Comment",
    "Draft",
    "Invitation",
    "Item",
    "Job",
    "JobProblem",
    "Label",
    "Membership",
    "Project",
    "Settlement",
    "Skip",
    "StoredFile",
    "User",
    "WorkBatch",
    "WorkItem",
]
