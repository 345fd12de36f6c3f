"""People on the roster of a run who are absent: a manager waits for them no longer.

What is open of an annotator goes to the expert, or in the calibration set counts as not answered
(`requests.hand_over`); where there is no expert nobody labels it, and what was to be looked at for the
audit of later items is no part of that any more. What is open of an expert goes to nobody, and to no other
expert either: right is what she would say, and another one's label would be a different reference, with
losses that nobody has tested. Asked items without her label count as errors wherever a model or an
annotator labels them, weighted where these agree, as items that she could not label; later ones stay
blank. She stays on the roster: what comes to her later waits for her, as her label is right whenever she
gives it.
"""

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.labelling.settlement import lock_settling
from annotation.models import User, WorkBatch
from routing.common.states import State
from routing.models import RosterEntry, Run
from routing.runs.complete import calibration_ended, complete_if_done
from routing.runs.expert.audit import check_for_alarm
from routing.runs.expert.requests import HANDED_OVER, hand_over, nothing_open
from routing.runs.later.audit import check_for_drift


def give_up_open_items(*, run: Run, user: User, actor: User | None) -> int:
    """Give up the open items of somebody who is absent; returns how many.

    Raises ConflictError where the person is not on the roster, or nothing of theirs is open.
    """
    entry = run.roster.filter(user=user).first()
    if entry is None:
        raise ConflictError(
            _("%(name)s does not label by a roster here.") % {"name": user.username}, code="not_on_roster"
        )
    if run.by_expert and entry.role == RosterEntry.Role.ANNOTATOR:
        return hand_over(run=run, user=user, actor=actor)
    with transaction.atomic():
        current = Run.objects.get(pk=run.pk)
        count = 0
        for batch in _open_batches(current, entry.role):
            lock_settling(batch)
            if batch.pk == current.later_audit_batch_id:
                # No audit any more: that somebody is absent says nothing of the models.
                count += len(queue.withdraw_work_of(batch=batch, user=user))
            else:
                count += queue.give_up_work_of(batch=batch, user=user, actor=actor)
        if not count:
            raise nothing_open(user)
        audit.record(
            project=run.project,
            actor=actor,
            action=HANDED_OVER,
            target=f"run:{run.number}",
            data={"user": user.pk, "items": count},
        )
        if current.state == State.LABELLING:
            if current.by_expert:
                check_for_alarm(current)  # what was audited behind her items counts now
            elif current.later_audit_batch_id is not None:
                check_for_drift(current)
            complete_if_done(current)
        elif current.state == State.CALIBRATING:
            calibration_ended(current)
    return count


def _open_batches(run: Run, role: str) -> list[WorkBatch]:
    """What people of this role label now."""
    by_state: dict[State, tuple[WorkBatch | None, ...]] = {
        State.CALIBRATING: (run.calibration_batch,),
        State.LABELLING: (run.routed_batch, run.later_audit_batch),
    }
    if role == RosterEntry.Role.EXPERT:
        by_state = {State.CHECKING: (run.expert_batch,), State.LABELLING: (run.expert_routed_batch,)}
    return [batch for batch in by_state.get(State(run.state), ()) if batch is not None]
