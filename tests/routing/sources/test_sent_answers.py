"""Answers of any model, sent in from outside: taken in once, read like recorded ones, changed by nobody."""

import io
import json
from decimal import Decimal

import pytest

from annotation.common.files import store_file
from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import preview, start_import
from annotation.jobs import jobs
from annotation.models import AuditEvent, Item, Job, StoredFile
from routing.models import SentAnswer
from routing.sources import sent_answers
from routing.sources.backend_for import backend_for
from routing.sources.backends import predict_all
from routing.sources.manage import save_source
from routing.sources.sent_answers import send_answers, store_answers_file
from routing.sources.trials import start_try
from routing.sources.warnings import warnings_of
from testbed.factories import make_items, make_project
from testbed.worlds import make_world
from tests.routing.sources.sending import counts, problems, sent, uploaded

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.fixture
def source(db):
    project = make_project(choices=("cat", "dog"))
    make_items(project, 5)
    return uploaded(project)


def test_answers_are_stored_once_however_often_they_are_sent(source) -> None:
    lines = [{"external_id": f"t{n}", "label": "cat", "confidence": 0.25 * n} for n in range(5)]
    assert counts(sent(source, lines)) == (5, 0, 0)
    assert counts(sent(source, lines)) == (0, 5, 0)
    assert SentAnswer.objects.count() == 5
    answers = predict_all(backend_for(source), list(source.project.items.order_by("pk")))
    assert [answer.value for answer in answers] == ["cat"] * 5
    assert [answer.raw for answer in answers][1] == {"confidence": "0.25"}
    assert AuditEvent.objects.filter(action="source.predictions_sent").count() == 2


def test_another_answer_under_the_same_revision_is_not_taken_and_is_under_a_new_one(source) -> None:
    first, other = {"external_id": "t1", "label": "cat"}, {"external_id": "t1", "label": "dog"}
    sent(source, [first])
    sent(source, [other])
    assert sent(source, [other], revision="2").result["added"] == 1
    item = source.project.items.get(external_id="t1")
    assert predict_all(backend_for(source), [item])[0].value == "cat"
    after = uploaded(source.project, source=source, revision="2")
    assert predict_all(backend_for(after), [item])[0].value == "dog"


def test_twice_in_one_file_counts_once_and_contradicts_itself_never(source) -> None:
    line, other = {"external_id": "t0", "label": "cat"}, {"external_id": "t0", "label": "dog"}
    assert counts(sent(source, [line, line, other])) == (1, 1, 1)
    assert SentAnswer.objects.get().answer["label"] == "cat"


def test_a_line_may_name_its_item_as_a_table_does(source) -> None:
    assert counts(sent(source, [{"id": "t0", "label": "cat"}])) == (1, 0, 0)
    refused = sent(source, [{"id": "t1", "external_id": "t1", "label": "cat"}])
    assert refused.error.startswith("No line of answers.jsonl could be used (of 1).")


