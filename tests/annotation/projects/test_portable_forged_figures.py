"""Project files whose rows are those of a project and that promise something else: one value at a time is
changed, and all hashes put right that its maker can put right.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from hypac_site.portable.importing import import_project
from routing.core.certificate import canonical_bytes
from routing.core.ledger import ledger_entry
from routing.models import Certificate
from tests.annotation.projects.portable import Lines, forged
from tests.annotation.projects.test_portable_hostile import _made, good, refused  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

Change = Callable[[Lines], Any]
CERTIFICATE, COMMITMENT, DRAW = "routing.certificate", "routing.commitment", "routing.draw"


def rows(all_: Lines, table: str) -> list[dict[str, Any]]:
    return all_[f"tables/{table}.jsonl"]


def column(table: str, name: str, value: Any, place: int = 0) -> Change:
    """Another value, or what a function makes of the one that is there."""

    def change(all_: Lines) -> None:
        row = rows(all_, table)[place]
        row[name] = value(row[name]) if callable(value) else value

    return change


def resealed(row: dict[str, Any], document: dict[str, Any]) -> None:
    """The document of a certificate or a commitment, with its hash."""
    end = 0 if row["document"].endswith("\n") else 1
    content = canonical_bytes(document)
    content = content[:-1] if end else content
    row["document"], row["sha256"] = content.decode(), sha256(content).hexdigest()


def stated(path: str, value: Any, table: str = CERTIFICATE) -> Change:
    """Another value in the document of the first row, by the names that lead there."""

    def change(all_: Lines) -> None:
        row = rows(all_, table)[0]
        document = json.loads(row["document"])
        *names, last = path.split(".")
        inner: Any = document
        for name in names:
            inner = inner[int(name) if name.isdecimal() else name]
        inner[last] = value(inner[last]) if callable(value) else value
        resealed(row, document)

    return change


def drawn(all_: Lines) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Asked items of the draw and of the pool."""
    pool = {row["item"]: row for row in rows(all_, "routing.poolitem")}
    for row in rows(all_, "routing.drawitem"):
        if row["asked"]:
            yield row, pool[row["item"]]


def of_drawn(table: str, **columns: Any) -> Change:
    """Rows of a table about an item of the draw."""

    def change(all_: Lines) -> None:
        item = next(drawn(all_))[0]["item"]
        for row in rows(all_, table):
            if row["item"] == item:
                row.update({name: one(row[name]) for name, one in columns.items()})

    return change


def another(value: str) -> str:
    return "dog" if value == "cat" else "cat"


def fewer_errors(all_: Lines) -> None:
    """A label of the draw, in its lines alone, with the hash of these put right."""
    row = rows(all_, CERTIFICATE)[0]
    lines = [json.loads(line) for line in row["draw_lines"].splitlines()]
    line = next(line for line in lines if line["asked"] and line["answers"][0] != line["label"])
    line["label"] = line["answers"][0]
    row["draw_lines"] = "".join(canonical_bytes(one).decode() for one in lines)
    digest = sha256(row["draw_lines"].encode()).hexdigest()
    stated("draw.sha256", digest)(all_)


def less_spent(all_: Lines) -> None:
    """An entry of the ledger, with the links put right, there and in the certificate."""
    row = rows(all_, "routing.ledgerentry")[0]
    told = {name: value for name, value in row["document"].items() if name != "sha256"}
    entry = ledger_entry(**told | {"alpha": Decimal("0.01")})  # type: ignore[arg-type]
    row.update(document=entry, sha256=entry["sha256"])
    stated("ledger", [entry])(all_)


def elsewhere(all_: Lines) -> None:
    """The route of an item, and the count of the routing with it."""
    route = next(row for row in rows(all_, "routing.route") if row["position"] == 2)
    tally = rows(all_, "routing.run")[0]["tally"]
    for told in (tally["sent"], tally["answers"]):
        told[0], told[1] = told[0] + 1, told[1] - 1
    route["position"] = 1


