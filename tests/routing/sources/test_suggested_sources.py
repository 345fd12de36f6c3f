"""Models whose answers came with the data are found by their columns, and only they."""

import re
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.errors import InputError
from annotation.models import Item, Project
from routing.sources import suggested
from routing.sources.manage import save_source
from routing.sources.suggested import (
    add_suggested,
    found_models,
)
from routing.sources.usability import usability_of
from testbed.factories import make_items, make_project
from testbed.worlds import make_world

pytestmark = pytest.mark.django_db

CELLS = {"pred1": "cat", "conf1": "0.8", "cost1": "2", "pred2": "dog", "conf2": "0.9", "cost2": "1"}


def project_with(cells: dict[str, str], *, items: int = 20, **fields) -> Project:
    project = make_project(**fields)
    make_items(project, items, data={"text": "x", **cells})
    Project.objects.filter(pk=project.pk).update(columns=["text", *cells])
    project.refresh_from_db()
    return project


def test_numbered_columns_are_models_and_the_cheaper_one_comes_first():
    found = found_models(project_with(CELLS)).sound
    assert [(one.name, one.cost, one.params) for one in found] == [
        (
            "Model 2",
            Decimal(1),
            {"label_column": "pred2", "confidence_column": "conf2", "cost_column": "cost2"},
        ),
        (
            "Model 1",
            Decimal(2),
            {"label_column": "pred1", "confidence_column": "conf1", "cost_column": "cost1"},
        ),
    ]


@pytest.mark.parametrize(
    ("cells", "name", "params"),
    [
        (
            {"fast_label": "cat", "fast_uncertainty": "0.2", "fast_prompt_tokens": "9", "fast_tokens": "3"},
            "Fast",
            {
                "label_column": "fast_label",
                "uncertainty_column": "fast_uncertainty",
                "tokens_in_column": "fast_prompt_tokens",
                "tokens_out_column": "fast_tokens",
            },
        ),
        (
            {"predictionGPT": "cat", "confidenceGPT": "1"},
            "GPT",
            {"label_column": "predictionGPT", "confidence_column": "confidenceGPT"},
        ),
        (
            {"prediction": "cat", "probability": "0.5"},
            "Model",
            {"label_column": "prediction", "confidence_column": "probability"},
        ),
        (
            {"guess": "cat", "guess_conf": "0.5", "guess_tokens": "7"},
            "Model",
            {"label_column": "guess", "confidence_column": "guess_conf", "tokens_out_column": "guess_tokens"},
        ),
        (
            {"bert": "cat", "bert_prob": "0.5", "bert_cost": "1"},
            "Bert",
            {"label_column": "bert", "confidence_column": "bert_prob", "cost_column": "bert_cost"},
        ),
        (
            {"topic": "cat", "topic_score": "0.5"},
            "Topic",
            {"label_column": "topic", "confidence_column": "topic_score"},
        ),
        (
            {"small_model": "cat", "small_conf": "0.5", "small_cost": "2"},
            "Small",
            {"label_column": "small_model", "confidence_column": "small_conf", "cost_column": "small_cost"},
        ),
        (
            {"fast_label": "cat", "fast_label_conf": "0.5"},
            "Fast",
            {"label_column": "fast_label", "confidence_column": "fast_label_conf"},
        ),
    ],
)
def test_names_of_columns(cells, name, params):
    (found,) = found_models(project_with(cells)).sound
    assert (found.name, found.params, found.has_score) == (name, params, True)


@pytest.mark.parametrize(
    "cells",
    [
        {"label": "cat"},  # what people said, most likely
        {"gold_label": "cat", "gold_confidence": "1"},
        {"y_true": "cat"},
        {"pred1": "horse", "conf1": "0.5"},  # no label of the project
        {"pred1": "", "conf1": "0.5"},
        {"conf1": "0.5", "cost1": "3"},
        {"topic": "cat", "topic_score": "4.5"},  # no share
        {"wine": "a long note on how it tastes " * 3, "wine_score": "0.9"},
        {"gold_topic": "cat", "gold_topic_score": "0.5"},
    ],
)
def test_what_is_no_model_is_not_suggested(cells):
    assert found_models(project_with(cells)).sound == []


def test_what_only_has_a_score_is_not_called_a_model_whose_answers_are_no_labels():
    project = project_with({"wine": "riesling dry white " * 5, "wine_score": "0.9", "year_score": "0.1"})
    assert found_models(project).doubtful == []


