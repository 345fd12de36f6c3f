from annotation.models.audit import AuditEvent
from annotation.models.files import StoredFile
from annotation.models.items import Item
from annotation.models.jobs import Job, JobProblem
from annotation.models.labels import Label
from annotation.models.projects import Choice, Membership, Project
from annotation.models.users import User
from annotation.models.work import Draft, Skip, WorkBatch, WorkItem

__all__ = [
    "AuditEvent",
    "Choice",
    "Draft",
    "Item",
    "Job",
    "JobProblem",
    "Label",
    "Membership",
    "Project",
    "Skip",
    "StoredFile",
    "User",
    "WorkBatch",
    "WorkItem",
]