@pytest.mark.parametrize(
    ("line", "where", "words"),
    [
        ({"external_id": "t9", "label": "cat"}, "line 2", "no item “t9”"),
        ({"external_id": "t1", "label": "emu"}, "line 2, field “label”", "no label of the project"),
        ({"external_id": "t1"}, "line 2, field “label”", "missing"),
        ({"label": "cat"}, "line 2, field “external_id”", "missing"),
        (
            {"external_id": 5, "label": "cat"},
            "line 2, field “external_id”",
            'has to be text, in quotation marks: "5"',
        ),
        ({"external_id": [], "label": "cat"}, "line 2, field “external_id”", "no text"),
        ({"external_id": "t1", "label": "cat", "confidence": 1.5}, "line 2, field “confidence”", "0 to 1"),
        ({"external_id": "t1", "label": "cat", "confidence": True}, "line 2, field “confidence”", "0 to 1"),
        ({"external_id": "t1", "label": "cat", "tokens_in": -1}, "line 2, field “tokens_in”", "whole"),
        ({"external_id": "t1", "label": "cat", "tokens_out": 2.5}, "line 2, field “tokens_out”", "whole"),
        ({"external_id": "t1", "label": "cat", "cost": "much"}, "line 2, field “cost”", "number"),
        (
            {"external_id": "t1", "label": "cat", "probabilities": {"cat": "x"}},
            "line 2, field “probabilities”",
            "no number",
        ),
        (
            {"external_id": "t1", "label": "cat", "token_logprobs": {"a": 1}},
            "line 2, field “token_logprobs”",
            "list",
        ),
        ({"external_id": "t1", "label": "cat", "samples": "cat"}, "line 2, field “samples”", "list"),
        ({"external_id": "t1", "label": "cat", "confidnce": 1}, "line 2, field “confidnce”", "confidence"),
        (
            {"external_id": "t1", "label": "cat", "confidence": 1, "uncertainty": 0},
            "line 2, field “uncertainty”",
            "not both",
        ),
        ({"external_id": "t1", "label": "cat", "reason": "x"}, "line 2, field “reason”", "without a label"),
        ("{", "line 2", "no JSON"),
        ("[]", "line 2", "no JSON object"),
        ('{"external_id": "t1", "label": "cat", "confidence": NaN}', "line 2", "no JSON"),
        ("[" * 100_000, "line 2", "no JSON"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_and_the_others_are_taken(source, line, where, words) -> None:
    job = sent(source, [{"external_id": "t0", "label": "dog"}, line, {"external_id": "t2", "label": "cat"}])
    assert counts(job) == (2, 0, 1)
    assert words in problems(job)[where]


def test_what_is_said_of_a_line_repeats_nothing_that_a_model_answered(source) -> None:
    job = sent(
        source,
        [
            {"external_id": "t0", "label": "a secret answer"},
            {"external_id": "t1", "label": "cat", "confidence": 77.125},
            {"external_id": "t2", "label": "cat"},
        ],
    )
    assert len(problems(job)) == 2
    assert not [text for text in problems(job).values() if "secret" in text or "77" in text]


def test_a_file_of_which_no_line_can_be_used_fails_with_the_first_reason(source) -> None:
    job = sent(source, ["nothing"])
    assert job.state == Job.State.FAILED
    assert "line 1" in job.error


def test_the_same_answers_in_columns_and_sent_in_have_the_same_predictions_and_scores() -> None:
    world = make_world(60, costs=("1",), error=(lambda u: u / 2,))
    probabilities = {"cat": 0.5, "dog": 0.25, "emu": 0.125}
    for item in world.project.items.all():
        item.data |= {"probabilities1": json.dumps(probabilities), "samples1": '["cat", "dog"]'}
        item.data |= {"tokens1": "17", "cost1": "0.25", "seconds1": "1.5"}
        item.save(update_fields=["data"])
    recorded = world.project.sources.get()
    columns = ("probabilities", "samples", "cost", "seconds")
    world.project.columns += [*(f"{name}1" for name in columns), "tokens1"]
    world.project.save()
    recorded = save_source(
        project=world.project,
        user=world.manager,
        source=recorded,
        name=recorded.name,
        backend="recorded",
        params={
            **recorded.params,
            **{f"{name}_column": f"{name}1" for name in columns},
            "tokens_in_column": "tokens1",
        },
        cost_per_label=Decimal(1),
    )
    source = uploaded(world.project)
    lines = [
        {
            "external_id": item.external_id,
            "label": item.data["model1"],
            "confidence": item.data["confidence1"],
            "probabilities": probabilities,
            "samples": ["cat", "dog"],
            "tokens_in": 17,
            "cost": "0.25",
            "seconds": 1.5,
        }
        for item in world.project.items.all()
    ]
    assert sent(source, lines).result["added"] == 60
    items = list(world.project.items.order_by("pk"))
    one, other = backend_for(recorded), backend_for(source)
    assert predict_all(one, items) == predict_all(other, items)
    assert (one.default_score, one.fields) == (other.default_score, other.fields)
    usage = [one.most_usage(item) for item in items]
    assert [other.most_usage(item) for item in items] == usage


def test_a_job_that_was_killed_goes_on_behind_its_last_chunk(source, monkeypatch) -> None:
    monkeypatch.setattr(sent_answers, "CHUNK", 2)
    make_items(source.project, 4)
    original, calls = sent_answers.copy_rows, []

    def breaks(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("killed")
        return original(*arguments)

    monkeypatch.setattr(sent_answers, "copy_rows", breaks)
    job = sent(source, [{"external_id": f"t{n}", "label": "cat"} for n in range(9)])
    assert (job.state, job.done, SentAnswer.objects.count()) == (Job.State.FAILED, 4, 4)
    jobs.retry(job=job)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.done) == (Job.State.DONE, 9)
    assert counts(job) == (9, 0, 0)


def test_warnings_say_how_much_is_missing_and_whether_it_can_be_routed(source) -> None:
    (first,) = warnings_of(source)  # the step that comes next, and no error
    assert "answers are to be sent next, for 5 items" in first
    assert "none can follow" not in first
    sent(source, [{"external_id": f"t{n}", "label": "cat"} for n in range(4)])
    missing, unscored = warnings_of(source)
    assert "1 of 5" in missing
    assert "usable score" in unscored


def test_the_fingerprint_follows_model_and_revision_and_nothing_else(source) -> None:
    prints = set()
    for model, revision in (("a", "1"), ("a", "2"), ("b", "1")):
        source.params = {"model": model, "revision": revision}
        prints.add(backend_for(source).fingerprint())
    assert len(prints) == 3
    before = backend_for(source).fingerprint()
    sent(source, [{"external_id": "t0", "label": "cat"}])
    assert backend_for(source).fingerprint() == before


def test_a_file_of_answers_is_shown_to_nobody_as_data(source) -> None:
    file = store_answers_file(
        project=source.project, content=io.BytesIO(b'{"external_id": "t0", "label": "cat"}\n'), name="a.jsonl"
    )
    with pytest.raises(InputError, match="nobody sees"):
        preview(stored_file=file)


def test_what_takes_no_predictions_says_so() -> None:
    world = make_world(20)
    source = world.project.sources.first()
    file = store_answers_file(project=world.project, content=io.BytesIO(b"{}\n"), name="a.jsonl")
    with pytest.raises(InputError, match="only a source of uploaded"):
        send_answers(source=source, user=world.manager, stored_file=file)
    outside = uploaded(world.project)
    with pytest.raises(InputError, match="nothing to ask"):
        start_try(source=outside, user=world.manager)
    with pytest.raises(InputError, match="formats are"):
        send_answers(source=outside, user=world.manager, stored_file=file, format_name="csv")
    with pytest.raises(InputError, match="another project"):
        send_answers(source=uploaded(make_project()), user=world.manager, stored_file=file)


def batch_line(custom_id: str, content: str, **body) -> dict:
    message = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    message |= {
        "logprobs": {"content": [{"token": content, "logprob": -0.25, "top_logprobs": []}]},
    }
    answer = {"id": "c", "model": "house-7b-0101", "choices": [message]}
    answer |= {"usage": {"prompt_tokens": 11, "completion_tokens": 2}, **body}
    return {
        "id": "r",
        "custom_id": custom_id,
        "response": {"status_code": 200, "body": answer},
        "error": None,
    }


def test_output_files_of_openai_batches_are_read(source) -> None:
    items = list(source.project.items.order_by("position"))
    failed = {"id": "r", "custom_id": "t3", "response": {"status_code": 500, "body": {}}, "error": None}
    job = sent(
        source,
        [
            batch_line("t0", "cat"),
            batch_line(f"{items[1].pk}-{'0' * 24}", '{"label": "dog"}'),
            batch_line("t2", "no idea"),
            failed,
            batch_line("t4", "cat", model="another"),
        ],
    )
    assert counts(job) == (3, 0, 2)
    told = problems(job)
    assert "500" in told["line 4, field “response”"]
    assert "another" in told["line 5"]
    answers = predict_all(backend_for(source), items)
    assert [answer.value for answer in answers[:3]] == ["cat", "dog", None]
    assert answers[0].raw["token_logprobs"] == [-0.25]
    assert (answers[0].tokens_in, answers[0].tokens_out) == (11, 2)
    assert answers[0].served_model == "house-7b-0101"
    assert backend_for(source).default_score == "logits"


def test_a_format_that_is_named_is_kept_to(source) -> None:
    job = sent(source, [batch_line("t0", "cat")], format_name="predictions")
    assert "field “id”" in job.error


@pytest.mark.parametrize("first", ["as data", "as predictions"])
def test_answers_are_shown_to_nobody_whatever_else_their_bytes_came_as(source, first) -> None:
    content = b'{"external_id": "t0", "label": "cat"}\n'

    def as_data() -> StoredFile:
        return store_file(
            project=source.project,
            content=io.BytesIO(content),
            original_name="a.jsonl",
            media_type="text/plain",
        )

    def as_predictions() -> StoredFile:
        return store_answers_file(project=source.project, content=io.BytesIO(content), name="b.jsonl")

    ways = [as_data, as_predictions] if first == "as data" else [as_predictions, as_data]
    files = [send() for send in ways]
    assert files[0].pk == files[1].pk
    file = StoredFile.objects.get()
    with pytest.raises(InputError, match="nobody sees"):
        preview(stored_file=file)
    with pytest.raises(InputError, match="nobody sees"):
        start_import(
            project=source.project,
            user=source.project.created_by,
            stored_file=file,
            mapping=ColumnMapping("external_id", "label"),
        )
    job = send_answers(source=source, user=source.project.created_by, stored_file=file)
    assert jobs.run(job.pk)


def test_an_image_stays_one_whoever_sends_its_bytes_as_predictions(source) -> None:
    image = store_file(
        project=source.project, content=io.BytesIO(b"image"), original_name="a.png", media_type="image/png"
    )
    Item.objects.create(project=source.project, external_id="an image", position=99, image=image)
    store_answers_file(project=source.project, content=io.BytesIO(b"image"), name="a.jsonl")
    image.refresh_from_db()
    assert image.media_type == "image/png"


def test_problems_are_told_in_the_order_of_the_lines_whatever_is_wrong_with_them(source) -> None:
    unknown, unread = {"external_id": "t9", "label": "cat"}, {"external_id": "t1", "label": "emu"}
    job = sent(source, [unknown, unread, unknown, "{"])
    assert [where.partition(",")[0] for where in problems(job)] == ["line 1", "line 2", "line 3", "line 4"]
    assert "could be used (of 4)" in job.error
    assert "line 1: The project has no item" in job.error