def test_a_confidence_that_is_none_is_left_out():
    (found,) = found_models(project_with({"pred1": "cat", "conf1": "87"})).sound
    assert found.params == {"label_column": "pred1"}
    assert not found.has_score


def test_a_model_that_is_sure_of_nothing_comes_after_those_that_say_so():
    cells = {"pred1": "cat", "cost1": "1", "pred2": "dog", "conf2": "0.9", "cost2": "5"}
    assert [one.name for one in found_models(project_with(cells)).sound] == ["Model 2", "Model 1"]


def test_added_models_are_sources_and_not_suggested_again():
    project = project_with(CELLS)
    added = add_suggested(
        project=project, user=project.created_by, prices={"pred1": Decimal(2), "pred2": Decimal("0.5")}
    )
    assert [(source.name, source.position, source.backend, source.cost_per_label) for source in added] == [
        ("Model 2", 1, "recorded", Decimal("0.5")),
        ("Model 1", 2, "recorded", Decimal(2)),
    ]
    assert found_models(project).sound == []
    with pytest.raises(InputError, match="used by a source already"):
        add_suggested(project=project, user=project.created_by, prices={"pred1": Decimal(2)})


def test_the_page_offers_them_and_adds_those_that_are_ticked(client):
    project = project_with({**CELLS, "cost2": ""})
    client.force_login(project.created_by)
    page = client.get(reverse("sources", args=[project.slug])).content.decode()
    assert "Your data holds the answers of 2 models" in page
    fields = {
        "suggested-column-0": "pred1",
        "suggested-use-0": "on",
        "suggested-name-0": " Small one ",
        "suggested-price-0": "2",
        "suggested-column-1": "pred2",
        "suggested-use-1": "on",
        "suggested-name-1": "Model 2",
        "suggested-price-1": "",
    }
    address = reverse("source_suggested", args=[project.slug])
    refused = client.post(address, fields)
    assert "Say what one label by Model 2 costs; 0 is possible." in refused.content.decode()
    assert not project.sources.exists()
    del fields["suggested-use-1"]
    assert client.post(address, fields).status_code == 302
    assert [source.name for source in project.sources.all()] == ["Small one"]
    page = client.get(reverse("sources", args=[project.slug])).content.decode()
    assert "Your data holds the answers of 1 model<" in page


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("Same", "Same"), "Another source has this name."),
        (("Taken", "Other"), "Another source has this name."),
        (("", "Other"), "Say how it is to be called."),
    ],
)
def test_each_that_is_used_needs_a_name_of_its_own(client, names, said):
    project = project_with(CELLS)
    save_source(
        project=project,
        user=project.created_by,
        name="Taken",
        backend="uploaded",
        params={"model": "house-7b", "revision": "1"},
        cost_per_label=Decimal(1),
    )
    client.force_login(project.created_by)
    address = reverse("source_suggested", args=[project.slug])
    fields = {}
    for number, column in enumerate(("pred1", "pred2")):
        fields |= {
            f"suggested-column-{number}": column,
            f"suggested-use-{number}": "on",
            f"suggested-name-{number}": names[number],
            f"suggested-price-{number}": "1",
        }
    assert said in client.post(address, fields).content.decode()
    assert project.sources.count() == 1
    assert (
        client.post(address, {**fields, "suggested-name-0": "A", "suggested-name-1": "B"}).status_code == 302
    )
    assert [source.name for source in project.sources.order_by("position")] == ["Taken", "B", "A"]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            {"m_label": "CAT", "m_conf": "0.9"},
            "20 of 20 answers looked at are no labels of this project (“CAT”)",
        ),
        ({"m_label": "Shipping", "m_conf": "0.9"}, "(“Shipping”). Use it, and say on the next page"),
        ({"m_label": "cat", "m_conf": "abc"}, "“m_conf” is left out: 20 of 20 of its values are no numbers"),
        ({"m_label": "cat", "m_conf": "1.7"}, "are no numbers from 0 to 1 (“1.7”)"),
        ({"m_label": "cat"}, "does not say how sure it is, so it cannot be the first one"),
        ({"m_conf": "0.9"}, "“m_conf” seems to say how sure a model was, but no column holds its answers"),
    ],
)
def test_a_broken_column_says_what_is_wrong_where_and_what_to_do(client, cells, said):
    project = project_with(cells)
    client.force_login(project.created_by)
    assert said in client.get(reverse("sources", args=[project.slug])).content.decode()


