"""What the page of an import says of the answers of models in a file, and the way on to make them sources."""

from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from annotation.jobs import jobs
from annotation.models import Job
from routing.sources.suggested import add_suggested
from testbed.factories import add_member
from tests.annotation.imports.test_import_pages import shown, text, upload

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def _pair(answers: str, sure: str) -> str:
    return f'<bdi class="mono">{answers}</bdi>, and how sure it is: <bdi class="mono">{sure}</bdi>'


def test_a_column_with_its_confidence_is_said_to_be_a_model(owner, project) -> None:
    page = text(owner.get(upload(owner, project, "body,bert,bert_conf\none,a,0.5\ntwo,b,0.7\n")))
    assert shown(page) == ["body"]
    assert "This file holds the answers of 1 model" in page
    assert _pair("bert", "bert_conf") in page
    assert "choose “Make them sources” on the page that comes then" in page
    assert "<strong>bert</strong></bdi>: by its name" in page
    page = text(owner.get(upload(owner, project, "body,wine,wine_score\none,red,0.5\ntwo,white,0.7\n")))
    assert _pair("wine", "wine_score") in page
    page = text(owner.get(upload(owner, project, "body,wine,wine_score\none,red,87\ntwo,white,91\n")))
    assert "holds the answers of" not in page
    page = text(owner.get(upload(owner, project, "body,pred1,conf1\none,cat,0.5\ntwo,dog,0.7\n")))
    assert _pair("pred1", "conf1") in page


def test_after_the_import_one_click_leads_to_where_models_become_sources(owner, project) -> None:
    rows = "body,bert,bert_conf,pred1\n" + "".join(
        f"text {n},{['cat', 'dog'][n % 2]},0.5,cat\n" for n in range(8)
    )
    page = owner.post(upload(owner, project, rows), {"text_column": ["body"]})
    job = Job.objects.get()
    assert "Make them sources" not in text(owner.get(page.url))  # nothing has come yet
    jobs.run(job.pk)
    done = text(owner.get(page.url))
    assert "The data holds the answers of 2 models" in done
    sources = reverse("sources", args=[project.slug])
    assert f'<a role="button" href="{sources}">Make them sources</a>' in done
    again = text(owner.get(upload(owner, project, rows.replace("text", "another text"))))
    assert "This file holds the answers of 2 models" in again
    project.refresh_from_db()
    prices = {"bert": Decimal(1), "pred1": Decimal(2)}
    add_suggested(project=project, user=project.created_by, prices=prices)
    assert "Make them sources" not in text(owner.get(page.url))
    again = text(owner.get(upload(owner, project, rows.replace("text", "another text"))))
    assert "This file holds" not in again  # they are read by sources already
    viewer = Client()
    viewer.force_login(add_member(project, "viewer"))
    project.sources.all().delete()
    assert "Make them sources" not in text(viewer.get(page.url))


def test_other_answers_name_the_kind_of_model_that_reads_them(owner, project) -> None:
    rows = "body,small_model,entropy\n" + "".join(f"text {n},{['cat', 'dog'][n % 2]},0.5\n" for n in range(8))
    page = text(owner.get(upload(owner, project, rows)))
    kind = "“Answers that came with the data”"
    assert f"“Add a model” on the page “Sources” reads them as {kind}." in page
    assert f"choose {kind}" in text(owner.get(reverse("sources", args=[project.slug])))
    form = text(owner.get(reverse("source_new", args=[project.slug])))
    assert kind.strip("“”") in form