def other_randomness(all_: Lines) -> None:
    rows(all_, DRAW)[0]["randomness"] = {"kind": "nonce", "value": "mine"}
    rows(all_, "routing.run")[0].update(draw_from="nonce", randomness="mine")


RUN, RUNS = "The certificate of run 1 is not what its rows give", "Run 1 does not follow from the other rows"
FORGED: dict[str, tuple[Change, str]] = {
    # Columns that repeat the document.
    "certified": (column(CERTIFICATE, "certified", lambda value: not value), f"{RUN}: its column certified"),
    "thresholds": (
        column(CERTIFICATE, "thresholds", [{"u": 1.0, "v": 0}, None]), f"{RUN}: its column thresholds"
    ),
    "shape": (column(CERTIFICATE, "shape", "own"), f"{RUN}: its column shape"),
    "model positions": (column(CERTIFICATE, "model_positions", [1]), f"{RUN}: its column model_positions"),
    "a sentence": (
        column(CERTIFICATE, "messages", lambda told: told | {"sentence": told["reason"]}), "another sentence"
    ),
    "a reason": (
        column(CERTIFICATE, "messages", lambda told: told | {"reason": told["sentence"]}), "another reason"
    ),
    # The document.
    "errors seen": (stated("result.observed_errors", 0), "result.observed_errors is 0, recomputed"),
    "errors allowed": (stated("result.allowed_errors", 99), "result.allowed_errors is 99"),
    "a bound": (stated("result.pointwise_upper_bound", 0.001), "result.pointwise_upper_bound is 0.001"),
    "what is saved": (stated("result.expected_net_saving", 0.99), "result.expected_net_saving is 0.99"),
    "what routing saves": (stated("result.expected_routing_saving", 0.99), "expected_routing_saving is 0.99"),
    "the sentence": (stated("result.sentence", "All labels are right."), "result.sentence is"),
    "the promise": (stated("result.certified", lambda value: not value), "result.certified is"),
    "a policy": (stated("result.policy", lambda value: value + 1), "result.policy is"),
    "the error": (stated("plan.epsilon", "0.001"), "plan.epsilon is '0.001'"),
    "a chain": (stated("chains.0.policies.0.counts", [70, 0, 0]), r"policies\[0\].counts"),
    "a price": (stated("provenance.people_cost_per_label", "99"), "people_cost_per_label is '99'"),
    "the alpha of all runs": (stated("provenance.alpha_total", "0.001"), "alpha_total is '0.001'"),
    "whom models are": (
        stated("provenance.sources.0.fingerprint", "f" * 64), r"sources\[0\].fingerprint is 'ffff"
    ),
    "who could not say": (stated("provenance.unlabelable", 7), "provenance.unlabelable is 7"),
    "whether blind": (stated("provenance.suggestions_shown", True), "suggestions_shown is True"),
    "what one reads of it": (stated("provenance.target_in_words", "All."), "target_in_words is 'All.'"),
    "what was committed": (stated("commitments.before_draw.entropy", "1"), "before_draw.entropy is '1'"),
    "a label in the lines of the draw": (fewer_errors, "draw, place .*: label is"),
    "alpha in the ledger": (less_spent, "ledger: the run's own entry does not say|ledger"),
    # What the document follows from.
    "a label": (of_drawn("annotation.label", value=another), "draw, place .*: label is"),
    "an answer": (of_drawn("routing.prediction", value=another), "models have said something else of item"),
    "an uncertainty": (of_drawn("routing.poolitem", u=lambda u: u / 2), "something else of item"),
    "a tie-break": (of_drawn("routing.poolitem", v=lambda v: v + 1), "tie|v is"),
    "who is asked": (of_drawn("routing.drawitem", asked=lambda _: False), "its draw is said to be of"),
    "how likely": (
        of_drawn("routing.drawitem", probability=lambda _: "0.10000000"), "not what was committed to"
    ),
    "the error of a plan": (column("routing.run", "epsilon", "0.40000000"), f"{RUNS}: commitment 1: plan"),
    "the chains": (
        column("routing.run", "chains", lambda chains: [chains[0] | {"name": "x"}, *chains[1:]]),
        f"{RUNS}: commitment 1: chains",
    ),
    "a price of a run": (
        column("routing.runsource", "cost_per_label", "0.010000"), f"{RUNS}: commitment 1: plan.costs"
    ),
    "the seed": (column("routing.run", "entropy", "8"), f"{RUNS}: its salt does not follow"),
    "the pool's hash": (column("routing.run", "pool_hash", "a" * 64), f"{RUNS}: its pool has other items"),
    "the pool's size": (column("routing.run", "pool_size", 10**8), f"{RUNS}: its pool is said to have"),
    "what came later": (column("routing.run", "later_size", 5), f"{RUNS}: it is said to have taken in 5"),
    "how many were drawn": (column(DRAW, "n", lambda n: n - 1), f"{RUNS}: its draw is said to be of"),
    "what the draw came from": (other_randomness, f"{RUNS}: .*(draw|commitment)"),
    # Commitments.
    "what models had said": (
        stated("items.root", "a" * 64, COMMITMENT), f"{RUNS}: .*commitment 1 is of other answers|draw"
    ),
    "lines of the pilot": (
        column(COMMITMENT, "pilot_lines", lambda text: text.replace('"u":0.', '"u":0.1', 1)),
        f"{RUNS}: commitment 1 is of another pilot",
    ),
    "lines of the draw": (
        column(COMMITMENT, "draw_lines", lambda text: text.replace('"asked":true', '"asked":false', 1), 1),
        f"{RUNS}: commitment 2 is of another draw",
    ),
    # The routing, and what was delivered.
    "what was sent": (
        column("routing.run", "tally", lambda told: told | {"sent": [70, 0, 0]}),
        f"{RUNS}: its routing is said to send",
    ),
    "what was answered": (
        column("routing.run", "tally", lambda told: told | {"answers": [70, 70]}), "said to have given"
    ),
    "a route": (elsewhere, "Run 1 was not routed by its certificate: item"),
    "rows delivered": (
        column("routing.delivery", "rows", lambda count: count - 1), "What run 1 delivered.*rows"
    ),
    "rows without a label": (
        column("routing.delivery", "blanks", lambda count: count + 1), "rows without a label"
    ),
    "items delivered": (column("routing.delivery", "items", lambda count: count + 1), "of all .* items"),
    "the number of a delivery": (column("routing.delivery", "number", 7, 1), "where number 2 was made"),
    "a file's name": (column("routing.deliveryfile", "name", "other.csv"), "delivery 1: it"),
}  # fmt: skip


@pytest.mark.parametrize("case", FORGED)
def test_a_value_that_does_not_follow_is_refused(good: Path, tmp_path: Path, case: str) -> None:  # noqa: F811
    change, words = FORGED[case]
    refused(forged(good, tmp_path / "p.zip", change), words)


def test_figures_are_made_here(good: Path, tmp_path: Path) -> None:  # noqa: F811
    """They stand in no document, and may have had more, or fewer, answers to look at: nothing is believed."""

    def change(all_: Lines) -> None:
        (row,) = rows(all_, CERTIFICATE)
        row["figures"] = {"comparisons": [{"rule": "x", "routing_saving": 1.0}]}
        row["messages"]["comparisons"] = []
        (run,) = rows(all_, "routing.run")
        run["tally"]["saving"] = "0.999"

    project = import_project(path=good, owner="owner-here", slug="one").project
    copy = import_project(
        path=forged(good, tmp_path / "p.zip", change), owner="owner-here", slug="two"
    ).project
    first, second = (Certificate.objects.get(run__project=one) for one in (project, copy))
    assert (first.figures, first.messages) == (second.figures, second.messages)
    assert project.runs.get().tally == copy.runs.get().tally
    assert second.figures["comparisons"]
