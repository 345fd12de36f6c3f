"""What a manager sees before "Route" is what routing then does."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import WorkItem
from annotation.templatetags.hypac import percent
from routing.core.every_score.chain import CASCADE, OWN
from routing.models import Route, Run, Spend
from routing.runs import certify
from routing.runs.certificate_columns import certificate_columns
from routing.runs.route_outlook import EXPERT, MODEL, PEOPLE, RouteOutlook, route_outlook
from routing.runs.spending import paid_by, savings
from testbed.experts import ExpertWorld
from testbed.worlds import World, make_world

Decided = Callable[..., Run]
pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def seen(run: Run) -> RouteOutlook:
    found = route_outlook(run)
    assert found is not None
    return found


def sent(run: Run) -> list[int]:
    """Items by where they were sent."""
    places = run.run_sources.count() + (3 if run.by_expert else 1)
    routes = Route.objects.filter(run=run)
    return [routes.filter(position=place).count() for place in range(1, places + 1)]


def asked(run: Run) -> int:
    return WorkItem.objects.filter(batch=run.routed_batch, slot=0).count()


def test_it_counts_what_is_sent_and_what_people_label() -> None:
    world = make_world(300)
    run = world.analysed(m=80)
    assert run.certificate.certified
    before = seen(run)
    assert [row.kind for row in before.rows] == [MODEL, MODEL, PEOPLE]
    assert not before.about
    assert before.people_cost == before.people * run.cost_per_item
    assert before.models_cost == before.calls * run.run_sources.get(position=2).cost_per_label
    run = world.route(run)
    assert [row.items for row in before.rows] == sent(run)
    assert before.people == asked(run)
    assert route_outlook(run) is None


def test_where_nothing_is_certified_people_get_all() -> None:
    world = make_world(80, error=(lambda _: 0.9, lambda _: 0.9))
    run = world.analysed(m=40, epsilon=Decimal("0.01"))
    assert not run.certificate.certified
    before = seen(run)
    assert [row.items for row in before.rows] == [0, 0, 80]
    run = world.route(run)
    assert before.people == asked(run)


class TestOwnScores:
    """The first model has answered all items: what rests on its scores is counted, the rest foretold."""

    @pytest.fixture
    def world(self) -> World:
        return make_world(400, own_scores=True, costs=("0.004", "0.04"), human_cost="1")

    @pytest.fixture
    def decided(self, world: World, monkeypatch: pytest.MonkeyPatch) -> Decided:
        """A run whose certificate has a policy of this shape, for these models, with these thresholds."""

        def decide(shape: str, positions: list[int], *thresholds: float) -> Run:
            policy = {
                "shape": shape,
                "model_positions": positions,
                "thresholds": [{"u": u, "v": 0} for u in thresholds],
            }
            monkeypatch.setattr(
                certify, "certificate_columns", lambda *found: {**certificate_columns(*found), **policy}
            )
            return world.analysed(m=120, rule="every_score", epsilon=Decimal("0.1"), alpha=Decimal("0.1"))

        return decide

    @staticmethod
    def called(run: Run) -> int:
        spent = run.spends.filter(stage=Spend.Stage.ROUTED, source__isnull=False)
        return sum(spent.values_list("quantity", flat=True))

    @pytest.mark.parametrize("thresholds", [(0.1, 0.6, 0.2), (0.0, 1.0, 0.3), (0.2, 0.2, 0.5)])
    def test_a_cascade(self, world: World, decided: Decided, thresholds: tuple[float, ...]) -> None:
        run = decided(CASCADE, [1, 2], *thresholds)
        before = seen(run)
        run = world.route(run)
        small, big, _ = sent(run)
        assert before.rows[0].items == small
        assert not before.rows[0].about
        assert before.calls == self.called(run)
        assert before.about is bool(before.calls)
        assert abs(before.rows[1].items - big) <= 25
        assert abs(before.people - asked(run)) <= 25
        assert sum(row.items for row in before.rows) == 400
        assert sum(row.open for row in before.rows) == 400 - before.labelled

    def test_the_first_model_alone_is_counted(self, world: World, decided: Decided) -> None:
        run = decided(OWN, [1], 0.3)
        before = seen(run)
        run = world.route(run)
        assert [row.items for row in before.rows] == sent(run)
        assert (before.people, before.calls, before.about) == (asked(run), 0, False)

    def test_another_model_is_called_on_everything(self, world: World, decided: Decided) -> None:
        run = decided(OWN, [2], 0.3)
        chain = run.certificate.figures["chain"]
        policy = next(row for row in chain["policies"] if row["index"] == chain["chosen"])
        policy["counts"] = [0.4, 200.4, 199.2]
        before = seen(run)
        assert before.about
        assert [row.items for row in before.rows] == [0, 201, 199]
        run = world.route(run)
        assert before.calls == self.called(run)

    def test_pages_say_about_of_what_is_foretold_alone(
        self, world: World, decided: Decided, client: Client
    ) -> None:
        run = decided(CASCADE, [1, 2], 0.1, 0.6, 0.2)
        before = seen(run)
        client.force_login(world.manager)
        page = client.get(reverse("run", args=[run.project.slug, run.number])).content.decode()
        assert "above its threshold and at most 0.6000; above that people label." in page
        assert f"people label about {before.people} more items, about " in page
        assert f">{before.rows[0].items}<" in page
        assert f">about {before.rows[1].items}<" in page
        saved = before.net_saving(savings(run, paid_by(run)))
        assert f"about {percent(saved)}<small>expected" in page
        run = world.route(run)
        after = savings(run, paid_by(run)).net
        assert after is not None
        assert abs(after - saved) < Decimal("0.07")


def test_with_an_expert_it_counts_annotators_second_looks_and_hers() -> None:
    here = ExpertWorld()
    run = here.analysed(here.start(recheck_share=Decimal("0.5"), audit_share=Decimal("0.2")))
    before = seen(run)
    run = here.world.route(run)
    counted = {row.kind: row.items for row in before.rows if row.kind != MODEL}
    models = [row.items for row in before.rows if row.kind == MODEL]
    assert [*models, *counted.values()] == sent(run)
    assert before.people == asked(run)
    assert before.expert == WorkItem.objects.filter(batch=run.expert_routed_batch).count()
    assert before.expert_cost == before.expert * run.expert_cost
    assert EXPERT in counted


class TestPages:
    @pytest.fixture
    def world(self) -> World:
        return make_world(120)

    @pytest.fixture
    def client_of(self, world: World) -> Client:
        client = Client()
        client.force_login(world.manager)
        return client

    def test_the_run_page_shows_it_and_asks(self, world: World, client_of: Client) -> None:
        run = world.analysed(m=60)
        before = seen(run)
        page = client_of.get(reverse("run", args=[world.project.slug, run.number])).content.decode()
        assert 'data-ask-more="what-routing-does"' in page
        assert page.count("Still to be paid") == 2, "folded on the page, and in the dialog"
        assert f">{before.rows[0].items}<" in page
        answer = client_of.get(reverse("overview", args=[world.project.slug])).content.decode()
        assert "See what routing does" in answer

    def test_labels_of_the_calibration_are_told_from_what_is_left(
        self, world: World, client_of: Client
    ) -> None:
        """Else "0 are left for people" stands beside "People 60"."""
        run = world.analysed(m=60, p=Decimal(1))
        address = reverse("run", args=[world.project.slug, run.number])
        page = client_of.get(address).content.decode()
        before = seen(run)
        assert before.labelled == 60
        assert "Labelled by people already" in page
        assert f"people label {before.people} more item" in page
        run = world.route(run)
        page = client_of.get(address).content.decode()
        assert "of these 60 in the calibration" in page

    def test_programs_get_it_too(self, world: World, client_of: Client) -> None:
        run = world.analysed(m=60)
        address = reverse("api_run_route", args=[world.project.slug, run.number])
        found = client_of.get(address).json()
        before = seen(run)
        assert [row["items"] for row in found["destinations"]] == [row.items for row in before.rows]
        assert Decimal(found["cost"]) == before.cost
        world.route(run)
        assert client_of.get(address).status_code == 404
