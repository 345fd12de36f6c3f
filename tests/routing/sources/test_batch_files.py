"""Batch files by hand: written, answered by another program, and read back."""

import json
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import User
from annotation.projects.manage import ChoiceSpec, create_project
from routing.sources.backend_for import backend_for
from routing.sources.backends import predict_all
from routing.sources.backends.openai_batch.store import ResultStore
from routing.sources.batch_files import read_answers
from routing.sources.manage import save_source
from testbed.factories import make_image_items, make_items
from testbed.scripted_replies import completion

pytestmark = pytest.mark.django_db


@pytest.fixture
def source(settings, tmp_path):
    settings.VAR_DIR = tmp_path
    settings.MEDIA_ROOT = tmp_path / "media"
    user = User.objects.create_user("manager")
    project = create_project(user=user, name="Animals", choices=[ChoiceSpec("cat"), ChoiceSpec("dog")])
    make_items(project, ["it purrs", "it barks", "it is silent"])
    return save_source(
        project=project,
        user=user,
        name="Small",
        backend="openai_batch",
        params={"model": "small", "temperature": 0},
        cost_per_label=Decimal("0.001"),
        cost_function="tokens",
        prices={},
    )


def answered(call: dict) -> dict:
    purrs = "purrs" in call["body"]["messages"][-1]["content"]
    body = completion("cat" if purrs else "dog", asked=call["body"], model="small")
    return {"custom_id": call["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}


def test_what_another_program_answered_is_what_the_source_answers(source, tmp_path):
    calls, results = tmp_path / "calls.jsonl", tmp_path / "results.jsonl"
    call_command("write_batch", str(source.pk), str(calls), stdout=StringIO())
    written = [json.loads(line) for line in calls.read_text().splitlines()]
    assert [call["body"]["model"] for call in written] == ["small"] * 3
    lines = [answered(call) for call in written]
    lines[2] = {"custom_id": written[2]["custom_id"], "response": None, "error": {"message": "no"}}
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))

    said = StringIO()
    call_command("read_batch", str(source.pk), str(results), stdout=said)
    assert said.getvalue() == "2 answers were read; 1 calls had none.\n"
    items = list(source.project.items.order_by("position"))
    assert [answer.value for answer in predict_all(backend_for(source), items[:2])] == ["cat", "dog"]


def test_another_backend_has_no_batch_files(source, tmp_path):
    source.backend, source.params = "recorded", {"label_column": "label"}
    source.save()
    with pytest.raises(CommandError, match="openai_batch"):
        call_command("write_batch", str(source.pk), str(tmp_path / "calls.jsonl"))
    with pytest.raises(CommandError, match="There is no source 0"):
        call_command("write_batch", "0", str(tmp_path / "calls.jsonl"))


def lines_for(source, *answers: str) -> list[bytes]:
    """Results that give the first items of the project these labels."""
    backend, lines = backend_for(source), []
    for item, label in zip(source.project.items.order_by("position"), answers, strict=False):
        custom_id, body = backend.request(item)
        answer = completion(label, asked=body, model="small")
        result = {"custom_id": custom_id, "response": {"status_code": 200, "body": answer}, "error": None}
        lines.append(json.dumps(result).encode())
    return lines


def labels(source, count: int) -> list[str]:
    items = list(source.project.items.order_by("position")[:count])
    return [answer.value for answer in predict_all(backend_for(source), items)]


def test_a_worker_of_another_host_finds_them_and_the_newest_counts(source, settings, tmp_path) -> None:
    read_answers(source=source, lines=lines_for(source, "cat", "cat"))
    read_answers(source=source, lines=lines_for(source, "dog"))
    settings.VAR_DIR = tmp_path / "another host"
    assert labels(source, 2) == ["dog", "cat"]


def test_a_reading_that_ends_in_an_error_stores_nothing(source) -> None:
    def cut_off():
        yield from lines_for(source, "cat")
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        read_answers(source=source, lines=cut_off())
    read_answers(source=source, lines=lines_for(source, "dog"))
    assert labels(source, 1) == ["dog"]


def test_what_an_earlier_version_kept_beside_the_storage_is_read_too(source, tmp_path) -> None:
    first, second = lines_for(source, "cat", "cat")
    earlier = tmp_path / "batches" / f"{backend_for(source).key}.jsonl"
    earlier.parent.mkdir()
    earlier.write_bytes(first + b"\n" + second[:40])  # it was killed in the middle of a line
    assert ResultStore(earlier.stem).get(json.loads(second)["custom_id"]) is None
    read_answers(source=source, lines=[second])
    assert labels(source, 2) == ["cat", "cat"]


def test_images_are_left_out_of_the_calls(source, tmp_path) -> None:
    make_image_items(source.project, 1)
    calls = tmp_path / "calls.jsonl"
    call_command("write_batch", str(source.pk), str(calls), stdout=StringIO())
    assert len(calls.read_text().splitlines()) == 3