def test_a_few_confidences_beyond_one_leave_the_column_and_fall_out_alone():
    project = project_with({"guess": "cat", "guess_conf": "0.9"}, items=40)
    for item, cell in zip(project.items.all(), ("1.7", "abc"), strict=False):
        item.data["guess_conf"] = cell
        item.save()
    (found,) = found_models(project).sound
    assert found.params["confidence_column"] == "guess_conf"
    assert "2 of 40 values of “guess_conf”" in found.doubts[0]
    assert "the others can" in found.doubts[0]
    (added,) = add_suggested(project=project, user=project.created_by, prices={"guess": Decimal(1)})
    assert usability_of(added).usable == 38


def test_some_confidences_that_are_none_are_named_and_the_column_is_read():
    project = project_with({"m_label": "cat", "m_conf": "0.9"})
    for item in project.items.all()[:3]:
        item.data["m_conf"] = "abc"
        item.save()
    (found,) = found_models(project).sound
    assert found.params["confidence_column"] == "m_conf"
    assert "3 of 20 values of “m_conf” are no numbers from 0 to 1 (“abc”)" in found.doubts[0]


def test_blanks_around_a_label_are_no_doubt():
    (found,) = found_models(project_with({"m_label": " cat ", "m_conf": "0.9"})).sound
    assert found.doubts == ()


def test_what_says_how_sure_a_source_is_misses_no_answers():
    project = project_with({"m_label": "cat", "m_conf": "1.7"})
    add_suggested(project=project, user=project.created_by, prices={"m_label": Decimal(1)})
    assert found_models(project).without_answers == []
    assert found_models(project_with({"rain_prob": "0.4", "score": "0.5"})).without_answers == []


def test_while_a_run_is_open_no_cell_is_repeated():
    world = make_world(40)
    items = list(world.project.items.all())
    for item in items:
        item.data |= {"m_label": "Shipping", "m_conf": "1.7"}
    Item.objects.bulk_update(items, ["data"])
    world.project.columns = [*world.project.columns, "m_label", "m_conf"]
    world.project.save()
    said = " ".join(doubt for one in found_models(world.project).doubtful for doubt in one.doubts)
    assert "“Shipping”" in said
    assert "“1.7”" in said
    world.start(m=20)
    hidden = " ".join(doubt for one in found_models(world.project).doubtful for doubt in one.doubts)
    assert "40 of 40 answers" in hidden
    assert "Shipping" not in hidden
    assert "1.7" not in hidden


def test_the_data_is_judged_once_as_models_are_added(client, monkeypatch):
    project = project_with({"m_label": "cat", "m_conf": "0.9"})
    client.force_login(project.created_by)
    judged = []
    whole = suggested._suggestions
    monkeypatch.setattr(suggested, "_suggestions", lambda *args, **kw: judged.append(1) or whole(*args, **kw))
    fields = {
        "suggested-column-0": "m_label",
        "suggested-use-0": "on",
        "suggested-name-0": "M",
        "suggested-price-0": "1",
    }
    assert client.post(reverse("source_suggested", args=[project.slug]), fields).status_code == 302
    assert project.sources.get().params["label_column"] == "m_label"
    assert len(judged) == 1


def test_one_that_is_used_with_doubts_leads_to_where_its_answers_are_mended(client):
    project = project_with({"m_label": "Shipping", "m_conf": "0.9"})
    client.force_login(project.created_by)
    page = client.get(reverse("sources", args=[project.slug])).content.decode()
    ticked = re.search(r'<input[^>]*name="suggested-use-0"[^>]*>', page)
    assert ticked
    assert "checked" not in ticked[0]
    fields = {
        "suggested-column-0": "m_label",
        "suggested-use-0": "on",
        "suggested-name-0": "M",
        "suggested-price-0": "1",
    }
    answer = client.post(reverse("source_suggested", args=[project.slug]), fields)
    source = project.sources.get()
    assert answer["Location"] == reverse("source_health", args=[project.slug, source.pk])
    page = client.get(answer["Location"]).content.decode()
    assert '<details class="card more" id="mend" open>' in page
    assert 'value="Shipping"' in page
