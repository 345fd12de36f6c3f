"""The plan page without a browser: menus, parameters, refusals beside their field, and the live parts."""

import re
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.labelling import queue
from annotation.models import Choice, Item
from routing.models import Run
from routing.runs import plan as plans
from routing.runs.cancel import cancel_run
from routing.runs.forms import PARTS, PlanForm
from routing.runs.pool import labelled_already
from testbed.factories import make_items, make_project
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PLAN = {"epsilon": "10", "alpha": "10", "target": "dataset", "m": "60", "p": "0.9"}


@pytest.fixture
def world() -> World:
    world = make_world(150)
    items = list(world.project.items.order_by("position"))
    for number, item in enumerate(items):
        item.data["ask"] = ("0.9", "0.6")[number % 2]
    Item.objects.bulk_update(items, ["data"])
    world.project.columns = [*world.project.columns, "ask"]
    world.project.save()
    return world


@pytest.fixture
def client(world, client_of):
    return client_of(world.manager)


def page_of(client, world: World, **data: str) -> str:
    url = reverse("plan", args=[world.project.slug])
    answer = client.post(url, data) if data else client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


def live(client, world: World, **data: str) -> str:
    answer = client.get(reverse("plan_outlook", args=[world.project.slug]), data)
    assert answer.status_code == 200
    return answer.content.decode()


def element(page: str, id_: str) -> str:
    """The words of an element, without its tags."""
    inner = re.search(rf'<(\w+)[^>]*\bid="{id_}"[^>]*>(.*?)</\1>', page, re.DOTALL)
    assert inner, id_
    return re.sub(r"<[^>]+>", " ", inner[2]).strip()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"epsilon": "5"}, "5 %: of 100 delivered labels at most 5 may differ"),
        ({"epsilon": "0,5 %"}, "0.5 %: of 1,000 delivered labels at most 5 may differ"),
        ({"epsilon": "nonsense"}, "5 %: of 100 delivered labels at most 5 may differ"),
        ({"alpha": "2"}, "2 %: of 100 such draws at most 2 may lead"),
        ({"p": "0.9"}, "0.9: of 100 drawn items people are asked about 90 on average"),
        ({"p": "1"}, "1: people label every drawn item"),
    ],
)
def test_the_help_says_what_is_typed(client, world, typed: dict[str, str], said: str) -> None:
    answer = live(client, world, **PLAN | typed)
    (name,) = typed
    assert element(answer, f"id_{name}_helptext").replace("\N{NO-BREAK SPACE}", " ").startswith(said)


@pytest.mark.parametrize("way", [page_of, live])
@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ({"epsilon": "0", "m": "9999", "p": "2"}, ["epsilon", "m", "p"]),
        ({"m": "9999", "p": "0", "split_share": "0.5", "budget": "x"}, ["m", "p", "split_share", "budget"]),
        ({"m": "9999", "p": "0.9", "p_column": "ask"}, ["m", "p"]),
        ({"alpha": "", "bound": "binomial"}, ["alpha", "bound"]),
    ],
)
def test_all_that_is_wrong_is_told_at_once(client, world, way, typed, wrong, monkeypatch) -> None:
    monkeypatch.setattr(plans, "usability_of_sources", None)  # for that nothing is counted
    page = way(client, world, **PLAN | typed)
    folded_out = set(re.findall(r'id="part-(\w+)" open', page))
    assert folded_out == {part for part, names in PARTS.items() if way is page_of and {*names} & {*wrong}}
    assert "items and a model" not in page
    assert ("As soon as these fields are right" in page) == (way is page_of)
    assert [
        name
        for name in PlanForm.base_fields
        if f'id="id_{name}_error"' in page and element(page, f"id_{name}_error")
    ] == wrong


def test_every_option_has_a_title_and_a_sentence(client, world) -> None:
    page = page_of(client, world)
    for name in ("target", "rule", "bound", "loss", "score"):
        options = re.findall(rf'name="{name}" value="([^"]*)" id="id_{name}_(\d+)"', page)
        assert options, name
        for _value, number in options:
            assert element(page, f"about-{name}-{number}"), (name, number)
    values = set(re.findall(r'name="(?:rule|bound)" value="([^"]*)"', page))
    assert values.isdisjoint({"pointwise_argmin", "lexicographic", "clt", "betting"})
    assert {"fixed_sequence", "multi_chain", "split_fixed_sequence", "betting_upper", ""} <= values


