"""The queue as a loop."""

import json
import threading
from typing import Any

import httpx
import pytest

from hypac_client import ConflictError, Queue
from tests.client.scripted import Reply, Script, ok, problem, scripted


def task(number: int, **more: Any) -> dict[str, Any]:
    item = {"id": number, "text": f"text {number}", "image": None}
    return {
        "work_item": number,
        "token": f"t{number}",
        "item": item,
        "expires_at": None,
        "correcting": None,
        **more,
    }


def label(number: int) -> dict[str, Any]:
    return {"id": 100 + number, "value": "yes"}


def queue_of(*replies: Reply, lease_seconds: int = 600) -> tuple[Queue, Script]:
    client, script, _ = scripted(*replies)
    return Queue(client._transport, "projects/a/queue/", lease_seconds=lease_seconds), script


def sent(script: Script) -> list[tuple[str, dict[str, Any]]]:
    return [
        (request.url.path.rpartition("queue/")[2].strip("/"), json.loads(request.content))
        for request in script.requests
    ]


def test_items_are_answered_one_after_the_other() -> None:
    queue, script = queue_of(
        ok({"task": task(1)}),
        ok({"label": label(1), "task": task(2)}),
        ok({"task": task(3)}),
        ok({"label": label(3), "task": None}),
        ok({"task": None}),
    )
    for held in queue:
        if held.text == "text 2":
            held.skip("unclear", comment="smudged")
        else:
            assert held.submit("yes")["value"] == "yes"
    calls = sent(script)
    assert [name for name, _ in calls] == ["claim", "submit", "skip", "submit", "claim"]
    assert {**calls[1][1], "idempotency_key": ""} == {
        **{"work_item": 1, "token": "t1", "value": "yes", "comment": "", "lead_time_ms": None},
        "idempotency_key": "",
    }
    assert calls[2][1] == {"work_item": 2, "token": "t2", "reason": "unclear", "comment": "smudged"}
    assert calls[1][1]["idempotency_key"] != calls[3][1]["idempotency_key"]


def test_an_item_has_its_name_as_far_as_it_may_be_known() -> None:
    queue, _script = queue_of(
        ok({"task": {**task(1), "name": "1.png", "external_id": "cats/1.png"}}),
        ok({"task": {**task(2), "name": "2.png", "external_id": None}}),
    )
    known, unknown = queue.claim(), queue.claim()
    assert known
    assert unknown
    assert (known.name, known.external_id) == ("1.png", "cats/1.png")
    assert (unknown.name, unknown.external_id) == ("2.png", None)


def test_an_answer_that_is_sent_again_is_the_same_answer() -> None:
    lost: list[Reply] = [httpx.ReadError("lost"), ok({"label": label(1), "task": None})]
    queue, script = queue_of(ok({"task": task(1)}), *lost)
    held = queue.claim()
    assert held is not None
    held.submit("yes")
    first, second = script.requests[1:]
    assert first.content == second.content
    assert json.loads(first.content)["idempotency_key"]


def test_who_leaves_the_loop_holds_nothing() -> None:
    queue, script = queue_of(
        ok({"task": task(1)}), ok({"label": label(1), "task": task(2)}), ok({"released": True})
    )
    for held in queue:
        held.submit("yes")
        break
    assert sent(script)[-1] == ("release", {"work_item": 2, "token": "t2"})

    queue, script = queue_of(ok({"task": task(1)}), ok({"released": True}))
    for _ in queue:
        break
    assert sent(script)[-1] == ("release", {"work_item": 1, "token": "t1"})


def test_an_item_that_is_passed_over_is_given_back_and_told() -> None:
    queue, script = queue_of(ok({"task": task(1)}), ok({"released": True}))
    with pytest.raises(RuntimeError, match="neither submitted, skipped nor released"):
        for _ in queue:
            pass
    assert [name for name, _ in sent(script)] == ["claim", "release"]


def test_a_refused_answer_is_told() -> None:
    refused = problem(409, "The item went to somebody else.")
    queue, _ = queue_of(ok({"task": task(1)}), refused, ok({"released": False}))
    tasks = iter(queue)
    held = next(tasks)
    with pytest.raises(ConflictError, match="somebody else"):
        held.submit("yes")
    assert not held.answered


def test_the_last_answer_can_be_corrected_and_a_skip_taken_back() -> None:
    queue, script = queue_of(
        ok({"task": task(1, token="", correcting=label(1))}), ok({"label": {**label(1), "value": "no"}})
    )
    last = queue.undo()
    assert last is not None
    assert last.submit("no")["value"] == "no"
    name, body = sent(script)[-1]
    assert name == "correct"
    assert body["label"] == 101
    assert "token" not in body

    queue, _ = queue_of(ok({"task": None}))
    assert queue.undo() is None


def test_what_is_held_is_kept_alive_while_one_thinks() -> None:
    beaten = threading.Event()

    def beat(_: httpx.Request) -> httpx.Response:
        beaten.set()
        return ok({"expires_at": "later"})

    replies = [ok({"task": task(1)}), beat, ok({"label": label(1), "task": None}), ok({"task": None})]
    queue, script = queue_of(*replies, lease_seconds=3)
    for held in queue:
        assert beaten.wait(30)
        held.submit("yes")
    assert [name for name, _ in sent(script)] == ["claim", "heartbeat", "submit", "claim"]


def test_labelling_uses_up_none_of_the_keys_that_a_person_has() -> None:
    """Only going back must not be done twice."""
    queue, script = queue_of(
        ok({"task": task(1)}),
        ok({"expires_at": "later"}),
        ok({"label": label(1), "task": task(2)}),
        ok({"task": task(3)}),
        ok({"released": True}),
        ok({"task": task(1, token="", correcting=label(1))}),
        ok({"label": label(1)}),
    )
    for way in ("submit", "skip", "release"):
        held = queue.claim()
        assert held is not None
        if way == "submit":
            held.heartbeat()
            held.submit("yes")
        else:
            getattr(held, way)()
    last = queue.undo()
    assert last is not None
    last.submit("no")
    names = [name for name, _ in sent(script)]
    assert names == ["claim", "heartbeat", "submit", "skip", "release", "undo", "correct"]
    with_key = [
        name
        for name, request in zip(names, script.requests, strict=True)
        if "Idempotency-Key" in request.headers
    ]
    assert with_key == ["undo"]
