"""A run without any model from the import to the delivery, by pages, API and command."""

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.jobs import jobs
from annotation.labelling.labels_of_record import disagreements
from annotation.models import Project, WorkItem
from routing.models import Run
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import files_of, rows_of
from tests.routing.by_people.people import answer, asked, delivered, page_of, plain

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


class TestTheWholeWay:
    def test_from_an_import_to_a_delivery_with_two_people_and_a_review(self, client_of: Any) -> None:
        project = make_project()
        client, slug = client_of(project.created_by), project.slug
        first, second = add_member(project, "annotator"), add_member(project, "annotator")
        make_items(project, [f"wanted {n}" for n in range(8)] + [f"other {n}" for n in range(4)])

        overview = page_of(client, "overview", slug)
        assert "People label everything" in overview
        assert "Add a model" in overview
        form = page_of(client, "people_run", slug)
        assert 'name="q"' in form
        assert 'name="overlap"' in form
        assert '<button data-ask="Ask people about these items?' in form

        fields = {"q": "wanted", "overlap": "2", "overlap_share": "1", "sample": ""}
        looked = client.post(reverse("people_run", args=[slug]), {**fields, "look": "1"}).content.decode()
        assert "<dd>8</dd>" in looked
        assert "<dd>16</dd>" in looked
        assert not Run.objects.exists()
        client.post(reverse("people_run", args=[slug]), fields)
        run = Run.objects.get()
        assert (run.state, run.pool_size, run.by_people) == (Run.State.LABELLING, 8, True)
        assert "People label" in page_of(client, "run", slug, run.number)
        assert "16 answers" not in page_of(client, "overview", slug).replace("16 answers by people", "")

        assert len(answer(project, first, "cat")) == 8
        assert run.routed_batch is not None
        assert len(answer(project, second, "cat", most=6)) == 6
        assert len(answer(project, second, "dog")) == 2
        assert "people disagree about 2 items" in page_of(client, "overview", slug)
        assert "Decide about disagreements" in page_of(client, "run", slug, run.number)
        for _ in range(2):
            dispute = WorkItem.objects.filter(batch=run.routed_batch, slot=0, labels__value="cat")
            waits = next(row for row in dispute if queue_of_disputes(project, row))
            client.post(
                reverse("review_decide", args=[slug]),
                {"work_item": waits.pk, "choice": "dog", "value": "dog"},
            )
        run.refresh_from_db()
        assert run.state == Run.State.COMPLETE
        assert "Make the files" in page_of(client, "overview", slug)
        assert "75" in page_of(client, "agreement", slug)

        delivery = delivered(client, run)
        files = files_of(delivery)
        assert not {"certificate.json", "draw.jsonl", "committed.jsonl"}.intersection(files)
        readme = plain(files["README.md"].decode())
        assert "Nothing is certified about them" in readme
        assert "Two of these people differ on 25 % (25 % to 25 %) of the 8 items." in readme
        assert "without a label that these filters found: `q = wanted`" in readme
        assert set(json.loads(files["manifest.json"])["files"]) == set(files) - {"manifest.json"}
        rows = rows_of(run)
        assert [row.label for row in rows].count("dog") == 2
        assert {row.reason for row in rows[8:]} == {
            f"not covered by run {run.number}: nobody was asked about it there"
        }
        assert {row.certificate_id for row in rows} == {None}
        page = page_of(client, "deliveries", slug)
        assert "nothing certified" in page
        assert "Two of these people differ on 25 %" in page
        assert "hypac-verify" not in page
        overview = page_of(client, "overview", slug)
        assert "Have people label more" in overview
        [told] = client.get(reverse("api_deliveries", args=[slug])).json()["results"]
        assert (told["certified"], told["certificate"]) == (False, "")
        assert told["two_people"] | {"low": 0.25, "high": 0.25} == {
            **{"asked": 8, "items": 8, "used": 8, "differ": 2, "unknown": 0, "estimate": 0.25},
            **{"low": 0.25, "high": 0.25},
        }
        body = client.get(reverse("api_run", args=[slug, run.number])).json()
        assert (body["epsilon"], body["alpha"], body["by_people"]) == (None, None, True)
        assert body["people_agreement"]["differ"] == 2


def queue_of_disputes(project: Project, row: WorkItem) -> bool:
    return disagreements(project, project.created_by).filter(pk=row.pk).exists()


class TestDeliveries:
    def test_a_part_by_filters_and_what_is_new(self, client_of: Any) -> None:
        project = make_project()
        annotator = add_member(project, "annotator")
        make_items(project, [f"wanted {n}" for n in range(3)] + ["other"])
        run = asked(project)
        client = client_of(project.created_by)
        answer(project, annotator, most=2)
        first = delivered(client, run)
        assert (first.rows, first.blanks) == (4, 2)
        assert "partial" in files_of(first)["README.md"].decode()
        answer(project, annotator)
        address = reverse("run_deliver", args=[project.slug, run.number])
        for fields, rows in (({"since": first.pk}, 2), ({"q": "wanted"}, 3)):
            client.post(address, fields)
            job = project.jobs.filter(kind="deliver_run").order_by("-pk")[0]
            jobs.run(job.pk)
            job.refresh_from_db()
            assert job.result["rows"] == rows, job.error
        assert 'name="q"' in page_of(client, "deliveries", project.slug)


class TestPrograms:
    def test_do_the_same(self, client_of: Any) -> None:
        project = make_project()
        make_items(project, [f"wanted {n}" for n in range(8)] + ["other"])
        client = client_of(project.created_by)

        def post(name: str, body: dict[str, Any]) -> Any:
            address = reverse(name, args=[project.slug])
            return client.post(address, body, content_type="application/json")

        fields = {"filters": {"q": "wanted"}, "sample": 4, "overlap": 2, "overlap_share": "0.5"}
        found = post("api_people_outlook", fields).json()
        assert (found["matching"], found["items"], found["answers"]) == (8, 4, 6)
        assert post("api_people_runs", {"filters": {"nothing": "x"}}).status_code == 400
        made = post("api_people_runs", fields)
        assert made.status_code == 201
        assert made.json()["chosen"]["sample"] == 4
        assert post("api_people_runs", {}).status_code == 409

    def test_so_does_the_command(self, capsys: Any) -> None:
        project = make_project()
        make_items(project, 4)
        on_behalf = {"user": project.created_by.username, "json": True}
        call_command("people_run", project.slug, sample=3, **on_behalf)
        assert json.loads(capsys.readouterr().out)["items"] == 3
        assert not Run.objects.exists()
        call_command("people_run", project.slug, start=True, **on_behalf)
        assert json.loads(capsys.readouterr().out)["pool_size"] == 4
        with pytest.raises(Exception, match="waits for people"):
            call_command("deliver", project.slug, "newest", **on_behalf)


class TestNextSteps:
    def test_every_page_of_a_project_without_models_has_one(self, client_of: Any) -> None:
        project = make_project()
        client, slug = client_of(project.created_by), project.slug
        assert reverse("import_upload", args=[slug]) in page_of(client, "people_run", slug)
        make_items(project, 3)
        address = reverse("people_run", args=[slug])
        for name in ("overview", "plan", "runs", "sources", "deliveries"):
            assert address in page_of(client, name, slug), name

    def test_who_may_not_start_it_is_told_what_is_waited_for(self, client_of: Any) -> None:
        project = make_project()
        make_items(project, 3)
        address = reverse("people_run", args=[project.slug])
        for role in ("reviewer", "viewer"):
            assert address not in page_of(client_of(add_member(project, role)), "overview", project.slug)
