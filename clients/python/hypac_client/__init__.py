"""Python client of HyPAC. Begin with `Client(url, token)`."""

from hypac_client.client import Client
from hypac_client.deliveries import Delivery
from hypac_client.errors import (
    AuthenticationError,
    BadRequestError,
    ChangedError,
    ChecksumError,
    ConflictError,
    GoneError,
    HypacError,
    InvalidError,
    JobError,
    KeyReusedError,
    MediaTypeError,
    NotAllowedError,
    NotFoundError,
    NotYetError,
    RateLimitedError,
    ServerError,
    TooLargeError,
    UnavailableError,
    WaitTimeoutError,
)
from hypac_client.invitations import Invitation
from hypac_client.jobs import Job
from hypac_client.projects import Project
from hypac_client.queue import LeasedItem, Queue, Task
from hypac_client.retries import Retries
from hypac_client.runs import Run
from hypac_client.sources import Source
from hypac_client.webhook_list import Webhook
from hypac_client.webhooks import WebhookError

__version__ = "0.2.0"

__all__ = [
    "AuthenticationError",
    "BadRequestError",
    "ChangedError",
    "ChecksumError",
    "Client",
    "ConflictError",
    "Delivery",
    "GoneError",
    "HypacError",
    "InvalidError",
    "Invitation",
    "Job",
    "JobError",
    "KeyReusedError",
    "LeasedItem",
    "MediaTypeError",
    "NotAllowedError",
    "NotFoundError",
    "NotYetError",
    "Project",
    "Queue",
    "RateLimitedError",
    "Retries",
    "Run",
    "ServerError",
    "Source",
    "Task",
    "TooLargeError",
    "UnavailableError",
    "WaitTimeoutError",
    "Webhook",
    "WebhookError",
    "__version__",
]
