"""Candidate prompts: compared on development items, which no run draws; each answer is paid once."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse

from annotation.errors import ConflictError, InputError, UnderWayError
from annotation.models import AuditEvent, Job
from annotation.projects.lifecycle import delete_project
from annotation.projects.manage import update_project
from routing.held_out.manage import hold_out, set_answer
from routing.models import Prediction, PromptCandidate, Reservation, Source, Spend
from routing.rounds.start import add_note, close_round, start_round
from routing.runs.pool import pool_of
from routing.runs.source_changes import fingerprint_now
from routing.runs.start import start_run
from routing.sources.backends import Prompt
from routing.sources.manage import delete_source, save_source
from routing.sources.prompt_versions import prompt_in_force
from routing.workshop.candidates import (
    candidates_of,
    estimate,
    run_candidate,
    use_candidate,
    write_candidate,
)
from routing.workshop.development import (
    draw_items,
    labelled_in_rounds,
    labelled_items,
    next_to_label,
    take_over_rounds,
)
from routing.workshop.results import compare_candidates
from testbed.factories import add_member, remove_deleted
from tests.routing.by_people.people import answer
from tests.routing.workshop.workshop import SIZE, Workshop, label_of, place

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


class TestDevelopmentItems:
    def test_they_are_drawn_at_random_kept_out_of_every_run_and_stay_so(self, workshop: Workshop) -> None:
        held = workshop.drawn(labelled=False)
        assert len(held) == 20
        assert all(one.at_random and one.purpose == "prompts" for one in held)
        for target in ("population", "dataset", "pool"):
            pool = set(pool_of(workshop.project, target).values_list("pk", flat=True))
            assert len(pool) == SIZE - 20
            assert not pool & {one.item_id for one in held}
        for size in (0, -20, 181):
            with pytest.raises(InputError, match="20 to 200"):
                draw_items(access=workshop.lead, size=size)
        assert len(workshop.drawn(5, labelled=False)) == 5
        with pytest.raises(InputError, match="drawn at random"):
            hold_out(access=workshop.lead, purpose="prompts", names=["t1"])

    def test_they_are_labelled_one_by_one_and_one_can_wait(self, workshop: Workshop, client_of: Any) -> None:
        first, second, *_others = workshop.drawn(labelled=False)
        client = client_of(workshop.project.created_by)
        address = reverse("candidates_label", args=[workshop.project.slug, workshop.source.pk])
        assert first.item.text in client.get(address).content.decode()
        assert second.item.text in client.get(f"{address}?after={first.pk}").content.decode()
        answered = client.post(address, {"held": second.pk, "value": "dog"})
        assert answered.status_code == 302
        assert list(labelled_items(workshop.project).values_list("pk", "answer")) == [(second.pk, "dog")]
        refused = client.post(address, {"held": first.pk, "value": "cow"})
        assert first.item.text in refused.content.decode()
        assert next_to_label(workshop.project) == first
        other = workshop.project.items.exclude(held_out__isnull=False).first()
        assert client.post(address, {"held": other.pk + 10**6, "value": "dog"}).status_code == 404

    def test_what_people_agreed_on_in_rounds_is_taken_over(self, workshop: Workshop) -> None:
        project, lead = workshop.project, workshop.lead
        one, other = add_member(project), add_member(project)
        found = start_round(access=lead, size=5, entropy=2)
        answer(project, one, "cat")
        answer(project, other, "dog", most=2)
        answer(project, other, "cat")
        assert labelled_in_rounds(project) == []
        close_round(access=lead, found=found)
        assert sorted(label for _item, label in labelled_in_rounds(project)) == ["cat"] * 3
        open_ones = found.items.exclude(item__in=[pk for pk, _label in labelled_in_rounds(project)])
        add_note(access=lead, found=found, item=open_ones.first().item, value="dog")
        assert take_over_rounds(access=lead) == 4
        assert sorted(one.answer for one in labelled_items(project)) == ["cat", "cat", "cat", "dog"]
        with pytest.raises(ConflictError, match="could be taken over"):
            take_over_rounds(access=lead)


class TestWriting:
    def test_the_first_is_the_prompt_in_force(self, workshop: Workshop) -> None:
        (only,) = candidates_of(workshop.source)
        assert (only.number, only.pk) == (1, None)
        made = workshop.written()
        first, second = candidates_of(workshop.source)
        assert first.template == prompt_in_force(workshop.source).template
        assert (second.pk, second.number, second.template) == (made.pk, 2, "Animal: {{ text }}")
        assert [one.in_force for one in workshop.results] == [True, False]

    @pytest.mark.parametrize(
        ("template", "params", "where"),
        [
            ("no item", {}, "template"),
            ("{{ nothing }}", {}, "template"),
            ("{{ text }}", {"temperature": 3}, "temperature"),
            ("{{ text }}", {"url": "http://elsewhere"}, "url"),
        ],
    )
    def test_what_cannot_be_asked_is_refused(
        self, workshop: Workshop, template: str, params: dict[str, Any], where: str
    ) -> None:
        with pytest.raises(InputError) as refused:
            workshop.written(template, **params)
        assert refused.value.where == where
        assert not PromptCandidate.objects.exists()

    def test_two_never_ask_in_the_same_way(self, workshop: Workshop) -> None:
        workshop.written()
        with pytest.raises(InputError, match="Candidate 2 asks in just this way"):
            workshop.written()
        assert workshop.written(temperature=0.5).number == 3

    def test_it_is_never_changed(self, workshop: Workshop) -> None:
        made = workshop.written()
        made.template = "Else: {{ text }}"
        with pytest.raises(IntegrityError, match="write another one"), transaction.atomic():
            made.save()


class TestRunning:
    def test_each_item_is_asked_and_paid_once_and_the_figures_are_right(self, workshop: Workshop) -> None:
        held = workshop.drawn()
        made = workshop.written()
        assert workshop.ran(made).state == Job.State.DONE
        assert workshop.ran(candidates_of(workshop.source)[0]).state == Job.State.DONE
        assert len(workshop.server.calls) == 40
        assert workshop.ran(made).state == Job.State.DONE
        assert len(workshop.server.calls) == 40

        first, second = workshop.results
        numbers = [place(one.item.text) for one in held]
        assert (first.asked, first.wrong, len(first.usable)) == (20, sum(n % 2 == 0 for n in numbers), 20)
        assert (second.asked, second.wrong, len(second.usable)) == (20, 0, 20 - numbers.count(0))
        assert second.low == 0.0
        assert second.high is not None
        assert 0.1 < second.high < 0.2
        assert second.ece is not None
        assert second.whole_cost == second.mean_cost * SIZE

        spent = Spend.objects.filter(candidate=made)
        costs = Prediction.objects.filter(fingerprint=second.candidate.fingerprint)
        assert sum(row.amount for row in spent) == sum(row.cost for row in costs) > 0
        assert {row.stage for row in spent} == {"prompts"}
        assert not Reservation.objects.exclude(state="settled").exists()

        both = compare_candidates(first, second)
        assert (both.both, both.only_first, both.only_second) == (20, 0, 20 - first_right(numbers))
        assert {row.item.pk for row in both.rows} == {
            one.item_id for one in held if place(one.item.text) % 2 == 0
        }

    def test_a_budget_stops_it_and_a_larger_one_goes_on(self, workshop: Workshop) -> None:
        workshop.drawn()
        made = workshop.written()
        told = estimate(made)
        assert (told.missing, told.about) == (20, Decimal(20))
        assert told.most is not None
        stopped = workshop.ran(made, budget=(told.most / 4).quantize(Decimal("0.01")))
        assert stopped.state == Job.State.FAILED
        assert "larger budget" in stopped.error_in_words
        asked = len(workshop.server.calls)
        assert 0 < asked < 20
        paid = sum(row.amount for row in Spend.objects.filter(candidate=made))
        assert paid <= told.most / 4
        assert estimate(made).missing == 20 - asked
        assert workshop.ran(made, budget=told.most).state == Job.State.DONE
        assert len(workshop.server.calls) == 20

    def test_only_labelled_items_are_asked_about_and_later_ones_join(self, workshop: Workshop) -> None:
        held = workshop.drawn(labelled=False)
        made = workshop.written()
        with pytest.raises(ConflictError, match="Label some first"):
            run_candidate(access=workshop.lead, candidate=made)
        for one in held[:3]:
            set_answer(access=workshop.lead, held=one, answer=label_of(one.item))
        workshop.ran(made)
        assert {place(call.prompt) for call in workshop.server.calls} == {
            place(one.item.text) for one in held[:3]
        }
        set_answer(access=workshop.lead, held=held[3], answer="cat")
        assert estimate(made).missing == 1
        workshop.ran(made)
        assert len(workshop.server.calls) == 4

    def test_one_of_a_source_runs_at_a_time(self, workshop: Workshop) -> None:
        workshop.drawn()
        made = workshop.written()
        run_candidate(access=workshop.lead, candidate=made)
        with pytest.raises(UnderWayError):
            run_candidate(access=workshop.lead, candidate=candidates_of(workshop.source)[0])

    def test_other_guidelines_ask_otherwise(self, workshop: Workshop) -> None:
        workshop.drawn()
        made = workshop.written("Animal? {{ guidelines }} {{ text }}")
        workshop.ran(made)
        assert not workshop.results[1].changed
        update_project(project=workshop.project, user=workshop.project.created_by, guidelines="Look at ears.")
        assert workshop.results[1].changed
        (_first, again) = candidates_of(Source.objects.get(pk=workshop.source.pk))
        assert estimate(again).missing == 20
        workshop.ran(again)
        assert len(workshop.server.calls) == 40
        assert not workshop.results[1].changed


class TestUsing:
    def test_it_becomes_the_prompt_of_the_source_with_the_answers_it_has(self, workshop: Workshop) -> None:
        workshop.drawn()
        made = workshop.written(temperature=0.5)
        workshop.ran(made)
        source = use_candidate(access=workshop.lead, candidate=made)
        assert prompt_in_force(source).template == made.template
        assert source.params == {
            "url": workshop.server.url,
            "model": "tiny",
            "max_tokens": 8,
            "temperature": 0.5,
        }
        made.refresh_from_db()
        assert fingerprint_now(source) == made.fingerprint
        assert [one.in_force for one in workshop.results] == [False, True]
        actions = AuditEvent.objects.filter(action__startswith="source.candidate").values_list(
            "action", flat=True
        )
        assert set(actions) == {f"source.candidate_{done}" for done in ("written", "run", "used")}

    def test_a_run_that_rests_on_the_source_keeps_it_and_its_items_as_they_are(
        self, workshop: Workshop
    ) -> None:
        made = workshop.written()
        plan = {"epsilon": Decimal("0.3"), "alpha": Decimal("0.3"), "m": 20, "p": Decimal("0.9")}
        start_run(project=workshop.project, user=workshop.project.created_by, **plan)
        with pytest.raises(ConflictError, match="under way"):
            draw_items(access=workshop.lead, size=20)
        with pytest.raises(ConflictError, match="under way"):
            use_candidate(access=workshop.lead, candidate=made)
        assert prompt_in_force(workshop.source).template != made.template


class TestRemoving:
    def test_a_source_goes_with_candidates_that_were_never_run_and_stays_with_what_was_paid(
        self, workshop: Workshop
    ) -> None:
        workshop.drawn()
        workshop.ran(workshop.written())
        with pytest.raises(ConflictError, match="paid for answers"):
            delete_source(source=workshop.source, user=workshop.project.created_by)
        assert workshop.written("Other animal: {{ text }}").number == 3
        other = save_source(
            project=workshop.project,
            user=workshop.project.created_by,
            name="Other",
            backend="openai_api",
            params={"url": workshop.server.url, "model": "tiny"},
            cost_per_label=Decimal(1),
        )
        write_candidate(access=workshop.lead, source=other, prompt=Prompt("{{ text }}"))
        delete_source(source=other, user=workshop.project.created_by)
        assert not PromptCandidate.objects.filter(source_id=other.pk).exists()

    def test_a_project_takes_them_along(self, workshop: Workshop) -> None:
        workshop.drawn()
        workshop.ran(workshop.written())
        delete_project(
            project=workshop.project, actor=workshop.project.created_by, name=workshop.project.name
        )
        remove_deleted(workshop.project)
        assert not PromptCandidate.objects.exists()


def first_right(numbers: list[int]) -> int:
    """On how many of these items the second is not alone right."""
    return sum(number % 2 == 1 or number == 0 for number in numbers)
