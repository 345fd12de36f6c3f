"""Pages of a run: plan, jobs, run, deliveries."""

import io
import json
import re

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.common.files import store_file
from annotation.labelling import queue
from annotation.models import Job, Skip
from annotation.templatetags.hypac import code_spans, percent
from routing.models import Delivery, DeliveryFile
from routing.runs.labelling_pace import labelling_progress_of
from routing.runs.queries import run_report
from testbed.factories import add_member
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def text(answer) -> str:
    """The page without the symbols beside its words."""
    assert answer.status_code == 200
    return re.sub(r'<svg class="icon.*?</svg>', "", answer.content.decode())


class TestJobs:
    def test_the_part_stops_asking_once_the_job_has_ended(self, owner, project) -> None:
        job = Job.objects.create(project=project, kind="import", state="running", done=5, total=10)
        url = reverse("job", args=[project.slug, job.pk])
        part = owner.get(url, headers={"HX-Request": "true"})
        assert part.status_code == 200
        assert "5 of 10" in part.content.decode()
        Job.objects.update(state="failed", error="No room on the disk. Make some.")
        part = owner.get(url, headers={"HX-Request": "true"})
        assert part.status_code == 286
        assert "No room on the disk" in part.content.decode()

    def test_a_failed_job_is_told_on_the_overview_and_started_again(self, owner, project) -> None:
        job = Job.objects.create(project=project, kind="import", state="failed", error="No room on the disk.")
        page = text(owner.get(reverse("overview", args=[project.slug])))
        assert "No room on the disk." in page
        owner.post(reverse("job_retry", args=[project.slug, job.pk]))
        job.refresh_from_db()
        assert job.state == "queued"

    def test_the_overview_stops_asking_when_nothing_moves(self, owner, project) -> None:
        part = owner.get(reverse("overview", args=[project.slug]), headers={"HX-Request": "true"})
        assert part.status_code == 286


class TestPlan:
    def test_every_field_says_what_is_wrong_and_keeps_what_was_typed(self, client_of) -> None:
        world = make_world(60)
        client = client_of(world.manager)
        url = reverse("plan", args=[world.project.slug])
        good = {"epsilon": "10", "alpha": "10", "target": "dataset", "m": "40", "p": "0.9"}
        for name, value, words in [
            ("epsilon", "100", "above 0 and below 100"),
            ("alpha", "0", "above 0 and below 100"),
            ("m", "61", "cannot be drawn from a pool of 60"),
            ("p", "1.5", "at most 1"),
            ("epsilon", "five", "Write a percentage such as 5 or 0.5 %."),
        ]:
            page = text(client.post(url, {**good, name: value}))
            assert words in page, name
            assert f'value="{value}"' in page
            part = text(client.get(reverse("plan_outlook", args=[world.project.slug]), {**good, name: value}))
            assert words in part, name
        assert not world.project.runs.exists()
        assert client.post(url, good).url == reverse("run", args=[world.project.slug, 1])
        assert "is under way" in text(client.post(url, good))
        assert world.project.runs.count() == 1

    def test_a_plan_that_cannot_certify_anything_starts_only_when_confirmed(self, client_of) -> None:
        world = make_world(60)
        client = client_of(world.manager)
        url = reverse("plan", args=[world.project.slug])
        hopeless = {"epsilon": "1", "alpha": "1", "target": "dataset", "m": "20", "p": "0.9"}
        words = "Start anyway: people will label everything"
        assert words not in text(client.get(url))
        page = text(client.post(url, hopeless))
        assert words in page
        assert "Nothing was started" in page
        assert "Too few labels to certify anything" in page
        assert 'name="m" value="20"' in page
        assert not world.project.runs.exists()
        part = text(client.get(reverse("plan_outlook", args=[world.project.slug]), hopeless))
        assert "Too few labels to certify anything" in part
        answer = client.post(url, {**hopeless, "anyway": "on"})
        assert answer.url == reverse("run", args=[world.project.slug, 1])
        assert world.project.runs.get().m == 20


class TestDeliveries:
    def test_a_file_that_the_storage_has_lost_is_said_to_be_gone(self, client_of) -> None:
        world = make_world(60)
        delivery = Delivery.objects.create(run=world.routed(m=40), number=1, rows=1, blanks=0)
        stored = store_file(
            project=world.project, content=io.BytesIO(b"x"), original_name="x.csv", media_type="text/csv"
        )
        DeliveryFile.objects.create(delivery=delivery, name="labels.csv", file=stored)
        default_storage.delete(stored.storage_name)
        path = reverse("delivery_file", args=[world.project.slug, delivery.pk, "labels.csv"])
        page = text(client_of(world.manager).get(path, follow=True))
        assert "no longer in the storage. Make a new delivery." in page


