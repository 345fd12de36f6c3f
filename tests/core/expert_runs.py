"""Runs with an expert as the reference, from a made-up pool to the two published files."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from routing.core import (
    Calibration,
    ExpertPlan,
    PilotData,
    ReferenceCertification,
    ReferenceChains,
    Roster,
    annotated_rows,
    build_reference_chains,
    certificate_files,
    certify_with_expert,
    draw_calibration,
    draw_pilot,
    expert_certificate,
    expert_queue,
    make_salt,
    tie_breaks,
    with_expert,
)
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.select import PilotCosts
from testbed.settings import plan_of

ENTROPY = 2**71 + 5


@dataclass(frozen=True)
class ExpertRun:
    """One run: what models, annotators and expert say of every item of a pool is made up from ``seed``."""

    share: str = "0.5"
    seed: int = 1
    costs: tuple[str, ...] = ("0.001", "0.05", "1")
    epsilon: str = "0.08"
    error: float = 0.03
    scored: bool = False
    """Whether later models have scores of their own."""
    missing: float = 0.04
    """Share of answers, of models and of people, that are not there."""
    ties: bool = True
    replaced: int = 0
    size: int = 600
    drawn: int = 260
    rule: str = "fixed_sequence"
    experts: tuple[tuple[str, str], ...] = ()
    """Names and shares, where several share the work of the expert."""

    @cached_property
    def run(self) -> ExpertPlan:
        plan = plan_of(
            self.size,
            self.drawn,
            p="0.9",
            costs=self.costs,
            epsilon=self.epsilon,
            rule=self.rule,
            pilot_size=self.size // 10,
        )
        experts = tuple((name, Fraction(share)) for name, share in self.experts)
        return ExpertPlan(plan, "3", self.share, expert="Eve Örtlich", experts=experts)  # type: ignore[arg-type]

    @property
    def entropy(self) -> int:
        return ENTROPY + self.seed

    @cached_property
    def items(self) -> list[str]:
        return [f"item-{place}-ü" for place in range(self.size)]

    @cached_property
    def roster(self) -> Roster:
        shares = {"Ada": "0.5", "Bö": "0.3", "Cy": "0.2"}
        return Roster.of(make_salt(self.entropy), shares, experts=["Eve Örtlich"])

    @cached_property
    def v(self) -> np.ndarray:
        return tie_breaks(self.roster.salt, self.items)

    @cached_property
    def said(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Uncertainties (N, K), answers (N, K), annotators' and expert's labels (N,)."""
        rng, models = np.random.default_rng(self.seed), len(self.costs) - 1
        u = rng.random((self.size, models))
        if self.ties:
            u = np.round(u, 1)
        wrong = rng.random((self.size, models)) < 0.25 * u ** (1 + np.arange(models))
        answers = np.where(wrong, rng.choice(["x", "z"], (self.size, models)), "y").astype(object)
        answers[rng.random((self.size, models)) < self.missing] = None
        people = np.where(rng.random(self.size) < self.error, "x", "y").astype(object)
        people[rng.random(self.size) < self.missing] = None
        expert = np.full(self.size, "y", dtype=object)
        expert[rng.random(self.size) < self.missing / 2] = None
        u[[answer is None for answer in answers[:, 0]], 0] = 1.0
        return u, answers, people, expert

    @cached_property
    def own(self) -> np.ndarray:
        u, answers, _, _ = self.said
        return np.where(answers == None, np.nan, u)  # noqa: E711 - element by element

    @cached_property
    def pilot_places(self) -> np.ndarray:
        return draw_pilot(pool_size=self.size, size=self.run.plan.pilot, entropy=self.entropy)

    @cached_property
    def pilot(self) -> PilotData:
        u, answers, _, _ = self.said
        at = self.pilot_places
        own = self.own[at] if self.scored else None
        return PilotData.of(u[at, 0], self.v[at], answers[at].tolist(), own)

    @cached_property
    def chains(self) -> ReferenceChains:
        u, answers, _, _ = self.said
        usable = [answer is not None for answer in answers[:, 0]]
        return build_reference_chains(self.run, u=u[:, 0], v=self.v, usable=usable, pilot=self.pilot)

    @cached_property
    def calibration(self) -> Calibration:
        u, answers, people, expert = self.said
        plan = self.run.plan
        draw = draw_calibration(pool_size=self.size, m=plan.m, p=plan.p, entropy=self.entropy)
        rows = annotated_rows(
            self.run, draw, self.roster,
            items=self.items, u=u[:, 0], v=self.v, answers=answers.tolist(),
            people=dict(zip(self.items, people, strict=True)),
            own=self.own[:, 1:] if self.chains.scores else None,
        )  # fmt: skip
        labels = dict(zip(self.items, expert, strict=True))
        return with_expert(self.run, rows, {i: labels[i] for i in expert_queue(self.run, rows, self.roster)})

    @cached_property
    def pilot_costs(self) -> PilotCosts | None:
        if self.chains.scores is None:
            return None
        u, answers, _, _ = self.said
        models = u.shape[1]
        v = np.column_stack([tie_breaks(self.roster.salt, self.items, model=k + 1) for k in range(models)])
        usable = answers != None  # noqa: E711 - element by element
        every = ScoredItems.of(u, v, usable, scored=self.chains.scores.scored)
        asked = {row.position for row in self.calibration.rows if row.asked}
        outside = np.array([place for place in self.pilot_places.tolist() if place not in asked])
        return PilotCosts.of(self.run.models_and_expert, self.chains.scores, every.rows(outside))

    @cached_property
    def found(self) -> ReferenceCertification:
        return certify_with_expert(
            self.run, self.chains, self.calibration,
            pilot=self.pilot, pilot_costs=self.pilot_costs, replaced=self.replaced,
        )  # fmt: skip

    @cached_property
    def document(self) -> dict[str, Any]:
        return expert_certificate(
            self.run, self.chains, self.calibration, self.found,
            roster=self.roster, provenance={"entropy": self.entropy, "run": 7},
        )  # fmt: skip

    @cached_property
    def files(self) -> tuple[bytes, bytes]:
        return certificate_files(self.document, self.calibration)
