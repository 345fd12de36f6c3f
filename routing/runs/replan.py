"""Plan once more as an earlier run was planned, and begin anew where what people are told has to change."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.common.tolerance import NUMERIC, typed_tolerance
from annotation.errors import ConflictError
from annotation.labelling.batches import batch_progress
from annotation.models import Project, User
from annotation.ports import WordingChange
from annotation.templatetags.hypac import duration, money, number
from routing.common.states import CANCELLABLE, OPEN
from routing.core.exact import plain
from routing.models import RosterEntry, Run
from routing.runs.cancel import cancel_run
from routing.runs.form_fields import lines_of_parameters, typed_percent
from routing.runs.labelling_pace import labelling_time_of
from routing.runs.plan_fields import LEARNS
from routing.runs.reference import OF_EXPERTS
from routing.runs.spending import model_money
from routing.sources.prompt_versions import source_asked_otherwise


def plan_form_data(run: Run) -> dict[str, Any]:
    """What would be typed into the form of a plan for a run like this one, by the names of the fields. What
    was fitted, as the parameters of some scores are, is fitted anew.
    """
    in_run = set(run.run_sources.values_list("source_id", flat=True))
    found: dict[str, Any] = {
        "epsilon": run.epsilon,
        "alpha": run.alpha,
        "target": run.target,
        "m": run.m,
        "p": None if run.p_column else run.p,
        "p_column": run.p_column,
        "rule": run.rule,
        "bound": run.bound,
        "loss": run.loss,
        **_typed_loss(run),
        "score": run.score,
        "score_params": lines_of_parameters(
            {name: value for name, value in run.score_params.items() if name != "fitted"}
        ),
        "draw_from": run.draw_from,
        "suggestions": "on" if run.suggestions else "",
        "reference": run.reference,
        "budget": run.budget,
        "leave_out": list(run.project.sources.exclude(pk__in=in_run).values_list("name", flat=True)),
        "later_audit_share": run.later_audit_share,
    }
    if run.rule == LEARNS:
        found["split_share"] = run.split_share
    found |= _people_of(run, RosterEntry.Role.ANNOTATOR, names="roster", shares="shares")
    if run.by_expert:
        found |= _people_of(run, RosterEntry.Role.EXPERT, names="expert", shares="expert_shares")
        found |= {name: getattr(run, name) for name in OF_EXPERTS if name != "expert"}
    return {name: _typed(name, value) for name, value in found.items() if value not in (None, "", [])}


def _typed_loss(run: Run) -> dict[str, str]:
    """The parameters of the loss, by the fields that take them."""
    if run.loss == NUMERIC:
        return typed_tolerance(run.loss_params)
    return {"loss_params": lines_of_parameters(run.loss_params)}


def _typed(name: str, value: Any) -> Any:
    if not isinstance(value, Decimal):
        return value
    return typed_percent(value) if name in ("epsilon", "alpha") else plain(value)


def _people_of(run: Run, role: str, *, names: str, shares: str) -> dict[str, Any]:
    """Who labelled, and how much each where that was not the same for all."""
    rows = {row.user.username: row.share for row in run.roster.filter(role=role).select_related("user")}
    if len({Fraction(share) for share in rows.values()}) < 2:
        return {names: sorted(rows)}
    return {
        names: sorted(rows),
        shares: "\n".join(f"{name} = {share}" for name, share in sorted(rows.items())),
    }


# --- Other words in the middle of a run ---------------------------------------------------------------------


def _begun(project: Project) -> Run | None:
    """The run that other words would concern."""
    return project.runs.filter(state__in=CANCELLABLE, by_people=False).order_by("number").last()


def wording_change(project: Project, *, guidelines: str | None) -> WordingChange | None:
    """What it means to a run that has begun if people are told something else from now on, `guidelines` where
    these change. None where no run minds.
    """
    run = _begun(project)
    if run is None:
        return None
    source = source_asked_otherwise(project, guidelines=guidelines)
    barred = source is not None or run.by_expert
    batch = run.calibration_batch
    progress = batch_progress(batch) if batch and run.state in OPEN else None
    if not barred and (progress is None or not progress.done):
        return None
    said: list[str] = []
    if progress is not None and progress.done:
        spent = duration(labelling_time_of(project).seconds * progress.done)
        said.append(
            _(
                "Run %(number)s is being calibrated: %(done)s of its %(total)s answers are given, by the "
                "words as they are now (%(money)s %(currency)s, about %(time)s)."
            )
            % {
                "number": run.number,
                "done": number(progress.done),
                "total": number(progress.total),
                "money": money(progress.done * run.human_cost),
                "currency": project.currency,
                "time": spent,
            }
        )
    else:
        said.append(
            _("Run %(number)s rests on the words as they are now (%(state)s).")
            % {"number": run.number, "state": run.get_state_display().lower()}
        )
    if source is not None:
        said.append(
            _(
                "The prompt of %(source)s holds what you changed: the run cannot go on with other words, "
                "and in the next one its answers are asked for anew (%(money)s %(currency)s so far)."
            )
            % {
                "source": source[1].name,
                "money": money(model_money(run).spent),
                "currency": project.currency,
            }
        )
    elif run.by_expert:
        said.append(
            _(
                "It promises that people label later items as they labelled the calibration set, so it "
                "cannot go on with other words."
            )
        )
    else:
        said.append(
            _(
                "If it goes on, the other %(left)s are given by the new words. What is certified is then how "
                "often labels differ from people of whom some went by the old words and some by the new."
            )
            % {"left": number(progress.total - progress.done if progress else 0)}
        )
    said.append(
        _(
            "If you begin again, run %(number)s is cancelled and another set is drawn, about which people "
            "are asked anew. The labels that were given stay with their items; the risk of this draw "
            "stays in the ledger (alpha %(alpha)s)."
        )
        % {"number": run.number, "alpha": plain(run.alpha)}
    )
    return WordingChange(sentences=said, may_go_on=not barred)


def cancel_to_replan(*, project: Project, user: User) -> str:
    """Cancel the run that minds other words. Returns the address where the same plan is looked at anew.

    Raises ConflictError where no run is left that can be cancelled.
    """
    run = _begun(project)
    if run is None:
        raise ConflictError(
            _("There is no run any more that could begin again. Save once more."), code="cannot_cancel"
        )
    cancel_run(run=run, user=user)
    return f"{reverse('plan', args=[project.slug])}?like={run.number}"
