"""Candidate prompts on the pages and in the API, from the items to the prompt in force."""

import json
from typing import Any

import pytest
from django.urls import reverse

from annotation.jobs import jobs
from routing.held_out.manage import set_answer
from routing.models import PromptCandidate
from routing.sources.prompt_versions import prompt_in_force
from routing.workshop.candidates import (
    candidates_of,
    job_of,
)
from routing.workshop.development import (
    development_items,
)
from testbed.worlds import make_world
from tests.routing.runs.slow_loss import PATH, SLOW, compute_all
from tests.routing.workshop.workshop import Workshop, label_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


class TestPages:
    def test_the_way_from_items_to_the_prompt_in_force(self, workshop: Workshop, client_of: Any) -> None:
        client = client_of(workshop.project.created_by)

        def url(name: str, *more: int) -> str:
            return reverse(name, args=[workshop.project.slug, workshop.source.pk, *more])

        def page(name: str, *more: int, query: str = "") -> str:
            answered = client.get(url(name, *more) + query)
            assert answered.status_code == 200
            return answered.content.decode()

        assert "cannot be undone" in page("candidates")
        assert client.post(url("candidates"), {"size": "19"}).status_code == 200
        assert client.post(url("candidates"), {"size": "20"}).url == url("candidates_label")
        for one in development_items(workshop.project):
            set_answer(access=workshop.lead, held=one, answer=label_of(one.item))
        sent = {
            "system": "",
            "template": "Animal: {{ text }}",
            "max_tokens": "8",
            "logprobs": "on",
            "examples-TOTAL_FORMS": "0",
            "examples-INITIAL_FORMS": "0",
        }
        shown = client.post(url("candidate_new"), {**sent, "show": "1"}).content.decode()
        assert "Animal: text 0" in shown
        assert not PromptCandidate.objects.exists()
        refused = client.post(url("candidate_new"), {**sent, "temperature": "9"}).content.decode()
        assert "from 0 to 2" in refused
        assert client.post(url("candidate_new"), sent).url == url("candidate", 2)
        assert "about 20 items" in page("candidate", 2)
        for number in (2, 1):
            assert client.post(url("candidate", number), {"budget": ""}).url == url("candidate", number)
            found = candidates_of(workshop.source)[number - 1]
            assert "every 2s" in page("candidate", number)
            jobs.run(job_of(found).pk)
        listed = page("candidates", query="?first=1&second=2")
        assert "looks better than it is" in listed
        assert "have cost" in listed
        assert "candidate 2 alone on" in listed
        assert client.post(url("candidate_use", 2)).url == url("candidate", 2)
        assert prompt_in_force(workshop.source).template == "Animal: {{ text }}"

    def test_only_sources_with_a_prompt_have_them(self, client_of: Any) -> None:
        world = make_world(10)
        address = reverse("candidates", args=[world.project.slug, world.project.sources.first().pk])
        assert client_of(world.manager).get(address).status_code == 404


def test_programs_do_the_same(workshop: Workshop, client_of: Any) -> None:
    client = client_of(workshop.project.created_by)

    def asked(method: str, name: str, *parts: object, **body: Any) -> Any:
        url = reverse(name, args=[workshop.project.slug, *parts])
        answered = client.generic(method, url, json.dumps(body) if body else "", "application/json")
        assert answered.status_code < 300, answered.content
        return answered.json()

    pk = workshop.source.pk
    assert asked("POST", "api_development_items", size=20) == {"drawn": 20, "labelled": 0}
    for one in development_items(workshop.project):
        asked("PUT", "api_held_out_item", one.pk, answer=label_of(one.item))
    made = asked("POST", "api_candidates", pk, prompt={"template": "Animal: {{ text }}"})
    assert (made["number"], made["estimate"]["missing"], made["error"]) == (2, 20, None)
    job = asked("POST", "api_candidate_run", pk, 2, budget="1000")
    jobs.run(job["id"])
    listed = asked("GET", "api_candidates", pk)
    assert listed["development"] == {"drawn": 20, "labelled": 20}
    assert [(one["number"], one["asked"], one["wrong"]) for one in listed["results"]] == [
        (1, 0, 0),
        (2, 20, 0),
    ]
    assert asked("GET", "api_candidate", pk, 2)["estimate"]["missing"] == 0
    assert asked("POST", "api_candidate_use", pk, 2)["in_force"]


def test_a_slow_loss_is_computed_by_a_job_and_no_page_waits_for_it(
    workshop: Workshop, client_of: Any, settings: Any
) -> None:
    settings.HYPAC_LOSSES = [PATH]
    workshop.project.loss = PATH
    workshop.project.save()
    workshop.drawn()
    workshop.ran(workshop.written())
    SLOW.pairs.clear()
    client = client_of(workshop.project.created_by)
    address = reverse("api_candidates", args=[workshop.project.slug, workshop.source.pk])
    page = reverse("candidate", args=[workshop.project.slug, workshop.source.pk, 2])
    said = client.get(address).json()["results"][1]
    assert (said["asked"], said["usable"], said["computing"], said["error"]) == (20, 20, 20, None)
    shown = client.get(page).content.decode()
    assert "losses are still being computed" in shown
    assert "Differs from people, or not usable" not in shown
    assert not SLOW.pairs
    compute_all(workshop.project)
    asked = len(SLOW.pairs)
    assert 0 < asked <= 3
    said = client.get(address).json()["results"][1]
    assert (said["computing"], said["error"]) == (0, pytest.approx(said["wrong"] / 20))
    assert "losses are still being computed" not in client.get(page).content.decode()
    assert len(SLOW.pairs) == asked