def test_a_refusal_stands_beside_its_field_and_keeps_what_was_chosen(client, world) -> None:
    page = page_of(client, world, **PLAN, bound="binomial", rule="multi_chain")
    assert "use &#x27;hypergeometric&#x27;" in element(page, "id_bound_error")
    assert re.search(r'value="binomial"[^>]*checked', page)
    assert re.search(r'value="multi_chain"[^>]*checked', page)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("typed", "read", "shown"),
    [
        ("5", "0.05", "5"),
        ("8 %", "0.08", "8"),
        (" 2.5% ", "0.025", "2.5"),
        ("8 \N{NO-BREAK SPACE}%", "0.08", "8"),
        ("2,5", "0.025", "2,5"),
        ("0,5 %", "0.005", "0,5 %"),
    ],
)
def test_a_promise_is_typed_in_percent(typed, read, shown) -> None:
    form = PlanForm({**PLAN, "epsilon": typed}, project=make_project())
    assert form.is_valid(), form.errors
    assert form.cleaned_data["epsilon"] == Decimal(read)
    assert form["epsilon"].value() == shown  # beside the fixed sign; it is read the same again


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("0.5", "Do you mean 0.5 % or 50 %?"),
        ("0,05", "Do you mean 0.05 % or 5 %?"),
        (".001", "Do you mean 0.001 % or 0.1 %?"),
    ],
)
def test_a_bare_number_below_one_is_asked_about_and_never_guessed(typed, asked) -> None:
    form = PlanForm({**PLAN, "alpha": typed}, project=make_project())
    assert asked in str(form.errors["alpha"])


def test_a_promise_begins_in_percent() -> None:
    form = PlanForm(None, project=make_project())
    assert (form["epsilon"].value(), form.initial_values()["epsilon"]) == ("5", Decimal("0.05"))


def test_other_shares_may_be_typed_in_percent_too() -> None:
    form = PlanForm({**PLAN, "p": "8 %"}, project=make_project())
    assert form.is_valid(), form.errors
    assert form.cleaned_data["p"] == Decimal("0.08")


@pytest.mark.parametrize("typed", ["%", "x %", "5 %%", "nan %", "1,000.5", "100", "0", "0 %", "-1", "5;"])
def test_what_is_no_share_in_percent_is_said_so(typed) -> None:
    assert "epsilon" in PlanForm({**PLAN, "epsilon": typed}, project=make_project()).errors


def test_what_a_start_freezes_is_there_for_the_dialog_once_nothing_is_left_to_confirm(client, world) -> None:
    part = live(client, world, **PLAN)
    asked = re.search(r'<template id="what-starts">(.*?)</template>', part, re.DOTALL)
    assert asked
    assert "10\N{NO-BREAK SPACE}%" in asked[1]
    assert "10 %" not in asked[1]
    words = " ".join(re.sub(r"<[^>]+>", " ", asked[1]).split())
    assert "150 items" in words
    assert "Model 0, Model 1" in words or "Model 1" in words
    assert "no limit" in words
    hopeless = PLAN | {"epsilon": "1 %", "alpha": "1"}
    assert 'id="what-starts"' not in live(client, world, **hopeless)  # the server asks first
    assert 'id="what-starts"' in live(client, world, **hopeless, anyway="on")
    assert 'data-ask-more="what-starts"' in page_of(client, world)


def test_the_dialog_says_what_earlier_draws_have_spent(client, world) -> None:
    assert "Alpha spent by earlier draws" not in live(client, world, **PLAN)
    run = world.start(m=20, alpha=Decimal("0.03"))
    world.do("prepare_run")
    cancel_run(run=run, user=world.manager)
    part = live(client, world, **PLAN)
    assert "Alpha spent by earlier draws on these items</dt><dd>3\xa0%" in part


