"""The queue: who labels which item now. Nothing else touches leases.

A lease is one row's state, and it passes from hand to hand by conditional UPDATEs: what has moved on since it
was read matches no row any more. This holds on SQLite, where `select_for_update` does nothing, as on
PostgreSQL.
"""

from annotation.queue.answers import correct, skip, submit
from annotation.queue.batches import BatchProgress, batch_progress, create_batch, lock_batch, withdraw_batch
from annotation.queue.decisions import ask_again, give_up, stuck_items
from annotation.queue.leases import Task, claim, heartbeat, release, release_all
from annotation.queue.undo import undo
from annotation.queue.values import validate_value

__all__ = [
    "BatchProgress",
    "Task",
    "ask_again",
    "batch_progress",
    "claim",
    "correct",
    "create_batch",
    "give_up",
    "heartbeat",
    "lock_batch",
    "release",
    "release_all",
    "skip",
    "stuck_items",
    "submit",
    "undo",
    "validate_value",
    "withdraw_batch",
]
