"""The forms of a plan and of a run's budget. They turn what was typed into values; the services say what is
allowed.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from annotation.common.tolerance import NUMERIC, ToleranceFields, typed_tolerance
from annotation.models import Project
from annotation.templatetags.hypac import number
from routing.core.choices import DEFAULT_TARGET
from routing.core.exact import plain
from routing.core.losses import measured_elsewhere
from routing.models import Run
from routing.runs.commitment_report import draw_menu
from routing.runs.form_fields import ParametersField, described, percent_field, share_field
from routing.runs.labelling_pace import labelling_time_of
from routing.runs.plan_fields import DEFAULT_SHARE, columns_of_probabilities
from routing.runs.plan_help import follow_what_is_typed
from routing.runs.plan_options import Option, PlanOptions, losses_of_project, plan_options
from routing.runs.reference import OF_EXPERTS
from routing.runs.reference_forms import (
    ReferenceFields,
    expert_choices,
    price_help,
    reference_menu,
    roster_choices,
    roster_of_form,
)


def budget_field() -> forms.DecimalField:
    attrs: dict[str, Any] = {
        "aria-describedby": "id_budget_helptext id_budget_error",
        "inputmode": "decimal",
        "autocomplete": "off",
    }
    return forms.DecimalField(
        label=_("Budget of the models"),
        required=False,
        min_value=0,
        max_digits=20,
        decimal_places=6,
        localize=False,
        widget=forms.TextInput(attrs=attrs),
        error_messages={"invalid": _("Write an amount such as 25.50.")},
        help_text=_(
            "The run stops before its models cost more than this. Once you raise it, they go on where "
            "they stopped. What people are paid is no part of it. Left empty: no limit."
        ),
    )


class BudgetForm(forms.Form):
    budget = budget_field()

    @staticmethod
    def initial_of(run: Run) -> dict[str, Any]:
        return {"budget": "" if run.budget is None else plain(run.budget)}


CONFIRMED = ("anyway", "accept_unusable", "accept_missing", "accept_dearer")
# Of the page alone.
NOT_IN_PLANS = (*CONFIRMED, "seconds", "shares", "expert_shares", "tolerance", "tolerance_percent")
# The fields of each part of the page that is folded in.
PARTS = {
    "reference": ("reference", "roster", "shares", "expert_shares", *OF_EXPERTS),
    "target": ("target", "later_audit_share", "p_column"),
    "draw": ("draw_from",),
    "suggestions": ("suggestions",),
    "models": ("leave_out",),
    "rule": ("rule", "split_share", "bound"),
    "loss": ("loss", "loss_params", "tolerance", "tolerance_percent", "score", "score_params"),
}


class PlanForm(ToleranceFields, ReferenceFields):
    epsilon = percent_field(
        "epsilon",
        label=_("At most this share of labels that differ from the reference"),  # of losses that count errors
        initial=Decimal("0.05"),
    )
    alpha = percent_field(
        "alpha",
        label=_("Accepted risk that this does not hold"),
        initial=Decimal("0.05"),
    )
    target = forms.CharField(label=_("What the promise is about"), initial=DEFAULT_TARGET, required=False)
    m = forms.IntegerField(
        label=_("Items drawn at random for calibration"),
        min_value=1,
        help_text=_("More of them allow thresholds that save more, and cost labels by people."),
        widget=forms.TextInput(attrs=described("m", inputmode="numeric", autocomplete="off")),
    )
    p = share_field(
        "p",
        label=_("Share of the drawn items that people are asked about"),
        initial=Decimal(1),
        required=False,
    )
    later_audit_share = share_field(
        "later_audit_share",
        label=_("Share of later items that people label, too"),
        required=False,
        help_text=_(
            "Left empty: 0.02. It shows whether models get worse on items that are taken in later; whoever "
            "labels them must not be able to see what models say. 0: no audit."
        ),
    )
    draw_from = forms.CharField(
        label=_("Where the draw comes from"), initial=Run.DrawFrom.SYSTEM, required=False
    )
    suggestions = forms.BooleanField(
        label=_("Show whoever labels a routed item what a model answered"),
        required=False,
        help_text=_(
            "One key accepts it. People label these items faster, and nearer to the model: an error that "
            "they let pass counts as right. The calibration set is labelled without, and the certificate "
            "says that suggestions are shown. Off: nobody who labels sees an answer of a model."
        ),
        widget=forms.CheckboxInput(attrs=described("suggestions")),
    )
    p_column = forms.ChoiceField(
        label=_("or the column that holds each item's own"),
        required=False,
        help_text=_(
            "For data in which some items should be looked at more often. Leave the share empty then."
        ),
        widget=forms.Select(attrs=described("p_column")),
    )
    rule = forms.CharField(label=_("How thresholds are chosen"), initial="", required=False)
    split_share = share_field(
        "split_share",
        label=_("Part of the labels that a chain is learnt from"),
        required=False,
        help_text=format_lazy(
            _("Only for the rule that learns its chain from labels. Left empty: {share}."),
            share=DEFAULT_SHARE,
        ),
    )
    bound = forms.CharField(label=_("Bound"), initial="", required=False)
    loss = forms.CharField(label=_("What counts as an error"), initial="", required=False)
    loss_params = ParametersField("loss_params", label=_("Parameters of the loss"))
    score = forms.CharField(label=_("Uncertainty of the first source"), initial="", required=False)
    score_params = ParametersField("score_params", label=_("Parameters of the score"))
    budget = budget_field()
    seconds = forms.IntegerField(
        label=_("Seconds that a person needs for a label"),
        min_value=1,
        max_value=36_000,
        required=False,
        widget=forms.TextInput(attrs=described("seconds", inputmode="numeric", autocomplete="off")),
    )
    leave_out = forms.MultipleChoiceField(
        label=_("Models that the run does without"),
        required=False,
        widget=forms.CheckboxSelectMultiple(attrs={"aria-describedby": "id_leave_out_error"}),
    )
    anyway = forms.BooleanField(
        label=_("Start anyway: people will label everything"),
        required=False,  # asked for only where nothing can be certified; see `ask_whether_anyway`
        widget=forms.CheckboxInput(attrs={"required": True}),
    )

    accept_unusable = forms.BooleanField(
        label=_("Start all the same, with the answers as they are"),
        required=False,  # asked for only where many answers cannot be used
        widget=forms.CheckboxInput(attrs={"required": True}),
    )

    accept_missing = forms.BooleanField(
        label=_("Start all the same, without these answers"),
        required=False,  # asked for only where some were not sent
        widget=forms.CheckboxInput(attrs={"required": True}),
    )

    accept_dearer = forms.BooleanField(
        label=_("Start all the same, although the expert alone is expected to cost less"),
        required=False,  # asked for only where that is so
        widget=forms.CheckboxInput(attrs={"required": True}),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project
        self.measured_time = labelling_time_of(project)
        self.fields["seconds"].initial = self.measured_time.seconds
        self.fields["seconds"].help_text = self._about_seconds()
        offered, chosen = columns_of_probabilities(project), self["p_column"].value()
        if chosen in project.columns and chosen not in offered:
            offered.append(chosen)  # the service says what is wrong with it
        columns = [("", _("One share for all items")), *((name, name) for name in offered)]
        self.fields["p_column"].choices = columns  # type: ignore[attr-defined]
        self.fields["roster"].choices = roster_choices(project)  # type: ignore[attr-defined]
        self.fields["expert"].choices = expert_choices(project)  # type: ignore[attr-defined]
        self.fields["expert_cost"].help_text = price_help(project)
        self._begin_with_the_loss_of(project)
        follow_what_is_typed(self, binary=self.options.binary)
        models = project.sources.order_by("position").values_list("name", flat=True)
        self.fields["leave_out"].choices = [(name, name) for name in models]  # type: ignore[attr-defined]

    def _begin_with_the_loss_of(self, project: Project) -> None:
        for name in ("tolerance", "tolerance_percent"):
            if NUMERIC in losses_of_project(project):
                self.fields[name].widget.attrs |= described(name)
            else:
                del self.fields[name]
        if project.loss == NUMERIC:
            self.initial = {**typed_tolerance(project.loss_params), **self.initial}
        else:
            self.fields["loss_params"].initial = project.loss_params

    def _about_seconds(self) -> Any:
        """Whether it was measured here, since the hours are worth no more than that."""
        about: Any = _("An assumption: too few labels have been timed here.")
        if self.measured_time.labels:
            about = format_lazy(
                _("Measured here: the median of the newest {count} labels."),
                count=number(self.measured_time.labels),
            )
        return format_lazy("{} {}", about, _("For the hours alone; the plan does not depend on it."))

    @property
    def seconds_per_label(self) -> int:
        """What was typed, else what was measured or is assumed."""
        given = self.cleaned_data.get("seconds") if self.is_bound and self.is_valid() else None
        return int(given or self.measured_time.seconds)

    @property
    def options(self) -> PlanOptions:
        """The menus beside what is chosen so far, be it valid or not."""
        parameters = self.fields["loss_params"]
        try:
            loss_params: Mapping[str, Any] = parameters.clean(self["loss_params"].value() or "")
        except forms.ValidationError:
            loss_params = {}
        return plan_options(
            self.project,
            target=self["target"].value() or "",
            loss=self["loss"].value() or "",
            loss_params=loss_params,
            p_varies=bool(self["p_column"].value()),
            leave_out=self["leave_out"].value() or (),
        )

    @property
    def asks_what_measures(self) -> bool:
        """Whether the plan has to say which program measures the losses."""
        return self.options.recommended("loss") == measured_elsewhere.NAME

    @property
    def offers_tolerance(self) -> bool:
        return "tolerance" in self.fields

    def clean(self) -> dict[str, Any]:
        """Put together who labels from two fields, and leave out what another reference than an expert, or
        another target than the population, has no use for: those fields are hidden then.
        """
        cleaned = super().clean() or self.cleaned_data
        for people, shares in (("roster", "shares"), ("expert", "expert_shares")):
            try:
                cleaned[people] = roster_of_form(cleaned.get(people, []), cleaned.get(shares) or {})
            except forms.ValidationError as error:
                self.add_error(shares, error)
        if (cleaned.get("loss") or self.options.recommended("loss")) == NUMERIC:
            cleaned["loss_params"] = {**(cleaned.get("loss_params") or {}), **self.tolerance_params()}
        if cleaned.get("target") != Run.Target.POPULATION:
            cleaned["later_audit_share"] = None  # hidden then
        if cleaned.get("reference") == Run.Reference.EXPERT:
            cleaned |= {"rule": "", "split_share": None}  # a menu always has one of its options chosen
        else:
            cleaned |= dict.fromkeys(OF_EXPERTS)
        cleaned["suggestions"] = cleaned.get("suggestions") or None  # left out where nobody asks for them
        return cleaned

    @property
    def only_asks(self) -> bool:
        """Whether nothing is wrong with the plan itself, and a start waits for a confirmation alone."""
        return bool(self.errors) and set(self.errors) <= set(CONFIRMED)

    @property
    def faults(self) -> bool:
        """Whether something in the plan itself is wrong."""
        return bool(self.errors) and not self.only_asks

    @property
    def faulty_parts(self) -> dict[str, bool]:
        """By the folded parts of the page, whether a field in it is wrong."""
        return {part: not self.errors.keys().isdisjoint(names) for part, names in PARTS.items()}

    @property
    def confirmations(self) -> list[forms.BoundField]:
        """What a start asks for where something speaks against it."""
        return [self[name] for name in CONFIRMED]

    @property
    def typed(self) -> list[forms.BoundField]:
        """What stands on the page with a place for what is wrong with it."""
        one_model = len(self.fields["leave_out"].choices) < 2  # type: ignore[attr-defined]
        absent = {*CONFIRMED, *(["leave_out"] if one_model else [])}
        return [field for field in self if field.name not in absent]

    @property
    def references(self) -> list[Option]:
        return reference_menu()

    @property
    def draws(self) -> list[Option]:
        return draw_menu()

    def values(self) -> dict[str, Any]:
        """Arguments of `outlook_of_plan` and `start_run`: what was left out is left to its default."""
        named = {name: value for name, value in self.cleaned_data.items() if name not in NOT_IN_PLANS}
        return {name: value for name, value in named.items() if value not in (None, "", {}, [])}

    def initial_values(self) -> dict[str, Any]:
        """The same of a form that nobody has filled in yet."""
        named = {name: field for name, field in self.fields.items() if name not in NOT_IN_PLANS}
        given = {name: self.get_initial_for_field(field, name) for name, field in named.items()}
        return {name: value for name, value in given.items() if value not in (None, "", {}, [])}

    def ask_whether_anyway(self) -> None:
        self.add_error(
            "anyway",
            _(
                "Nothing was started: with this plan too few labels come together to certify anything, so no "
                "model may label and people get every item. Draw more items, or accept more errors or a "
                "higher risk; otherwise confirm that you want this."
            ),
        )

    def ask_whether_unusable(self, question: str) -> None:
        self.add_error("accept_unusable", format_lazy("{} {}", _("Nothing was started."), question))

    def ask_whether_missing(self, question: str) -> None:
        self.add_error("accept_missing", format_lazy("{} {}", _("Nothing was started."), question))

    def ask_whether_dearer(self, warning: str) -> None:
        self.add_error("accept_dearer", format_lazy("{} {}", _("Nothing was started."), warning))
