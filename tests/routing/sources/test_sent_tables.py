"""Answers that are sent in as a table, in any encoding, and the words in them that are no labels."""

import io
import json
from datetime import timedelta

import pytest
from django.contrib.admin import site
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone
from openpyxl import Workbook

from annotation.admin import JobAdmin
from annotation.errors import InputError
from annotation.imports.encodings import EncodingNeededError
from annotation.imports.sent_files import keep_for_import
from annotation.imports.upload import preview
from annotation.jobs import jobs
from annotation.models import Job
from routing.items.erase import erase_items
from routing.models import SentAnswer
from routing.runs.raw_output import forget_raw_output
from routing.sources.save_mends import save_mends
from routing.sources.sent_answers import KIND, send_answers, store_answers_file
from routing.sources.sent_tables import columns_of
from routing.sources.sent_words import page_of_sent_answers, refused_words
from testbed.factories import make_items, make_project, make_user
from tests.routing.sources.sending import counts, problems, uploaded

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.fixture
def source(db):
    project = make_project(choices=("cat", "dog"))
    make_items(project, 5)
    return uploaded(project)


def kept(source, content: bytes, name: str):
    return store_answers_file(project=source.project, content=io.BytesIO(content), name=name)


def read(source, content: bytes, name: str = "answers.csv", **options) -> Job:
    stored = kept(source, content, name)
    job = send_answers(source=source, user=source.project.created_by, stored_file=stored, **options)
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def answers(source) -> dict[str, tuple]:
    rows = SentAnswer.objects.filter(revision__source=source).select_related("item")
    return {row.item.external_id: (row.answer["label"], row.answer["raw"]) for row in rows}


def test_a_formula_that_was_never_computed_is_no_missing_answer(source) -> None:
    book, content = Workbook(), io.BytesIO()
    for row in (["id", "label"], ["t0", '="c"&"at"'], ["t1", "dog"]):
        book.active.append(row)
    book.save(content)
    job = read(source, content.getvalue(), "answers.xlsx")
    assert counts(job) == (1, 0, 1)
    ((where, message),) = problems(job).items()
    assert (where, "never computed" in message) == ("row 2, column “label”", True)


def workbook(*rows) -> bytes:
    book, content = Workbook(), io.BytesIO()
    book.active.append(["only notes"])
    sheet = book.create_sheet("answers")
    for row in rows:
        sheet.append(row)
    book.save(content)
    return content.getvalue()


TABLE = [["id", "text", "guess", "guess_conf"], ["t0", "a", "cat", 0.9], ["t1", "b, c", "dog", 0.25]]
CSV = b'id,text,guess,guess_conf\nt0,a,cat,0.9\nt1,"b, c",dog,0.25\n'


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (CSV, "answers.csv"),
        (CSV.replace(b'"b, c"', b"b").replace(b",", b"\t"), "predictions"),
        (CSV.decode().encode("utf-16"), "answers.csv"),
        (json.dumps([dict(zip(TABLE[0], row, strict=True)) for row in TABLE[1:]]).encode(), "answers.json"),
        (workbook(*TABLE), "answers.xlsx"),
    ],
)
def test_a_table_is_read_by_the_names_of_its_columns(source, content, name):
    job = read(source, content, name)
    assert counts(job) == (2, 0, 0), problems(job)
    assert answers(source) == {"t0": ("cat", {"confidence": "0.9"}), "t1": ("dog", {"confidence": "0.25"})}
    assert job.params["columns"] == {"external_id": "id", "label": "guess", "confidence": "guess_conf"}


