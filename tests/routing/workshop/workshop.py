"""A project with a language model whose answers are known, for tests of candidate prompts."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from annotation.jobs import jobs
from annotation.models import HeldOutItem, Item, Job
from annotation.permissions import Access, access_to
from routing.held_out.manage import set_answer
from routing.models import PromptCandidate, Source
from routing.sources.backends import Prompt
from routing.sources.manage import save_source
from routing.workshop.candidates import (
    run_candidate,
    write_candidate,
)
from routing.workshop.development import (
    draw_items,
)
from routing.workshop.results import CandidateResult, results_of
from testbed.factories import make_items, make_project
from testbed.scripted_server import Request, ScriptedServer

SIZE = 30


def place(text: str) -> int:
    """Of the item that the prompt is about, by its text."""
    return int(text.split("text ")[-1].split()[0])


def label_of(item: Item) -> str:
    return "cat" if place(item.text) % 2 else "dog"


def said(request: Request) -> str:
    """A model that is right about half of the items, and about all but one if it is asked about animals."""
    number = place(request.prompt)
    if "Animal" not in request.prompt:
        return "cat"
    return "cow" if number == 0 else "cat" if number % 2 else "dog"


class Workshop:
    def __init__(self, server: ScriptedServer, *, size: int = SIZE) -> None:
        self.server = server
        self.project = make_project(choices=["cat", "dog"])
        make_items(self.project, size)
        access = access_to(self.project.created_by, self.project.slug)
        assert access is not None
        self.lead: Access = access
        self.source = save_source(
            project=self.project,
            user=self.project.created_by,
            name="Tiny",
            backend="openai_api",
            params={"url": server.url, "model": "tiny", "max_tokens": 8},
            cost_per_label=Decimal(1),
            cost_function="tokens",
            prices={"per_token": "0.5"},
        )

    def drawn(self, size: int = 20, *, labelled: bool = True) -> list[HeldOutItem]:
        held = draw_items(access=self.lead, size=size, entropy=1)
        if labelled:
            self.label(held)
        return held

    def label(self, held: Sequence[HeldOutItem]) -> None:
        for one in held:
            set_answer(access=self.lead, held=one, answer=label_of(one.item))

    def written(self, template: str = "Animal: {{ text }}", **params: Any) -> PromptCandidate:
        kept = {"max_tokens": 8, **params}
        return write_candidate(access=self.lead, source=self.source, prompt=Prompt(template), params=kept)

    def ran(self, candidate: PromptCandidate, **how: Any) -> Job:
        job = run_candidate(access=self.lead, candidate=candidate, **how)
        jobs.run(job.pk)
        job.refresh_from_db()
        return job

    @property
    def results(self) -> list[CandidateResult]:
        return results_of(Source.objects.select_related("project").get(pk=self.source.pk))
