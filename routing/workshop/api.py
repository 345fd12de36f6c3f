"""The part of /api/v1/ about candidate prompts, and the development items that they are compared on."""

from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.schema import Nothing
from annotation.common.money import in_full
from annotation.errors import HypacError, InputError
from annotation.jobs.serializers import JobBody, accepted
from routing.models import PromptCandidate, Source
from routing.runs.api_fields import budget_field
from routing.sources.prompt_versions import takes_prompt
from routing.sources.prompts_api import PromptBody, prompt_from
from routing.workshop.candidates import (
    candidate_numbered,
    estimate,
    run_candidate,
    use_candidate,
    write_candidate,
)
from routing.workshop.development import MOST, development_items, draw_items, labelled_items, take_over_rounds
from routing.workshop.results import CandidateResult, results_of


class DevelopmentFields(serializers.Serializer[Any]):
    """Items that are held out of every later run, which cannot be undone."""

    size = serializers.IntegerField(
        min_value=1, max_value=MOST, required=False, allow_null=True, help_text="So many, drawn at random."
    )
    of_rounds = serializers.BooleanField(
        required=False,
        default=False,
        help_text="In place of a draw: what was labelled in rounds.",
    )


class DevelopmentBody(serializers.Serializer[Any]):
    drawn = serializers.IntegerField()
    labelled = serializers.IntegerField(help_text="Candidates are asked about these.")


class CandidateFields(serializers.Serializer[Any]):
    """Another way to ask the source."""

    prompt = serializers.JSONField(help_text="An object with `system`, `template` and `examples`.")
    params = serializers.DictField(
        required=False,
        allow_null=True,
        help_text="How the model writes, such as `temperature`; without it as the source does.",
    )


class RunCandidateFields(serializers.Serializer[Any]):
    budget = budget_field()


class CandidateBody(serializers.Serializer[Any]):
    """A candidate, and what came of it so far; figures are null before."""

    number = serializers.IntegerField()
    prompt = PromptBody()
    params = serializers.DictField()
    in_force = serializers.BooleanField()
    changed = serializers.BooleanField(help_text="It would be asked otherwise now than when it was run.")
    items = serializers.IntegerField(help_text="Development items with a label.")
    asked = serializers.IntegerField()
    usable = serializers.IntegerField()
    wrong = serializers.IntegerField()
    computing = serializers.IntegerField(
        help_text="Usable answers whose loss is still being computed; until then nothing is said of errors."
    )
    error = serializers.FloatField(allow_null=True, help_text="Share of usable answers that are wrong.")
    low = serializers.FloatField(allow_null=True, help_text="Of its exact 95 % interval.")
    high = serializers.FloatField(allow_null=True)
    mean_cost = serializers.CharField(allow_null=True)
    whole_cost = serializers.CharField(allow_null=True, help_text="Of all items of the project.")
    mean_tokens_in = serializers.FloatField(allow_null=True)
    mean_tokens_out = serializers.FloatField(allow_null=True)
    confidence = serializers.FloatField(allow_null=True)
    ece = serializers.FloatField(allow_null=True, help_text="Expected calibration error of its confidence.")


class CandidatesBody(serializers.Serializer[Any]):
    development = DevelopmentBody()
    results = CandidateBody(many=True)


class CandidatePriceBody(serializers.Serializer[Any]):
    missing = serializers.IntegerField()
    about = serializers.CharField()
    most = serializers.CharField(allow_null=True, help_text="null: nobody can tell.")


class OneCandidateBody(CandidateBody):
    estimate = CandidatePriceBody(
        allow_null=True, help_text="What the missing answers cost; null: the source cannot be asked."
    )


class DevelopmentItems(ProjectView):
    actions = {"GET": "sources.edit", "POST": "sources.edit"}

    @extend_schema(responses=DevelopmentBody)
    def get(self, request: Request, slug: str) -> Response:
        """How many there are. They are labelled at `held-out/`, where their purpose is `prompts`."""
        return Response(_development(self))

    @extend_schema(request=DevelopmentFields, responses={201: DevelopmentBody})
    def post(self, request: Request, slug: str) -> Response:
        """Draw some, or take over those of guideline rounds."""
        body = self.parsed(DevelopmentFields)
        if body["of_rounds"]:
            take_over_rounds(access=self.access)
        else:
            draw_items(access=self.access, size=body.get("size") or 0)
        return created(_development(self), "api_development_items", slug=slug)


