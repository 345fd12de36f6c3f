"""The queue: who labels which item now. Nothing is done here: this names what other rooms may ask of this
one, and the imports below say in which module each is. Nothing outside this room touches leases.

A lease is one row's state, and it passes from hand to hand by conditional UPDATEs: what has moved on since it
was read matches no row any more. This holds on SQLite, where `select_for_update` does nothing, as on
PostgreSQL.
"""

from annotation.labelling.answers import correct, skip, submit, to_correct, undo
from annotation.labelling.batches import (
    BatchProgress,
    add_items,
    batch_progress,
    create_batch,
    lock_batch,
    progress_together,
    withdraw_batch,
    withdraw_items,
)
from annotation.labelling.given_elsewhere import store_given
from annotation.labelling.leases import (
    MAX_AHEAD,
    LeasedItem,
    claim,
    claim_ahead,
    has_seen,
    heartbeat,
    held_item,
    release,
    release_all,
)
from annotation.labelling.rostered import add_work, give_up_work_of, withdraw_work_of
from annotation.labelling.settlement import adjudicate, settle_after, settle_batch_by_dawid_skene
from annotation.labelling.stuck_items import (
    STUCK_ITEM_DECISIONS,
    ask_again,
    ask_no_more,
    decide_on_stuck_item,
    give_up,
    is_stuck,
    somebody_may_label_blind,
    stuck_items,
    who_is_left,
)
from annotation.labelling.validation import validate_value

__all__ = [
    "MAX_AHEAD",
    "STUCK_ITEM_DECISIONS",
    "BatchProgress",
    "LeasedItem",
    "add_items",
    "add_work",
    "adjudicate",
    "ask_again",
    "ask_no_more",
    "batch_progress",
    "claim",
    "claim_ahead",
    "correct",
    "create_batch",
    "decide_on_stuck_item",
    "give_up",
    "give_up_work_of",
    "has_seen",
    "heartbeat",
    "held_item",
    "is_stuck",
    "lock_batch",
    "progress_together",
    "release",
    "release_all",
    "settle_after",
    "settle_batch_by_dawid_skene",
    "skip",
    "somebody_may_label_blind",
    "store_given",
    "stuck_items",
    "submit",
    "to_correct",
    "undo",
    "validate_value",
    "who_is_left",
    "withdraw_batch",
    "withdraw_items",
    "withdraw_work_of",
]
