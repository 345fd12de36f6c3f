"""Models whose answers came with the data are found by their columns, and only they."""

from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.errors import InputError
from annotation.models import Project
from routing.sources.suggested import add_suggested, suggested_sources
from testbed.factories import make_items, make_project

pytestmark = pytest.mark.django_db

CELLS = {"pred1": "cat", "conf1": "0.8", "cost1": "2", "pred2": "dog", "conf2": "0.9", "cost2": "1"}


def project_with(cells: dict[str, str], *, items: int = 20, **fields) -> Project:
    project = make_project(**fields)
    make_items(project, items, data={"text": "x", **cells})
    Project.objects.filter(pk=project.pk).update(columns=["text", *cells])
    project.refresh_from_db()
    return project


def test_numbered_columns_are_models_and_the_cheaper_one_comes_first():
    found = suggested_sources(project_with(CELLS))
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
            {"fast_label": "cat", "fast_label_conf": "0.5"},
            "Fast",
            {"label_column": "fast_label", "confidence_column": "fast_label_conf"},
        ),
    ],
)
def test_names_of_columns(cells, name, params):
    (found,) = suggested_sources(project_with(cells))
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
    ],
)
def test_what_is_no_model_is_not_suggested(cells):
    assert suggested_sources(project_with(cells)) == []


def test_a_confidence_that_is_none_is_left_out():
    (found,) = suggested_sources(project_with({"pred1": "cat", "conf1": "87"}))
    assert found.params == {"label_column": "pred1"}
    assert not found.has_score


def test_a_model_that_is_sure_of_nothing_comes_after_those_that_say_so():
    cells = {"pred1": "cat", "cost1": "1", "pred2": "dog", "conf2": "0.9", "cost2": "5"}
    assert [one.name for one in suggested_sources(project_with(cells))] == ["Model 2", "Model 1"]


def test_added_models_are_sources_and_not_suggested_again():
    project = project_with(CELLS)
    added = add_suggested(
        project=project, user=project.created_by, prices={"pred1": Decimal(2), "pred2": Decimal("0.5")}
    )
    assert [(source.name, source.position, source.backend, source.cost_per_label) for source in added] == [
        ("Model 2", 1, "recorded", Decimal("0.5")),
        ("Model 1", 2, "recorded", Decimal(2)),
    ]
    assert suggested_sources(project) == []
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
        "suggested-price-0": "2",
        "suggested-column-1": "pred2",
        "suggested-use-1": "on",
        "suggested-price-1": "",
    }
    address = reverse("source_suggested", args=[project.slug])
    refused = client.post(address, fields)
    assert "Say what one label by Model 2 costs; 0 is possible." in refused.content.decode()
    assert not project.sources.exists()
    del fields["suggested-use-1"]
    assert client.post(address, fields).status_code == 302
    assert [source.name for source in project.sources.all()] == ["Model 1"]
    page = client.get(reverse("sources", args=[project.slug])).content.decode()
    assert "Your data holds the answers of 1 model<" in page