class CandidateView(ProjectView):
    def source(self, source_id: int) -> Source:
        rows = Source.objects.select_related("project", "price")
        found = rows.filter(project=self.access.project, pk=source_id, backend__in=takes_prompt()).first()
        if found is None:
            raise Http404("no such source with a prompt")
        return found

    def candidate(self, source_id: int, number: int) -> PromptCandidate:
        found = candidate_numbered(self.source(source_id), number)
        if found is None:
            raise Http404("no such candidate")
        return found

    def body_of(self, source: Source, number: int) -> dict[str, Any]:
        found = next(one for one in results_of(source) if one.candidate.number == number)
        try:
            price = estimate(found.candidate)
        except HypacError:  # running it says why the source cannot be asked
            return {**_content(found), "estimate": None}
        told = {"missing": price.missing, "about": in_full(price.about), "most": in_full(price.most)}
        return {**_content(found), "estimate": told}


class Candidates(CandidateView):
    actions = {"GET": "sources.edit", "POST": "sources.edit"}

    @extend_schema(responses=CandidatesBody)
    def get(self, request: Request, slug: str, source_id: int) -> Response:
        """All of them with what came of each; the first is the prompt that was in force before."""
        results = results_of(self.source(source_id))
        return Response({"development": _development(self), "results": [_content(one) for one in results]})

    @extend_schema(request=CandidateFields, responses={201: OneCandidateBody})
    def post(self, request: Request, slug: str, source_id: int) -> Response:
        """Write another one."""
        source, body = self.source(source_id), self.parsed(CandidateFields)
        prompt = prompt_from(body["prompt"])
        if prompt is None:
            raise InputError("A candidate needs a prompt.", where="prompt")
        made = write_candidate(access=self.access, source=source, prompt=prompt, params=body.get("params"))
        return created(
            self.body_of(source, made.number),
            "api_candidate",
            slug=slug,
            source_id=source_id,
            number=made.number,
        )


class CandidateDetail(CandidateView):
    actions = {"GET": "sources.edit"}

    @extend_schema(responses=OneCandidateBody)
    def get(self, request: Request, slug: str, source_id: int, number: int) -> Response:
        """One of them, with what its missing answers cost."""
        found = self.candidate(source_id, number)
        return Response(self.body_of(found.source, number))


class CandidateRun(CandidateView):
    actions = {"POST": "sources.edit"}

    @extend_schema(request=RunCandidateFields, responses={202: JobBody})
    def post(self, request: Request, slug: str, source_id: int, number: int) -> Response:
        """Have a worker ask the source so about the labelled development items, each once."""
        found, body = self.candidate(source_id, number), self.parsed(RunCandidateFields)
        return accepted(run_candidate(access=self.access, candidate=found, **body))


class CandidateUse(CandidateView):
    actions = {"POST": "sources.edit"}

    @extend_schema(request=None, responses=OneCandidateBody)
    def post(self, request: Request, slug: str, source_id: int, number: int) -> Response:
        """Ask the source so from now on."""
        self.parsed(Nothing)
        source = use_candidate(access=self.access, candidate=self.candidate(source_id, number))
        return Response(self.body_of(source, number))


def _development(view: ProjectView) -> dict[str, int]:
    project = view.access.project
    return {"drawn": development_items(project).count(), "labelled": labelled_items(project).count()}


def _content(one: CandidateResult) -> dict[str, Any]:
    candidate = one.candidate
    return {
        "number": candidate.number,
        "prompt": {
            "system": candidate.system,
            "template": candidate.template,
            "examples": candidate.examples,
        },
        "params": candidate.params,
        "in_force": one.in_force,
        "changed": one.changed,
        "items": one.items,
        "asked": one.asked,
        "usable": len(one.usable),
        "wrong": one.wrong,
        "computing": one.computing,
        "error": one.error,
        "low": one.low,
        "high": one.high,
        "mean_cost": in_full(one.mean_cost),
        "whole_cost": in_full(one.whole_cost),
        "mean_tokens_in": one.mean_tokens_in,
        "mean_tokens_out": one.mean_tokens_out,
        "confidence": one.confidence,
        "ece": one.ece,
    }


_ALL = "projects/<slug:slug>/sources/<row:source_id>/candidates/"
_ONE = f"{_ALL}<row:number>/"
urlpatterns = [
    path(
        "projects/<slug:slug>/development-items/",
        DevelopmentItems.as_view(),
        name="api_development_items",
    ),
    path(_ALL, Candidates.as_view(), name="api_candidates"),
    path(_ONE, CandidateDetail.as_view(), name="api_candidate"),
    path(f"{_ONE}run/", CandidateRun.as_view(), name="api_candidate_run"),
    path(f"{_ONE}use/", CandidateUse.as_view(), name="api_candidate_use"),
]
