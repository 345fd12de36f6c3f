"""What a run commits to before its draw and before its first label, and where its draw comes from."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotation.common.files import open_file
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.models import Job
from routing.core import sampling
from routing.core.merkle import merkle_root
from routing.core.verify import verify
from routing.models import Certificate, Commitment, Draw, DrawItem, Prediction, Run
from routing.runs import beacons, commitment_queries, commitments, load_calibration
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from routing.runs.commitments import give_value, waits_for_value
from routing.runs.ledger import linked_ledger, spent_before
from testbed.experts import ExpertWorld
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]
ROUND = "0f" * 32


@pytest.fixture
def world() -> World:
    return make_world(200, human_cost="40")


def documents(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = (json.loads(one.document) for one in run.commitments.order_by("number"))
    return first, second


def committed_lines(run: Run) -> list[bytes]:
    with open_file(run.commitments.get(number=1).items) as file:
        return file.read().splitlines()


def verified(run: Run) -> dict[str, Any]:
    certificate = run.certificate
    assert verify(certificate.document.encode(), certificate.draw_lines.encode()) == []
    document = json.loads(certificate.document)
    assert document["version"] == 6
    return document


@pytest.mark.database
def test_hashes_are_those_of_the_documents_and_of_what_was_there(world) -> None:
    run = world.calibrating(m=60)
    for one in run.commitments.all():
        assert one.sha256 == hashlib.sha256(one.document.encode()).hexdigest()
    first, second = documents(run)
    lines = committed_lines(run)
    assert first["items"] == {"count": 200, "root": merkle_root(lines)}
    assert [json.loads(line)["item_id"] for line in lines] == [f"t{index}" for index in range(200)]
    by_item = {row["item_id"]: row for row in map(json.loads, lines)}
    piloted = set(run.pilot_items.values_list("item__external_id", flat=True))
    for answer in Prediction.objects.filter(item__project=world.project).select_related("item", "source"):
        said = by_item[answer.item.external_id]["answers"][answer.source.position - 1]
        # The second model answered for the pilot before the draw, and for asked items after it.
        if answer.source.position == 1 or answer.item.external_id in piloted:
            assert said[0] == answer.value
        else:
            assert said is None
    pilot = run.commitments.get(number=1).pilot_lines.encode().splitlines()
    assert first["pilot"] == {"count": len(pilot), "root": merkle_root(pilot)}
    assert second["before_draw"] == run.commitments.get(number=1).sha256


def test_nothing_is_drawn_and_nobody_asked_before_the_first_one_is_shown(world, monkeypatch) -> None:
    seen = []

    def looking(run: Run, **_: Any) -> None:
        seen.append((Draw.objects.filter(run=run).exists(), world.project.work_batches.exists()))

    monkeypatch.setattr(commitments, "run_committed", looking)
    world.calibrating(m=60)
    assert seen == [(False, False), (True, False)]


def test_a_certificate_holds_both_and_the_whole_ledger(world) -> None:
    cancel_run(run=world.calibrating(m=60), user=world.manager)
    cancel_run(run=world.start(m=60), user=world.manager)  # never drawn: it has spent nothing
    document = verified(world.analysed(m=60))
    assert [entry["run"] for entry in document["ledger"]] == [1, 3]
    assert document["ledger"] == linked_ledger(world.project)
    assert document["plan"]["alpha_spent"] == "0.1"
    assert "with probability at least 80 %" in document["result"]["sentence"]
    assert "0.1 was spent by earlier draws" in document["result"]["sentence"]


def test_the_level_that_is_left_is_said_where_it_is_all_of_it() -> None:
    world = make_world(200)
    document = verified(world.analysed(m=60))
    assert document["plan"]["alpha_spent"] == "0"
    assert "with probability at least 90 %" in document["result"]["sentence"]
    assert "earlier draws" not in document["result"]["sentence"]


@pytest.mark.parametrize(
    "plan",
    [
        {"target": "population"},
        {"target": "pool"},
        {"rule": "multi_chain"},
        {"rule": "split_fixed_sequence"},
        {"rule": "every_score", "p": Decimal(1)},
    ],
    ids=lambda plan: "-".join(map(str, plan.values())),
)
def test_every_kind_of_run_keeps_what_it_commits_to(plan) -> None:
    world = make_world(300, human_cost="20")
    run = world.analysed(**({"m": 90} | plan))
    document = verified(run)
    first, second = documents(run)
    population = plan.get("target") == "population"
    assert (first["chains"] is None, second["chains"] is None) == (population, not population)
    assert document["commitments"] == {"before_draw": first, "before_labels": second}
    if population:
        drawn = set(DrawItem.objects.filter(draw__run=run).values_list("item", flat=True))
        assert drawn.isdisjoint(run.pilot_items.values_list("item", flat=True))


@pytest.mark.costly
def test_a_run_of_two_people_and_a_third_does_so_too() -> None:
    here = ExpertWorld()
    run = here.world.start(reference="settled", m=60, p=None, rule="")
    here.world.do("prepare_run")
    while here.label(*here.world.annotators, here.expert):
        pass
    run.refresh_from_db()
    analyse(run=run, user=here.world.manager)
    here.world.do("analyse_run")
    run.refresh_from_db()
    assert verified(run)["commitments"]["before_draw"]["reference"] == {"kind": "settled"}


@pytest.mark.costly
def test_a_run_with_an_expert_does_so_too() -> None:
    world = ExpertWorld()
    run = world.analysed(world.start())
    document = verified(run)
    first, second = documents(run)
    assert second["rechecked"] == document["reference"]["rechecked"]
    assert first["reference"]["roster"] == document["reference"]["roster"]


@pytest.mark.database
def test_answers_that_came_after_the_second_one_are_named() -> None:
    world = make_world(
        600,
        error=(lambda u: 0.45 * u, lambda u: 0.05 * u),
        costs=("0.01", "0.4"),
        human_cost="1",
    )
    run = world.analysed(rule="every_score", m=300, p=Decimal(1))
    rows = [json.loads(line) for line in run.certificate.draw_lines.splitlines()]
    before = [json.loads(line) for line in run.commitments.get(number=2).draw_lines.splitlines()]
    late = [row["item_id"] for row in rows if row.get("later")]
    called = [
        row["item_id"] for row, then in zip(rows, before, strict=True) if row["called"] != then["called"]
    ]
    assert late == called
    verified(run)


class TestANonce:
    """The draw comes from the first commitment and from a text that somebody else chose."""

    def waiting(self, world: World) -> Run:
        run = world.start(m=60, draw_from="nonce")
        job = world.do("prepare_run")
        assert job.result == {"state": "preparing", "waits_for": "nonce"}
        return run

    def test_the_draw_follows_from_both(self, world) -> None:
        run = self.waiting(world)
        assert not Draw.objects.exists()
        assert waits_for_value(run)
        give_value(run=run, user=world.manager, value=" heads, said the stranger ")
        world.do("prepare_run")
        run.refresh_from_db()
        assert run.state == Run.State.CALIBRATING
        digest = hashlib.sha256(
            bytes.fromhex(run.commitments.get(number=1).sha256) + b"heads, said the stranger"
        ).digest()
        drawn = sampling.draw_calibration(
            pool_size=200, m=60, p=Decimal("0.9"), entropy=int.from_bytes(digest[:16], "big")
        )
        stored = DrawItem.objects.filter(draw__run=run).order_by("order")
        assert list(stored.values_list("item__position", flat=True)) == drawn.positions.tolist()
        world.finish()
        run.refresh_from_db()
        analyse(run=run, user=world.manager)
        world.do("analyse_run")
        run.refresh_from_db()
        document = verified(run)
        assert document["commitments"]["before_labels"]["randomness"] == {
            "kind": "nonce",
            "value": "heads, said the stranger",
        }

    @pytest.mark.parametrize("value", ["", "short", "x" * 201, "two\nlines of text"])
    def test_what_cannot_be_one_is_refused_and_the_run_waits_on(self, world, value) -> None:
        run = self.waiting(world)
        with pytest.raises(InputError) as refused:
            give_value(run=run, user=world.manager, value=value)
        assert refused.value.where == "value"
        assert waits_for_value(run)

    @pytest.mark.database
    def test_it_is_given_once(self, world) -> None:
        run = self.waiting(world)
        give_value(run=run, user=world.manager, value="heads, said the stranger")
        with pytest.raises(ConflictError, match="does not wait"):
            give_value(run=run, user=world.manager, value="tails, said the stranger")
        world.do("prepare_run")
        with pytest.raises(ConflictError, match="does not wait"):
            give_value(run=run, user=world.manager, value="tails, said the stranger")

    def test_a_run_that_is_cancelled_while_it_waits_has_spent_its_draw(self, world) -> None:
        """Whoever has the text knows the draw: who does not like it may not begin again for nothing."""
        run = self.waiting(world)
        cancel_run(run=run, user=world.manager)
        with pytest.raises(ConflictError, match="can no longer be cancelled"):
            cancel_run(run=run, user=world.manager)
        (entry,) = linked_ledger(world.project)
        assert (entry["run"], entry["alpha"]) == (1, "0.1")
        assert entry["commitment"] == run.commitments.get(number=1).sha256
        assert spent_before(world.project, "dataset") == Decimal("0.1")
        document = verified(world.analysed(m=60))
        assert document["plan"]["alpha_spent"] == "0.1"
        assert [entry["run"] for entry in document["ledger"]] == [1, 2]
        assert "with probability at least 80 %" in document["result"]["sentence"]

    def test_before_it_has_committed_to_anything_nothing_is_spent(self, world) -> None:
        cancel_run(run=world.start(m=60, draw_from="nonce"), user=world.manager)
        assert linked_ledger(world.project) == []


class TestABeacon:
    def test_the_round_that_a_run_names_comes_after_its_commitment(self, world, monkeypatch) -> None:
        asked = []

        def fetched(named: dict[str, Any]) -> str:
            asked.append(named)
            return ROUND

        monkeypatch.setattr(commitments, "fetched", fetched)
        monkeypatch.setattr(beacons, "LEAD", timedelta(0))
        run = world.calibrating(m=60, draw_from="drand")
        first, second = documents(run)
        named = first["draw_from"]
        at = datetime.fromisoformat(named["time"])
        shown = run.commitments.get(number=1).created_at
        assert shown.replace(microsecond=0) <= at <= run.draw.created_at
        assert at == datetime.fromtimestamp(1_692_803_367 + 3 * (named["round"] - 1), UTC)
        assert asked == [named]
        assert second["randomness"] == {"kind": "drand", "value": ROUND}

    def test_where_it_cannot_be_asked_somebody_types_its_value_in(self, world, monkeypatch) -> None:
        monkeypatch.setattr(commitments, "PATIENCE", 0)
        run = world.start(m=60, draw_from="nist")
        world.do("prepare_run")
        assert waits_for_value(run)
        with pytest.raises(InputError, match="128 hexadecimal digits"):
            give_value(run=run, user=world.manager, value="AB" * 32)
        give_value(run=run, user=world.manager, value="AB" * 64)
        world.do("prepare_run")
        assert run.draw.randomness == {"kind": "nist", "value": "ab" * 64}

    def test_it_is_asked_again_when_somebody_says_so(self, world, monkeypatch) -> None:
        monkeypatch.setattr(commitments, "PATIENCE", 0)
        run = world.start(m=60, draw_from="drand")
        world.do("prepare_run")
        monkeypatch.setattr(commitments, "PATIENCE", 5)
        monkeypatch.setattr(commitments, "fetched", lambda named: ROUND)
        monkeypatch.setattr(commitments, "moment", lambda named: timezone.now() - timedelta(seconds=1))
        give_value(run=run, user=world.manager, value="")
        world.do("prepare_run")
        assert run.draw.randomness["value"] == ROUND


class TestKills:
    """A worker that dies between two steps leaves what another one goes on from."""

    @pytest.mark.database
    @pytest.mark.parametrize("step", ["commit_before_draw", "draw_calibration_set", "commit_before_labels"])
    def test_another_worker_makes_nothing_twice(self, world, monkeypatch, step) -> None:
        from routing.runs import start

        real = getattr(start, step)

        def dying(*args: Any) -> Any:
            real(*args)
            raise KeyboardInterrupt

        run = world.start(m=60)
        job = Job.objects.get(kind="prepare_run", project=world.project)
        with monkeypatch.context() as patch:
            patch.setattr(start, step, dying)
            with pytest.raises(KeyboardInterrupt):
                jobs.run(job.pk)
        before = list(Commitment.objects.values_list("number", "sha256"))
        Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED)
        world.do("prepare_run")
        after = list(Commitment.objects.values_list("number", "sha256"))
        assert after[: len(before)] == before
        assert len(after) == 2
        assert len(linked_ledger(world.project)) == 1
        run.refresh_from_db()
        assert run.state == Run.State.CALIBRATING


@pytest.mark.database
def test_neither_can_be_changed_nor_the_ledger(world) -> None:
    run = world.calibrating(m=60)
    for change in (
        lambda: Commitment.objects.filter(run=run).update(sha256="0" * 64),
        lambda: world.project.ledger.update(sha256="0" * 64),
        lambda: Run.objects.filter(pk=run.pk).update(alpha_spent=Decimal("0.5")),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()


def test_what_is_no_longer_as_it_was_committed_to_is_not_certified(world, monkeypatch) -> None:
    run = world.calibrated(m=60)
    asked = DrawItem.objects.filter(draw__run=run, asked=True).values_list("item", flat=True)[0]
    real = load_calibration.table_of_answers

    def changed(*args: Any) -> Any:
        answers, scores = real(*args)
        answers[asked][0] = "dog" if answers[asked][0] == "cat" else "cat"
        return answers, scores

    monkeypatch.setattr(load_calibration, "table_of_answers", changed)
    analyse(run=run, user=world.manager)
    job = world.project.jobs.get(kind="analyse_run")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code) == (Job.State.FAILED, "not_as_committed")
    assert "is not what was committed to" in job.error
    assert not Certificate.objects.filter(run=run).exists()


@pytest.mark.database
def test_answers_since_then_are_told_once_each_however_many_parts_are_read(world, monkeypatch) -> None:
    run = world.complete(m=60)
    whole = list(commitment_queries.answered_later(run))
    monkeypatch.setattr(commitment_queries, "PART", 70)
    assert list(commitment_queries.answered_later(run)) == whole
    assert 0 < len({json.loads(line)["item_id"] for line in whole}) == len(whole)