class TestRun:
    def test_the_report_and_its_downloads(self, client_of) -> None:
        world = make_world(200)
        run = world.complete(m=120)
        client = client_of(world.manager)
        parts = {
            "run": ("What is certified", "Net saving", "Every item has its label.", "Who labels what"),
            "run_evidence": ("does not hold its stated level", "canvas data-figure", "The same as a table"),
            "run_plan": ("Ledger", run.pool_hash),
        }
        for name, expected in parts.items():
            page = text(client.get(reverse(name, args=[world.project.slug, run.number])))
            for words in expected:
                assert words in page, words
            for other in parts:
                assert f'href="{reverse(other, args=[world.project.slug, run.number])}"' in page
            assert page.count('aria-current="page">') >= 1
        downloaded = client.get(reverse("run_certificate", args=[world.project.slug, run.number]))
        assert downloaded.content.decode() == run.certificate.document
        draw = client.get(reverse("run_draw", args=[world.project.slug, run.number]))
        assert draw.content.decode() == run.certificate.draw_lines
        run.invalid_reasons = [{"code": "", "params": {}, "words": "A calibration label was changed."}]
        run.save(update_fields=["invalid_reasons"])
        page = text(client.get(reverse("run", args=[world.project.slug, run.number])))
        assert "This run is no longer valid." in page
        assert "A calibration label was changed." in page

    def test_the_sources_and_what_waits_add_up_to_the_pool(self, client_of) -> None:
        world = make_world(200)
        run = world.routed(m=80)
        waiting = run.routed_batch.work_items.count()
        report = run_report(run)
        assert report.unlabelled == waiting > 0
        assert sum(row.items for row in report.counts) + waiting == 200
        row = f'Without a label</th><td></td><td class="number" data-label="Items">{waiting}</td>'
        for name in ("run", "run_certificate_page"):
            page = text(client_of(world.manager).get(reverse(name, args=[world.project.slug, run.number])))
            assert row in page, name
        world.finish()
        assert run_report(run).unlabelled == 0
        page = text(client_of(world.manager).get(reverse("run", args=[world.project.slug, run.number])))
        assert "Without a label</th>" not in page

    def test_the_same_choice_saves_the_same_in_every_figure(self, client_of) -> None:
        world = make_world(200)
        run = world.complete(m=120)
        report = run_report(run)
        chosen = next(row for row in report.chain if row.chosen)
        assert chosen.routing_saving == report.expected_routing_saving
        own = next(p for p in report.saving_by_epsilon["points"] if p["epsilon"] == float(run.epsilon))
        assert own["values"]["this_run"] == report.expected_routing_saving
        assert report.chain[0].routing_saving == 0
        assert report.chain_name == "without a pilot, by uncertainty alone (assumed)"
        client = client_of(world.manager)
        page = text(client.get(reverse("run", args=[world.project.slug, run.number])))
        assert f"{percent(report.expected_routing_saving)} were expected" in page
        page += text(client.get(reverse("run_evidence", args=[world.project.slug, run.number])))
        drawn = json.loads(re.search(r'id="risk-data"[^>]*>(.*?)</script>', page)[1])
        tip = next(point["tip"] for point in drawn["series"][0]["points"] if point["chosen"])
        assert f"expected routing saving {percent(report.expected_routing_saving, 1)}" in tip
        for word in ("Expected cost per item", "Mean cost per item", "cost after calibration", "* the run"):
            assert word not in page

    def test_the_next_step_after_a_delivery_is_the_same_as_on_the_overview(self, client_of) -> None:
        world = make_world(60)
        run = world.complete(m=40)
        client = client_of(world.manager)
        pages = [reverse("run", args=[world.project.slug, 1]), reverse("overview", args=[world.project.slug])]
        for page in map(client.get, pages):
            assert "<button>Deliver</button>" in text(page)
        Delivery.objects.create(run=run, number=1, rows=60, blanks=0)
        target = reverse("deliveries", args=[world.project.slug])
        for page in map(client.get, pages):
            assert f'<a role="button" href="{target}">Download</a>' in text(page)
            assert "<button>Deliver</button>" not in text(page)

    def test_a_new_state_reloads_the_whole_page(self, client_of) -> None:
        world = make_world(60)
        run = world.start(m=40)
        world.do("prepare_run")
        world.label(limit=4)
        client = client_of(world.manager)
        url = reverse("run", args=[world.project.slug, run.number])
        part = client.get(url, {"state": "calibrating"}, headers={"HX-Request": "true"})
        assert part.status_code == 200
        assert '<div id="run-paid" hx-swap-oob="true">' in text(part)
        assert "What was paid so far" in text(part)
        assert '<div id="run-paid">' in text(client.get(url))
        part = client.get(url, {"state": "preparing"}, headers={"HX-Request": "true"})
        assert part.headers["HX-Refresh"] == "true"

    def test_a_run_that_is_calibrated_leads_to_labelling_and_names_who_is_at_work(self, client_of) -> None:
        world = make_world(60)
        world.start(m=40)
        world.do("prepare_run")
        world.label(limit=4)
        assert queue.claim(project=world.project, user=world.annotators[0])
        client = client_of(world.manager)
        url = reverse("run", args=[world.project.slug, 1])
        page = text(client.get(url))
        assert f'<a role="button" href="{reverse("annotate", args=[world.project.slug])}">Label</a>' in page
        assert "4 labels in the last hour" in page
        assert f"<bdi>{world.annotators[0].username}</bdi>" in page
        assert 'hx-trigger="every 10s"' in page
        world.finish()

    def test_what_is_asked_for_again_leaves_out_what_the_analysis_found(self, client_of) -> None:
        world = make_world(60)
        world.routed(m=40)
        client = client_of(world.manager)
        url = reverse("run", args=[world.project.slug, 1])
        with CaptureQueriesContext(connection) as queries:
            assert "What was paid so far" in text(
                client.get(url, {"state": "labelling"}, headers={"HX-Request": "true"})
            )
        for table in ("routing_prediction", "routing_certificate", "routing_route"):
            assert not [one["sql"] for one in queries if f'FROM "{table}"' in one["sql"]], table

    def test_nothing_is_asked_for_again_while_a_run_is_paused(self, client_of) -> None:
        world = make_world(60)
        world.start(m=40)
        client = client_of(world.manager)
        url = reverse("run", args=[world.project.slug, 1])
        assert 'hx-trigger="every 3s"' in text(client.get(url))
        world.project.jobs.update(state="paused")
        assert 'hx-trigger="every' not in text(client.get(url))

    def test_amounts_that_are_no_money_have_no_hundredths(self, client_of) -> None:
        world = make_world(60, human_cost="1808")
        type(world.project).objects.update(currency="tokens")
        world.project.refresh_from_db()
        world.calibrated(m=40)
        page = text(client_of(world.manager).get(reverse("run_plan", args=[world.project.slug, 1])))
        assert "1,808\N{NO-BREAK SPACE}tokens" in page
        assert "1808 tokens" not in page
        assert "1,808.00" not in page

    def test_the_work_of_a_run_leads_to_its_run(self, client_of) -> None:
        world = make_world(60)
        run = world.calibrated(m=40)
        job = world.project.jobs.get(kind="prepare_run")
        page = text(client_of(world.manager).get(reverse("job", args=[world.project.slug, job.pk])))
        address = reverse("run", args=[world.project.slug, run.number])
        assert f'<a href="{address}">Back to run 1</a>' in page

    def test_items_that_everybody_skipped_are_decided_on_the_overview(self, client_of, waiting) -> None:
        annotator, owner = add_member(waiting, "annotator"), waiting.created_by
        for user in (annotator, owner):
            while task := queue.claim(project=waiting, user=user):
                queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
        client = client_of(owner)
        page = text(client.get(reverse("overview", args=[waiting.slug])))
        assert "Nobody is left to label 3 items" in page
        asks = re.search(r'value="give_up"[^>]*data-ask="([^"]+)"', page)
        assert asks, "it counts as an error, and cannot be taken back here"
        assert asks[1].startswith("Leave this item without a label?")
        first, second, _ = waiting.work_batches.get().work_items.order_by("pk")
        client.post(reverse("work_decide", args=[waiting.slug, first.pk]), {"decision": "give_up"})
        client.post(reverse("work_decide", args=[waiting.slug, second.pk]), {"decision": "ask_again"})
        first.refresh_from_db()
        assert first.state == "unlabelable"
        pace = labelling_progress_of(first.batch, queue.batch_progress(first.batch))
        assert (pace.last_hour, pace.ended) == (0, 1), "a decision is no label"
        assert not Skip.objects.filter(work_item=second, cleared_at__isnull=True).exists()


def test_code_in_sentences_is_shown_as_code_and_nothing_else_is_markup() -> None:
    assert code_spans("`a<b>` and <i>") == "<code>a&lt;b&gt;</code> and &lt;i&gt;"