def test_rows_that_cannot_be_used_name_line_and_column_and_an_empty_label_is_no_answer(source):
    content = b"id,label,conf,tokens_in,reason\nt0,cat,1.7,,\nt1,emu,0.5,,\nt2,,,,asleep\nt3,cat,0.5,17,x\n"
    job = read(source, content)
    assert counts(job) == (2, 0, 2)
    told = problems(job)
    assert "0 to 1" in told["line 2, column “conf”"]
    assert "no label of the project" in told["line 3, column “label”"]
    stored = {row.item.external_id: row.answer for row in SentAnswer.objects.select_related("item")}
    assert (stored["t2"]["label"], stored["t2"]["reason"]) == (None, "asleep")
    assert (stored["t3"]["tokens_in"], "reason" in stored["t3"]) == (17, False)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["who", "label"], "“who”, “label”, and none of them names the items"),
        (["id", "text"], "“id”, “text”, and none of them holds the answers"),
        (["id", "fast_label", "fast_conf", "slow_label", "slow_conf"], "“fast_label”, “slow_label”"),
    ],
)
def test_columns_that_cannot_be_told_are_named_with_what_is_needed(names, said):
    with pytest.raises(InputError) as refused:
        columns_of(names, "CSV table")
    assert said in str(refused.value)
    assert "“label”" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (CSV, {"format_name": "predictions"}, "is a table"),
        (b'{"external_id": "t0", "label": "cat"}\n', {"format_name": "table"}, "no table"),
        (b"%PDF-1.4 \0\0\0\0", {}, "neither text nor a zip archive"),
    ],
)
def test_what_is_something_else_than_was_said_is_refused_at_once(source, content, options, said):
    with pytest.raises(InputError, match=said):
        read(source, content, "answers", **options)
    assert not source.project.jobs.exists()


LATIN = (
    '{"external_id": "t0", "label": "cat"}\n{"external_id": "t1", "label": null, "reason": "fatigué, gêné"}\n'
)


def test_the_encoding_is_asked_for_and_read_as_was_said(source):
    content = LATIN.encode("latin-1")
    with pytest.raises(EncodingNeededError, match="windows-1252"):
        read(source, content, "answers.jsonl")
    assert counts(read(source, content, "answers.jsonl", encoding="windows-1252")) == (2, 0, 0)
    stored = SentAnswer.objects.get(item__external_id="t1").answer
    assert stored["reason"] == "fatigué, gêné"


def test_the_page_offers_encodings_with_words_and_reads_the_file_that_is_there(client, source):
    client.force_login(source.project.created_by)
    page = reverse("source_predictions", args=[source.project.slug, source.pk])
    sent = SimpleUploadedFile("answers.jsonl", LATIN.encode("latin-1"))
    asked = client.post(page, {"file": sent, "format": ""}).content.decode()
    assert 'value="windows-1252"' in asked
    assert "fatigué" in asked
    stored = source.project.files.get()
    answer = client.post(page, {"kept": stored.pk, "format": "", "encoding": "windows-1252"})
    job = source.project.jobs.get()
    assert answer.headers["Location"] == reverse("job", args=[source.project.slug, job.pk])
    assert job.params["encoding"] == "windows-1252"
    assert "answers.jsonl" in client.get(page).content.decode()


def test_the_api_takes_a_table_and_asks_for_an_encoding(client, source):
    client.force_login(source.project.created_by)
    address = reverse("api_source_predictions", args=[source.project.slug, source.pk])
    taken = client.post(
        f"{address}?name=book.xlsx", workbook(*TABLE), content_type="application/octet-stream"
    )
    assert taken.status_code == 202, taken.content
    jobs.run(taken.json()["id"])
    refused = client.post(address, LATIN.encode("latin-1"), content_type="application/x-ndjson")
    assert refused.status_code == 400
    assert "windows-1252" in refused.content.decode()
    again = client.post(
        f"{address}?encoding=windows-1252", LATIN.encode("latin-1"), content_type="application/x-ndjson"
    )
    assert again.status_code == 202, again.content


WRONG = b"external_id,label\nt0,Shipping\nt1,Shipping\nt2,Billing\nt3,Billing\nt4,Shipping\n"


def test_words_that_are_no_labels_are_quoted_with_counts_and_read_once_they_mean_something(client, source):
    job = read(source, WRONG)
    assert job.state == Job.State.FAILED
    client.force_login(source.project.created_by)
    health = reverse("source_health", args=[source.project.slug, source.pk])
    job_page = client.get(reverse("job", args=[source.project.slug, job.pk])).content.decode()
    assert f'href="{health}"' in job_page
    assert "Shipping" not in job_page
    assert "Start again" not in job_page
    overview = client.get(reverse("overview", args=[source.project.slug])).content.decode()
    assert "No line of answers.csv could be used" in overview
    assert "Start again" not in overview
    assert "The rest of the file was used" not in job_page
    page = client.get(health).content.decode()
    assert 'name="spelling" value="Shipping"' in page
    assert "3 lines" in page
    save_mends(source=source, user=source.project.created_by, labels={"Shipping": "cat"})
    told = refused_words(source)
    assert (told.unread, told.read_now) == ({"Billing": 2}, {"Shipping": 3})
    page = client.get(health).content.decode()
    assert "Read the file again" in page
    again = client.post(
        reverse("source_predictions", args=[source.project.slug, source.pk]),
        {"kept": told.file.pk, "format": "", "encoding": ""},
    )
    assert again.status_code == 302
    newest = source.project.jobs.order_by("-pk").first()
    jobs.run(newest.pk)
    newest.refresh_from_db()
    assert counts(newest) == (3, 0, 2)
    assert refused_words(source).unread == {"Billing": 2}


