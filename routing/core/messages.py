"""What the core says, by code and parameters: of one message a sentence is made in each language.

The templates here are English, and `str` of a message is the English sentence: certificates hold it.  Whoever
speaks another language translates the template and fills it in by `Message.in_words`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Param = Any
"""A text, a number, a message within this one, or several of those."""


def gettext_noop(words: str) -> str:
    """Words that a page may translate, marked for the program that gathers such."""
    return words


@dataclass(frozen=True)
class Message:
    """A part of what is said: a key of `TEMPLATES`, and what to fill in there."""

    code: str
    params: Mapping[str, Param]

    def __str__(self) -> str:
        return self.in_words(str)

    def in_words(self, translate: Callable[[str], str]) -> str:
        """The sentence; ``translate`` makes a template of another language of an English one."""
        params = {name: _filled_in(value, translate) for name, value in self.params.items()}
        return translate(TEMPLATES[self.code]) % params


def say(code: str, **params: Param) -> Message:
    return Message(code, params)


def sentences(messages: Iterable[Message], translate: Callable[[str], str] = str) -> str:
    """Several messages after one another."""
    return " ".join(message.in_words(translate) for message in messages)


def to_json(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Plain values, from which `from_json` reads the same messages."""
    return [_plain(message) for message in messages]


def from_json(stored: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Raises KeyError where one names no template that is known here."""
    return tuple(_read(entry) for entry in stored)


def _filled_in(value: Param, translate: Callable[[str], str]) -> Param:
    if isinstance(value, Message):
        return value.in_words(translate)
    if isinstance(value, tuple):
        return "; ".join(message.in_words(translate) for message in value)
    return value


def _plain(value: Param) -> Any:
    if isinstance(value, Message):
        return {"code": value.code, "params": {name: _plain(one) for name, one in value.params.items()}}
    if isinstance(value, tuple):
        return to_json(value)
    return value


def _read(value: Any) -> Param:
    if isinstance(value, Mapping):
        if value["code"] not in TEMPLATES:
            raise KeyError(value["code"])
        return Message(value["code"], {name: _read(one) for name, one in value["params"].items()})
    return from_json(value) if isinstance(value, list) else value


TEMPLATES: dict[str, str] = {
    # What a plan can promise (planner).
    "outlook.labels": gettext_noop("About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s)."),
    "outlook.labels_taught": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): the first %(first)s teach the "
        "order of the steps, %(tested)s test it."
    ),
    "outlook.too_few": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): too few to certify %(share)s "
        "even if the models differ from people on none; at least %(least)s labels are needed."
    ),
    "outlook.no_draw": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): too few to certify %(share)s "
        "even if the models differ from people on none; no draw of this pool would do."
    ),
    "outlook.too_few_taught": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): the first %(first)s teach the "
        "order of the steps, %(tested)s test it, which is too few to certify %(share)s even if the models "
        "differ from people on none; at least %(least)s labels are needed."
    ),
    "outlook.no_draw_taught": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): the first %(first)s teach the "
        "order of the steps, %(tested)s test it, which is too few to certify %(share)s even if the models "
        "differ from people on none; no draw of this pool would do."
    ),
    "outlook.too_few_mean": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): too few to certify a mean "
        "loss of %(epsilon)s even if none shows a loss; at least %(least)s labels are needed."
    ),
    "outlook.no_draw_mean": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): too few to certify a mean "
        "loss of %(epsilon)s even if none shows a loss; no draw of this pool would do."
    ),
    "outlook.too_few_mean_taught": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): the first %(first)s teach the "
        "order of the steps, %(tested)s test it, which is too few to certify a mean loss of %(epsilon)s "
        "even if none shows a loss; at least %(least)s labels are needed."
    ),
    "outlook.no_draw_mean_taught": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s): the first %(first)s teach the "
        "order of the steps, %(tested)s test it, which is too few to certify a mean loss of %(epsilon)s "
        "even if none shows a loss; no draw of this pool would do."
    ),
    "outlook.p_on_average": gettext_noop("%(p)s on average"),
    "outlook.allowed": gettext_noop(
        "Thresholds with which the models differ from people on at most %(errors)s of these can be "
        "certified at %(share)s."
    ),
    "outlook.allowed_about": gettext_noop(
        "Thresholds with which the models differ from people on at most about %(errors)s of these can be "
        "certified at %(share)s."
    ),
    "outlook.allowed_mean": gettext_noop(
        "Thresholds with which the models show a mean loss of at most about %(mean)s among these can be "
        "certified at a mean loss of %(epsilon)s."
    ),
    # What is certified (targets).
    "dataset.differ": gettext_noop(
        "At most %(share)s of the labels in the delivered data set differ from the label that a person "
        "gave or would have given (epsilon = %(epsilon)s), with probability at least %(odds)s over the "
        "random draw (alpha = %(alpha)s)."
    ),
    "dataset.differ_of": gettext_noop(
        "At most %(share)s of the labels in the delivered data set of %(size)s items differ from the label "
        "that a person gave or would have given (epsilon = %(epsilon)s), with probability at least "
        "%(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.loss": gettext_noop(
        "At most %(share)s of the labels in the delivered data set differ, by the loss '%(loss)s', from "
        "the label that a person gave or would have given (epsilon = %(epsilon)s), with probability at "
        "least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.loss_of": gettext_noop(
        "At most %(share)s of the labels in the delivered data set of %(size)s items differ, by the loss "
        "'%(loss)s', from the label that a person gave or would have given (epsilon = %(epsilon)s), with "
        "probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.mean": gettext_noop(
        "The mean loss '%(loss)s' against the label that a person gave or would have given of the labels "
        "in the delivered data set is at most %(epsilon)s (epsilon), with probability at least %(odds)s "
        "over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.mean_of": gettext_noop(
        "The mean loss '%(loss)s' against the label that a person gave or would have given of the labels "
        "in the delivered data set of %(size)s items is at most %(epsilon)s (epsilon), with probability at "
        "least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.labelled_before": gettext_noop("People had labelled %(before)s of these items before the run."),
    "dataset.through_pool": gettext_noop(
        "This holds for the whole pool, also if the labels that people gave to the calibration set were "
        "left out."
    ),
    "dataset.people_are_right": gettext_noop(
        "Labels that people gave count as right; the part that no person labelled may exceed this share on "
        "its own."
    ),
    "pool.differ": gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, at most %(share)s of "
        "the labels of the pool differ from the label that a person gave or would have given (epsilon = "
        "%(epsilon)s), with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "pool.loss": gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, at most %(share)s of "
        "the labels of the pool differ, by the loss '%(loss)s', from the label that a person gave or would "
        "have given (epsilon = %(epsilon)s), with probability at least %(odds)s over the random draw "
        "(alpha = %(alpha)s)."
    ),
    "pool.mean": gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, the mean loss "
        "'%(loss)s' against the label that a person gave or would have given of the labels of the pool is "
        "at most %(epsilon)s (epsilon), with probability at least %(odds)s over the random draw (alpha = "
        "%(alpha)s)."
    ),
    "population.differ": gettext_noop(
        "With these thresholds a new item from the same source gets a label that differs from the label "
        "that a person gave or would have given with probability at most %(share)s (epsilon = "
        "%(epsilon)s), with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "population.loss": gettext_noop(
        "With these thresholds a new item from the same source gets a label that differs, by the loss "
        "'%(loss)s', from the label that a person gave or would have given with probability at most "
        "%(share)s (epsilon = %(epsilon)s), with probability at least %(odds)s over the random draw (alpha "
        "= %(alpha)s)."
    ),
    "population.mean": gettext_noop(
        "With these thresholds the expected loss '%(loss)s' against the label that a person gave or would "
        "have given of a new item from the same source is at most %(epsilon)s (epsilon), with probability "
        "at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "not_counted": gettext_noop("People's own mistakes are not counted."),
    # What is not, and what else a certificate says (certify).
    "nothing": gettext_noop("Nothing could be certified, so people label everything: %(reason)s."),
    "nothing.too_few": gettext_noop(
        "people were asked about %(asked)s items, and at least %(least)s are needed to certify anything"
    ),
    "nothing.no_step": gettext_noop("no step of a chain would save anything at these costs"),
    "nothing.errors": gettext_noop(
        "%(steps)s (with no error at all, %(least)s labels would have been enough)"
    ),
    "nothing.loss": gettext_noop("%(steps)s (with no loss at all, %(least)s labels would have been enough)"),
    "nothing.step": gettext_noop("the safest step of the chain '%(chain)s' already showed %(seen)s"),
    "nothing.seen_errors": gettext_noop("%(errors)s errors"),
    "nothing.seen_loss": gettext_noop("a total loss of %(loss)s"),
    "nothing.seen_taught": gettext_noop("%(seen)s, and %(more)s more among those that taught it"),
    "nothing.seen_limit": gettext_noop("%(seen)s, and at most %(allowed)s would have passed"),
    "blank_item": gettext_noop(
        "Nobody could label 1 item of the calibration set; each counted as an error wherever a model "
        "labels it, and is delivered blank where people should."
    ),
    "blank_items": gettext_noop(
        "Nobody could label %(blanks)s items of the calibration set; each counted as an error wherever a "
        "model labels it, and is delivered blank where people should."
    ),
    "people_only_is_cheaper": gettext_noop(
        "People only is cheaper: this run is expected to cost more than having people label every item."
    ),
    # The rules of the paper, for comparison (compare).
    "compare.rule": gettext_noop(
        "The rule '%(rule)s' of the paper does not hold its stated level: it can exceed %(epsilon)s more "
        "often than %(alpha)s of the time. For comparison only."
    ),
    "compare.scores": gettext_noop("Thresholds were looked for at %(tried)s of %(scores)s scores."),
    # Other rules on the same labels (baselines).
    "baseline.coannotating": gettext_noop(
        "The cheapest thresholds whose observed error is at most epsilon, without any bound."
    ),
    "baseline.cse": gettext_noop(
        "Each model labels what it is sure enough of by its own score; people label the rest."
    ),
    "baseline.people_only": gettext_noop("People label everything."),
    "baseline.best_single_model": gettext_noop(
        "The model with the fewest errors on the asked items labels everything."
    ),
    "baseline.pac_labeling": gettext_noop(
        "Model %(model)s labels where its own score is below one threshold, else people."
    ),
    "baseline.bargain": gettext_noop(
        "Model %(model)s labels what tests of one threshold after the other find right often enough, by its "
        "own score; people label the rest. It promises the error of what is delivered, at every sample size, "
        "where it chooses by itself what people label."
    ),
    "baseline.lotus": gettext_noop(
        "Model %(model)s labels where its own score is below one threshold, else people. It promises the "
        "error among the items that the model labels, in the limit of many labels."
    ),
    "baseline.not_its_labels": gettext_noop(
        "Here it was given the labels of this run, for which that promise does not hold."
    ),
    "baseline.counts": gettext_noop(
        "'%(baseline)s' counts right and wrong answers, so it needs a loss of 0 or 1"
    ),
    "baseline.drawn_alike": gettext_noop("'%(baseline)s' needs one probability of asking for all items"),
    "baseline.not_held": gettext_noop(
        "It does not hold the stated level for the error of what is delivered."
    ),
    "baseline.score_missing": gettext_noop(
        "'%(baseline)s' needs a score of every model itself, and model %(model)s has none (a column "
        "conf%(model)s or u%(model)s)"
    ),
    "baseline.own_score_missing": gettext_noop(
        "'%(baseline)s' needs a score of model %(model)s itself, and the table has none (a column "
        "conf%(model)s or u%(model)s)"
    ),
    "baseline.needs_binary": gettext_noop(
        "'%(baseline)s' uses the exact binomial test, which needs a loss of 0 or 1"
    ),
    "baseline.needs_constant_p": gettext_noop(
        "'%(baseline)s' uses the exact binomial test, which needs one probability of asking"
    ),
    "baseline.needs_a_model": gettext_noop("'best_single_model' needs a model"),
    "baseline.needs_models": gettext_noop("'%(baseline)s' needs %(models)s models; the table has %(there)s"),
    "baseline.run_score_missing": gettext_noop(
        "it needs an own score of a later model on every item that it looks at, and there is none"
    ),
    "baseline.run_score_in_part": gettext_noop(
        "it needs an own score of a later model on every item that it looks at, and where the "
        "probabilities of asking vary, later models answered only for the drawn items that people were "
        "asked about"
    ),
    # What a plan cannot be (plan).
    "plan.epsilon": gettext_noop(
        "epsilon = %(value)s: the share of labels that may differ from people's must lie between 0 and 1, "
        "both excluded; 0.05 is 5 %%"
    ),
    "plan.alpha": gettext_noop(
        "alpha = %(value)s: the probability of a false certificate must lie between 0 and 1, both "
        "excluded; 0.05 is 5 %%"
    ),
    "plan.p": gettext_noop("p = %(value)s: the probability of asking people must be above 0 and at most 1"),
    "plan.split_share": gettext_noop(
        "split_share = %(value)s: the part of the labels that teaches the chain must lie between 0 and 1, "
        "both excluded; 0.3 is 30 %%"
    ),
    "plan.p_min": gettext_noop(
        "the smallest probability of asking people is %(least)s and their mean %(mean)s: the smallest must "
        "be above 0 and at most the mean"
    ),
    "plan.magnitude": gettext_noop(
        "%(field)s: %(number)s is too large or too small; give 0, or 1e-%(most)s to 1e%(most)s"
    ),
    "plan.size": gettext_noop("%(field)s = %(value)s must be a whole number of at least 1, at most %(most)s"),
    "plan.m_above_pool": gettext_noop(
        "m = %(m)s items cannot be drawn from a pool of %(pool)s; choose m at most %(pool)s or import more "
        "items"
    ),
    "plan.pilot": gettext_noop(
        "the items of a pilot must be a whole number between 0 and the pool's %(pool)s, not %(value)s"
    ),
    "plan.nothing_left": gettext_noop(
        "for the target 'population' thresholds are learnt from items outside the calibration set: m = "
        "%(m)s and a pilot of %(pilot)s leave none of %(pool)s; choose a smaller m or import more items"
    ),
    "plan.no_label": gettext_noop("m p = %(labels)s: fewer than one label is expected; choose a larger m"),
    "plan.data_set": gettext_noop(
        "a data set of %(size)s items must hold the %(pool)s of the pool; give the number of both "
        "together, or leave it out"
    ),
    "plan.data_set_target": gettext_noop(
        "items that people labelled earlier count for the target 'dataset' only, not for '%(target)s'; "
        "leave the size of the data set out"
    ),
    "plan.sources": gettext_noop("a run needs at least two sources: a model and people, people last"),
    "plan.cost": gettext_noop("the cost per label of source %(source)s is %(cost)s; it cannot be negative"),
    "plan.people_cost": gettext_noop(
        "the cost per label of people is 0: there is nothing to save; give it a price"
    ),
    "plan.order": gettext_noop(
        "source %(source)s costs %(cost)s per label, source %(before)s before it %(cost_before)s: sources "
        "should come cheapest first"
    ),
    # What a rule or bound cannot do.
    "rule.comparison": gettext_noop(
        "the rule '%(rule)s' does not hold its stated level and is offered as a comparison only; use "
        "'fixed_sequence'"
    ),
    "rule.constant_p": gettext_noop(
        "the rule '%(rule)s' needs one probability of asking for all items, so that the rest of the asked "
        "items is a simple random sample; use 'fixed_sequence'"
    ),
    "bound.constant_p_for": gettext_noop(
        "the bound '%(bound)s' needs one probability of asking for all items for the target '%(target)s'; "
        "use '%(use)s'"
    ),
    "bound.constant_p": gettext_noop(
        "the bound '%(bound)s' needs one probability of asking for all items; use '%(use)s'"
    ),
    "bound.binary": gettext_noop("the bound '%(bound)s' needs a loss of 0 or 1; use '%(use)s'"),
    "bound.paper": gettext_noop(
        "the bound '%(bound)s' is there to reproduce the paper and never certifies; use '%(use)s'"
    ),
    "bound.limit": gettext_noop(
        "the bound '%(bound)s' holds only in the limit of many labels and cannot certify anything; use "
        "'%(use)s'"
    ),
    "bound.population": gettext_noop(
        "the bound '%(bound)s' is for the target 'population', not '%(target)s'; use '%(use)s'"
    ),
    "bound.independent": gettext_noop(
        "the bound '%(bound)s' is for the target 'population', where rows are independent, not for "
        "'%(target)s'; use '%(use)s'"
    ),
    "bound.finite": gettext_noop(
        "the bound '%(bound)s' is for a finite pool, not for 'population'; use '%(use)s'"
    ),
}
