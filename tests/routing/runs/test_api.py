"""The API and the administration of runs: what they show, and when."""

import json
import re

import pytest
from django.contrib import admin
from django.urls import reverse

from routing.models import Run
from testbed.factories import add_member, make_user
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def get(client, user, name, **kwargs):
    client.force_login(user)
    return client.get(reverse(name, kwargs=kwargs))


def test_before_the_analysis_nothing_that_it_will_find_is_in_any_answer(client):
    world = make_world(100)
    world.calibrated(m=40)
    slug = world.project.slug
    words = ("threshold", "errors", "saving", "certificate", "sentence", "entropy", "salt", "chain")
    for name, kwargs in (
        ("api_runs", {}),
        ("api_run", {"number": 1}),
        ("api_sources", {}),
        ("api_overview", {}),
    ):
        response = get(client, world.manager, name, slug=slug, **kwargs)
        assert response.status_code == 200
        found = [word for word in words if f'"{word}' in response.content.decode()]
        assert not found
    for name in ("api_run_certificate", "api_run_draw"):
        assert get(client, world.manager, name, slug=slug, number=1).status_code == 404


def test_after_the_analysis_the_run_tells_what_was_found(client):
    world = make_world(100)
    run = world.complete(m=40)
    slug = world.project.slug
    body = get(client, world.manager, "api_run", slug=slug, number=1).json()
    assert body["state"] == "complete"
    assert body["certificate"]["id"] == run.certificate.sha256
    assert body["certificate"]["thresholds"] == run.certificate.thresholds
    assert body["certificate"]["own_scores"] is False
    assert sum(count["items"] for count in body["labels_by_source"]) == 100
    assert body["savings_final"] is True
    content = get(client, world.manager, "api_run_certificate", slug=slug, number=1).content
    assert content.decode() == run.certificate.document
    lines = get(client, world.manager, "api_run_draw", slug=slug, number=1).content.splitlines()
    assert len([json.loads(line) for line in lines]) == 40


def test_who_may_see_what(client):
    world = make_world(100)
    world.analysed(m=40)
    slug = world.project.slug
    annotator, reviewer, viewer = (
        add_member(world.project, role) for role in ("annotator", "reviewer", "viewer")
    )
    assert get(client, annotator, "api_run", slug=slug, number=1).status_code == 403
    assert get(client, reviewer, "api_run", slug=slug, number=1).status_code == 200
    assert get(client, reviewer, "api_run_draw", slug=slug, number=1).status_code == 403
    assert get(client, viewer, "api_run_draw", slug=slug, number=1).status_code == 200
    assert get(client, make_user("stranger"), "api_run", slug=slug, number=1).status_code == 404
    assert get(client, viewer, "api_run", slug=slug, number=2).status_code == 404


def _pages():
    return [page for model, page in admin.site._registry.items() if model._meta.app_label == "routing"]


def test_the_administration_lists_everything_and_changes_nothing(client):
    world = make_world(100)
    world.complete(m=40)
    chief = make_user("chief", is_staff=True, is_superuser=True)
    client.force_login(chief)
    for page in _pages():
        meta = page.model._meta
        rows = page.model.objects.all()
        assert client.get(reverse(f"admin:routing_{meta.model_name}_changelist")).status_code == 200
        if row := rows.first():
            change = reverse(f"admin:routing_{meta.model_name}_change", args=[row.pk])
            assert client.get(change).status_code == 200
            assert client.post(change, {}).status_code == 403
        assert client.get(reverse(f"admin:routing_{meta.model_name}_add")).status_code == 403


def test_the_administration_is_blind_while_a_run_is_open(client, rf):
    world = make_world(100)
    world.start(m=40)
    world.do("prepare_run")
    chief = make_user("chief", is_staff=True, is_superuser=True)
    request = rf.get("/admin/")
    request.user = chief
    shown = {page.model.__name__: page.get_queryset(request).count() for page in _pages()}
    for name in ("Prediction", "ItemScore", "PoolItem", "PilotItem", "DrawItem"):
        assert shown[name] == 0
    client.force_login(chief)
    world.label(limit=5)
    for name in ("workitem", "label"):
        page = client.get(reverse(f"admin:annotation_{name}_changelist")).content.decode()
        assert re.search(r"\b0 (work items|labels)\b", page), name
    item = world.project.items.first()
    page = client.get(reverse("admin:annotation_item_change", args=[item.pk])).content.decode()
    assert item.text in page
    assert "model1" not in page
    run = Run.objects.get()
    page = client.get(reverse("admin:routing_run_change", args=[run.pk])).content.decode()
    assert run.salt not in page