def test_the_live_parts_follow_what_is_chosen(client, world) -> None:
    part = live(client, world, **PLAN | {"target": "population"})
    assert "Exact count for new items" in element(part, "about-bound-0")
    assert "population" in element(part, "why-bound-1")
    assert element(part, "why-bound-2") == ""
    part = live(client, world, **PLAN | {"p": "", "p_column": "ask", "rule": "split_fixed_sequence"})
    assert "one probability" in element(part, "why-rule-4")
    assert "one probability" in element(part, "id_rule_error")
    part = live(client, world, **PLAN | {"p_column": "ask"})
    assert "Leave the probability" in element(part, "id_p_error")
    assert 'hx-swap-oob="true"' in part


def test_the_parts_of_a_form_that_is_not_even_filled_in(client, world) -> None:
    part = live(client, world)
    assert "required" in element(part, "id_epsilon_error")
    assert "required" in element(part, "outlook")


def test_a_plan_with_everything_chosen_starts(client, world) -> None:
    chosen = PLAN | {
        "target": "pool",
        "rule": "split_fixed_sequence",
        "split_share": "0.4",
        "bound": "hoeffding_bentkus",
        "loss": "zero_one",
        "score": "recorded",
        "p_column": "",
        "anyway": "on",
    }
    answer = client.post(reverse("plan", args=[world.project.slug]), chosen)
    assert answer.status_code == 302
    run = Run.objects.get()
    assert (run.target, run.rule, run.bound, str(run.split_share)) == (
        "pool", "split_fixed_sequence", "hoeffding_bentkus", "0.40000000")  # fmt: skip


def without_scores(world: World, **params: str) -> None:
    world.project.sources.filter(position=1).update(params={"label_column": "model1", **params})


@pytest.mark.parametrize("column", [{}, {"confidence_column": "text"}])
def test_nothing_is_promised_where_no_answer_of_the_first_source_can_be_used(client, world, column) -> None:
    assert "Can be certified" in live(client, world, **PLAN)
    without_scores(world, **column)
    part = live(client, world, **PLAN)
    assert "No usable score" in part
    assert "badge good" not in element(part, "outlook")
    assert "Can be certified" not in part
    assert "can be certified at" not in part
    assert "comes first" in part
    seen = client.post(
        f"/api/v1/projects/{world.project.slug}/plan/",
        PLAN | {"epsilon": "0.1", "alpha": "0.1", "m": 60},
        content_type="application/json",
    ).json()
    assert seen["certifiable"] is False
    assert "No answer of the first source has a usable score" in seen["sentence"]


def test_the_number_of_labels_is_told_once_and_the_same(client, world) -> None:
    outlook = element(live(client, world, **PLAN | {"m": "61", "p": "0.98"}), "outlook")  # m p = 59.78
    assert "About 59 of 61" in outlook
    assert re.search(r"calibration\s+about 59\b", outlook)


def test_columns_that_hold_no_probability_are_not_offered(client, world) -> None:
    menu = re.search(r'<select name="p_column".*?</select>', page_of(client, world), re.DOTALL)[0]
    assert re.findall(r'value="([^"]+)"', menu) == ["confidence1", "confidence2", "ask"]
    part = live(client, world, **PLAN | {"p": "", "p_column": "text"})
    assert "holds no probability" in element(part, "id_p_column_error")


def test_a_column_of_probabilities_is_chosen_in_place_of_one(client, world) -> None:
    chosen = PLAN | {"p": "", "p_column": "ask", "target": "pool", "bound": "hoeffding", "anyway": "on"}
    assert client.post(reverse("plan", args=[world.project.slug]), chosen).status_code == 302
    assert Run.objects.get().p_column == "ask"
    page = client.get(reverse("run_plan", args=[world.project.slug, 1])).content.decode()
    assert "with the probability in the column ask; 0.6 at the least, 0.75 on average" in page
    assert "Right or wrong (zero_one)" in page
    assert "Recorded confidence (recorded)" in page


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("", {}),
        ("absolute = 0.5", {"absolute": "0.5"}),
        ("absolute=1\n\n relative = 0.10 ", {"absolute": 1, "relative": "0.10"}),
        ('scores = ["a", "b"]', {"scores": ["a", "b"]}),
        ("ignore_case = false", {"ignore_case": False}),
        ("absolute = NaN", {"absolute": "NaN"}),
        (f"deep = {'[' * 1900}", {"deep": "[" * 1900}),
        ("name = plain words = here", {"name": "plain words = here"}),
        ('{"absolute": "0.5"}', {"absolute": "0.5"}),
    ],
)
def test_parameters_are_lines_or_json(typed, read) -> None:
    form = PlanForm({**PLAN, "loss_params": typed}, project=make_project())
    assert form.is_valid(), form.errors
    assert form.cleaned_data["loss_params"] == read