def test_words_are_not_quoted_while_a_run_is_open_nor_told_by_the_api(client, source, monkeypatch):
    job = read(source, WRONG)
    client.force_login(source.project.created_by)
    told = client.get(reverse("api_job", args=[source.project.slug, job.pk])).content.decode()
    assert "Shipping" not in told
    shown = JobAdmin(Job, site).asked(job)
    assert (shown["format"], "words" in shown) == ("", False)
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    page = client.get(reverse("admin:annotation_job_change", args=[job.pk])).content.decode()
    assert "external_id" in page
    assert "Shipping" not in page
    client.force_login(source.project.created_by)
    monkeypatch.setattr("routing.sources.sent_words.quoted_bases", lambda project: frozenset())
    assert refused_words(source) is None


def test_words_go_once_they_were_kept_as_long_as_what_models_wrote(source):
    old, young = read(source, WRONG), read(source, WRONG.replace(b"Billing", b"Advice"))
    Job.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=40))
    waiting = Job.objects.create(project=source.project, kind=old.kind, params=old.params)
    Job.objects.filter(pk=waiting.pk).update(created_at=timezone.now() - timedelta(days=40))
    before = timezone.now() - timedelta(days=30)
    assert forget_raw_output(before=before, most=1)  # there may be more
    assert not forget_raw_output(before=before, most=1)
    words = [Job.objects.get(pk=one.pk).params.get("words") for one in (old, young, waiting)]
    assert words == [None, {"Shipping": 3, "Advice": 2}, {"Shipping": 3, "Billing": 2}]
    old.refresh_from_db()
    assert old.params["columns"] == {"external_id": "external_id", "label": "label"}


def test_words_go_as_items_are_erased(source):
    job = read(source, WRONG)
    erase_items(project=source.project, actor=source.project.created_by, external_ids=["t0"])
    job.refresh_from_db()
    assert "Shipping" not in json.dumps(job.params)
    assert refused_words(source) is None


def post_kept(client, source, stored, **fields) -> str:
    client.force_login(source.project.created_by)
    page = reverse("source_predictions", args=[source.project.slug, source.pk])
    return client.post(page, {"kept": stored.pk, "format": "", "encoding": "", **fields}).content.decode()


HIDDEN = "vomaladaptif"


@pytest.mark.parametrize(
    ("content", "fields", "said"),
    [
        (LATIN.replace("fatigué", HIDDEN + "é").encode("latin-1"), {}, "Which of these reads right?"),
        (f"t0,{HIDDEN}\nt1,cat\n".encode(), {}, "choose the file again to see why"),
        (f"id,{HIDDEN}\nt1,cat\n".encode(), {}, "choose the file again to see why"),
        (f"id,label\nt1,{HIDDEN}\n".encode(), {"format": "predictions"}, "This file is a table"),
    ],
)
def test_while_a_run_is_open_nothing_is_told_of_a_file_that_somebody_sent_before(
    client, source, monkeypatch, content, fields, said
):
    stored = kept(source, content, "theirs.csv")
    if "format" not in fields:
        assert HIDDEN in post_kept(client, source, stored, **fields)
    monkeypatch.setattr("routing.sources.sent_views.quoted_bases", lambda project: frozenset({"data"}))
    told = post_kept(client, source, stored, **fields)
    assert said in told
    assert HIDDEN not in told
    if "format" not in fields:  # whoever has the file may be told
        page = reverse("source_predictions", args=[source.project.slug, source.pk])
        chosen = SimpleUploadedFile("theirs.csv", content)
        assert HIDDEN in client.post(page, {"file": chosen, "format": ""}).content.decode()


def test_a_job_of_another_project_leads_to_no_source_of_this_one_and_reads_for_none(source):
    other = make_project()
    params = {"file": kept(source, CSV, "a.csv").pk, "revision": 0, "format": ""}
    params["revision"] = read(source, CSV).params["revision"]
    SentAnswer.objects.all().delete()
    job = Job.objects.create(project=other, kind=KIND, params=params)
    assert page_of_sent_answers(job) is None
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert not SentAnswer.objects.exists()


