from annotation.models.common import AgreedSettings, AuditEvent, KeyedRequest, UsedOnce
from annotation.models.held_out import HeldOutItem, PracticeAnswer
from annotation.models.items import Item, StoredFile
from annotation.models.jobs import Job, JobProblem
from annotation.models.labelling import (
    Comment,
    Draft,
    Label,
    Settlement,
    ShownSuggestion,
    Skip,
    WorkBatch,
    WorkItem,
)
from annotation.models.outside import BucketFile, BucketSync, Connection, Mail, Webhook, WebhookDelivery
from annotation.models.people import ApiToken, AttemptBucket, Invitation, SignOnSession, User
from annotation.models.projects import MAX_OVERLAP, Choice, Membership, Project, ReplacedChoice
from annotation.models.second_factor import AuthenticatorApp, Passkey, RecoveryCode

__all__ = [
    "MAX_OVERLAP",
    "AgreedSettings",
    "ApiToken",
    "AttemptBucket",
    "AuditEvent",
    "AuthenticatorApp",
    "BucketFile",
    "BucketSync",
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
    "Passkey",
    "PracticeAnswer",
    "Project",
    "RecoveryCode",
    "ReplacedChoice",
    "Settlement",
    "ShownSuggestion",
    "SignOnSession",
    "Skip",
    "StoredFile",
    "UsedOnce",
    "User",
    "Webhook",
    "WebhookDelivery",
    "WorkBatch",
    "WorkItem",
]