@pytest.mark.parametrize("typed", ["absolute", "= 1", "absolute =", '{"absolute": ', '{"a"}', '{"a": NaN}'])
def test_parameters_that_cannot_be_read_are_said_so(typed, client, world) -> None:
    page = page_of(client, world, **PLAN, loss_params=typed)
    assert element(page, "id_loss_params_error")
    assert not Run.objects.exists()


def test_a_tolerance_is_offered_for_labels_that_are_numbers(client, world) -> None:
    assert 'name="loss" value="numeric"' not in page_of(client, world)
    for key, choice in zip("123", Choice.objects.order_by("position"), strict=True):
        Choice.objects.filter(pk=choice.pk).update(key=key)
    page = page_of(client, world)
    assert 'name="loss" value="numeric"' in page
    part = live(client, world, **PLAN, loss="numeric", loss_params="absolute = -1")
    assert "largest difference" in element(part, "id_loss_params_helptext")
    assert "at least 0" in element(part, "id_loss_params_error")


def test_a_project_without_a_source_has_no_scores_to_choose(client_of) -> None:
    project = make_project()
    make_items(project, 3)
    page = client_of(project.created_by).get(reverse("plan", args=[project.slug])).content.decode()
    assert "There is no model yet." in page
    assert 'type="radio" name="score"' not in page


def test_hours_are_told_beside_money_and_named_as_assumed_or_measured(client, world) -> None:
    outlook = element(live(client, world, **PLAN | {"m": "100", "seconds": "36"}), "outlook")
    assert re.search(r"People, calibration\s+720.00\W+USD\s+54 min", outlook)  # 90 labels of 36 s
    assert re.search(r"People for everything\s+1,200.00\W+USD\s+1 h 30 min", outlook)
    assert "36 s for a label, which is assumed" in outlook
    assert "assumption" in element(page_of(client, world), "id_seconds_helptext")
    world.start(m=40)
    world.do("prepare_run")
    user = world.annotators[0]
    for number in range(12):
        task = queue.claim(project=world.project, user=user)
        queue.submit(
            user=user,
            work_item_id=task.work_item.pk,
            token=task.token,
            value="cat",
            idempotency_key=f"timed-{number}",
            lead_time_ms=7_000 if number % 3 else 90_000,
        )
    page = page_of(client, world)
    assert "Measured here" in element(page, "id_seconds_helptext")
    assert re.search(r'name="seconds" value="7"', page)


def test_seconds_that_cannot_be_are_refused_and_no_part_of_the_plan(client, world) -> None:
    assert element(live(client, world, **PLAN | {"seconds": "0"}), "id_seconds_error")
    answer = client.post(reverse("plan", args=[world.project.slug]), PLAN | {"seconds": "20", "anyway": "on"})
    assert answer.status_code == 302


def test_a_second_plan_begins_with_a_draw_that_fits(client_of) -> None:
    """Most items have a label from the first run: what is left is less than a plan begins with else."""
    world = make_world(120)
    world.complete(m=60, p=Decimal(1))
    labelled = labelled_already(world.project)
    left = 120 - labelled
    assert 0 < left < 100
    page = page_of(client_of(world.manager), world)
    assert "cannot be drawn from a pool" not in page
    assert f'value="{left}"' in page
    assert f"{labelled} items have their labels from people already" in page
    assert "What do I get?" in page
    promises = page.split('id="promises"')[1].split("</table>")[0]
    assert promises.count("nearly everything to people") == promises.count("<tr") - 1, "they draw all of it"
    assert "Give a size" not in page