@pytest.mark.parametrize("header", [b"", b"external_id,label\n"])
def test_bytes_that_are_no_utf8_far_into_the_file_say_where_its_encoding_is_said(
    client, source, monkeypatch, header
):
    monkeypatch.setattr("annotation.imports.encodings.LOOKED_AT", 64)
    line = b"t0,cat\n" if header else b'{"external_id": "t0", "label": "cat"}\n'
    job = read(source, header + line * 600 + line.replace(b"cat", b"g\xeane"), "answers")
    assert job.state == Job.State.FAILED
    assert "0xEA" in job.error
    assert "Send the file again and say its encoding, under “Its letters look odd”" in job.error
    client.force_login(source.project.created_by)
    page = client.get(reverse("source_predictions", args=[source.project.slug, source.pk])).content.decode()
    assert "<summary>Its letters look odd</summary>" in page
    with pytest.raises(
        InputError, match="Send the file again and say its encoding"
    ):  # of a table's first rows
        read(source, b"external_id,label\n" + b"t0,cat\n" * 20 + b"t0,g\xeane\n")


def test_the_job_page_counts_and_says_that_the_list_goes_on(client, source):
    lines = b"".join(b"none%d,cat\n" % n for n in range(120))
    job = read(source, b"external_id,label\nt0,cat\n" + lines)
    client.force_login(source.project.created_by)
    page = client.get(reverse("job", args=[source.project.slug, job.pk])).content.decode()
    assert "<dt>Added</dt><dd>1</dd>" in page
    assert "<dt>Lines that could not be used</dt><dd>120</dd>" in page
    assert "The first 100 are shown." in page


@pytest.mark.parametrize(("ids", "hints"), [(("t0", "t1"), True), (("x0", "x1"), False)])
def test_an_import_says_that_a_file_holds_answers_about_items_that_are_there(client, source, ids, hints):
    client.force_login(source.project.created_by)
    rows = "".join(f"{name},cat,0.{number}5\n" for number, name in enumerate(ids))
    stored = keep_for_import(
        project=source.project,
        content=io.BytesIO(f"who,label,confidence\n{rows}".encode()),
        original_name="answers.csv",
        media_type="text/csv",
    )
    page = client.get(reverse("import_mapping", args=[source.project.slug, stored.pk])).content.decode()
    assert ("holds ids of items that are in this project" in page) == hints


def test_a_new_source_without_answers_is_no_fault(client, source):
    client.force_login(source.project.created_by)
    fields = {
        "name": "Another",
        "backend": "uploaded",
        "declared_model": "m",
        "cost_per_label": "1",
        "cost_function": "flat",
    }
    page = client.post(reverse("source_new", args=[source.project.slug]), fields, follow=True)
    assert page.redirect_chain, page.context["form"].errors
    said = [str(message) for message in page.context["messages"]]
    assert said == ["Another is saved. Next, send its answers."]


def test_a_file_of_which_nothing_was_taken_can_be_imported_and_another_one_cannot(source):
    def imported(content: bytes):
        stored = keep_for_import(
            project=source.project, content=io.BytesIO(content), original_name="a.csv", media_type="text/csv"
        )
        return preview(stored_file=stored)

    nothing = b"who,what\na,b\n"
    with pytest.raises(InputError):
        read(source, nothing)
    assert imported(nothing).columns == ["who", "what"]
    read(source, WRONG)
    assert imported(WRONG).columns == ["external_id", "label"]
    read(source, CSV)
    with pytest.raises(InputError, match="in a file of their own"):
        imported(CSV)


def test_the_column_or_field_that_names_the_items_can_be_said(source) -> None:
    table = b"external_id,review,label,confidence\nx,t0,cat,0.9\ny,t1,dog,0.8\n"
    assert read(source, table, id_column="review").result["added"] == 2
    with pytest.raises(InputError, match=r"no column “reviews”; its columns are “external_id”, “review”"):
        read(source, table, id_column="reviews")
    lines = b'{"external_id": "t0", "review": "t2", "label": "cat"}\n{"external_id": "t3", "label": "cat"}\n'
    assert read(source, lines, "answers.jsonl", id_column="review").result["added"] == 2
    assert set(answers(source)) == {"t0", "t1", "t2", "t3"}
