"""An existing Label Studio ML backend as a source, against a scripted server."""

import json
import threading
import time

import pytest

from annotation.errors import InputError
from annotation.models import Item, StoredFile
from routing.backends import BackendError, SourceContext, TaskSpec, open_backend, predict_all
from routing.backends.label_studio_ml import calls
from tests.scripted_server import Reply, Request, ScriptedServer

PETS = TaskSpec("single_choice", (("c1", "cat"), ("d1", "dog")))


@pytest.fixture(autouse=True)
def _quick(settings, monkeypatch):
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr(calls, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(calls, "AGAIN_AFTER", 0.0)


@pytest.fixture
def server():
    with ScriptedServer() as made:
        made.route("GET", "/health", {"status": "UP", "model_class": "Pets"})
        made.route("POST", "/setup", {"model_version": "1.0"})
        made.route("POST", "/predict", predict(choose))
        yield made


def predict(answer):
    """A /predict that gives each of its items what `answer` makes of the item's data."""
    return lambda request: {"results": [answer(task["data"]) for task in request.body["tasks"]]}


def choice(*names, score=0.9, **more):
    region = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": list(names)}}
    return {"result": [region], "score": score, **more}


def choose(data):
    return choice("dog" if "wuff" in data["text"] else "cat")


def open_it(server, task=PETS, *, api_key="", **params):
    params = {"url": f"http://127.0.0.1:{server.port}", **params}
    return open_backend("label_studio_ml", params, SourceContext(task=task, api_key=api_key))


def items_of(*texts, **fields):
    return [
        Item(pk=number, external_id=f"t{number}", text=text, **fields) for number, text in enumerate(texts)
    ]


def collect(groups, answered):
    for group in groups:
        answered += [(item.text, answer.value) for item, answer in group]


def asked(server, path="/predict"):
    return [request.body for request in server.requests if request.path == path]


def test_items_are_answered_in_batches_in_their_order(server):
    backend = open_it(server, batch_size=2)
    items = items_of("wuff", "miau", "wuff wuff", "mi", "wuff!")
    answers = predict_all(backend, items)
    assert [answer.value for answer in answers] == ["dog", "cat", "dog", "cat", "dog"]
    assert {answer.raw["confidence"] for answer in answers} == {0.9}
    assert sorted(len(body["tasks"]) for body in asked(server)) == [1, 2, 2]
    assert all(answer.latency_ms >= answer.busy_ms > 0 for answer in answers)


def test_the_server_gets_the_fields_of_its_configuration_and_no_other_column(server):
    backend = open_it(server)
    predict_all(backend, items_of("wuff", data={"text": "wuff", "gold": "dog", "model2": "cat"}))
    (body,) = asked(server)
    assert body["tasks"] == [{"id": 1, "data": {"text": "wuff"}}]
    assert '<Choice value="cat" />' in body["label_config"]
    (setup,) = asked(server, "/setup")
    assert setup["schema"] == body["label_config"]
    assert setup["project"] == body["project"]


def test_nothing_of_ours_that_could_be_used_to_ask_back_is_sent(server):
    backend = open_it(server)
    backend.check()
    predict_all(backend, items_of("wuff"))
    assert [request.path for request in server.requests] == ["/health", "/setup", "/setup", "/predict"]
    for request in server.requests:
        assert not {"authorization", "cookie"} & set(request.headers)
        if request.method == "POST":
            assert set(request.body) <= {"project", "schema", "tasks", "label_config", "params"}
            assert request.body.get("params", {}) == {}


def test_the_key_is_name_and_password_of_the_server(server):
    backend = open_it(server, api_key="ann:hunter2")
    predict_all(backend, items_of("wuff"))
    assert {request.headers["authorization"] for request in server.requests} == {"Basic YW5uOmh1bnRlcjI="}


@pytest.mark.parametrize(
    ("task_type", "region", "value"),
    [
        ("single_choice", {"type": "choices", "value": {"choices": ["cat"]}}, "cat"),
        ("multiple_choice", {"type": "choices", "value": {"choices": ["dog", "cat", "dog"]}}, ["dog", "cat"]),
        ("multiple_choice", {"type": "choices", "value": {"choices": []}}, []),
        ("number", {"type": "number", "value": {"number": 4.5}}, "4.5"),
        ("number", {"type": "number", "value": {"number": 4}}, "4"),
        ("short_text", {"type": "textarea", "value": {"text": ["Zürich"]}}, "Zürich"),
        ("math", {"type": "textarea", "value": {"text": "x^2"}}, "x^2"),
        ("code", {"type": "textarea", "value": {"text": [" return 1"]}}, " return 1"),
    ],
)
def test_answers_of_every_task_type_are_read(server, task_type, region, value):
    server.route(
        "POST", "/predict", {"results": [{"result": [{"from_name": "label", **region}], "score": 1}]}
    )
    task = TaskSpec(task_type, PETS.choices if "choice" in task_type else ())
    (answer,) = predict_all(open_it(server, task), items_of("x"))
    assert (answer.value, answer.reason) == (value, "")


@pytest.mark.parametrize(
    ("prediction", "reason"),
    [
        (None, "no prediction"),
        ([], "no prediction"),
        ({}, "no prediction"),
        ("cat", "no prediction"),
        ({"result": []}, "no prediction"),
        ({"result": "cat"}, "no prediction"),
        ({"result": [{"from_name": "label", "value": "cat"}]}, "no value 'choices'"),
        ({"result": [{"from_name": "label", "value": {"rectanglelabels": ["cat"]}}]}, "no value 'choices'"),
        ({"result": [{"from_name": "box", "type": "rectanglelabels", "value": {}}]}, "no prediction"),
        (choice(), "no prediction"),
        (choice("cat", "dog"), "several answers"),
        (choice({"a": 1}), "something that is no 'choices'"),
        (choice(None), "something that is no 'choices'"),
    ],
)
def test_a_prediction_without_an_answer_says_why(server, prediction, reason):
    server.route("POST", "/predict", {"results": [prediction, choice("cat")]})
    bad, good = predict_all(open_it(server), items_of("x", "y"))
    assert bad.value is None
    assert reason in bad.reason
    assert good.value == "cat"


def test_of_several_predictions_the_first_counts_and_other_tags_do_not(server):
    other = {"from_name": "mood", "type": "choices", "value": {"choices": ["sad"]}}
    with_other = choice("dog")
    with_other["result"].insert(0, other)
    server.route("POST", "/predict", {"results": [[with_other, choice("cat")]]})
    (answer,) = predict_all(open_it(server), items_of("x"))
    assert answer.value == "dog"


def test_a_server_with_a_name_of_its_own_for_the_tag_is_understood(server):
    named = choice("dog")
    named["result"][0]["from_name"] = "sentiment"
    server.route("POST", "/predict", {"results": [named]})
    (answer,) = predict_all(open_it(server), items_of("x"))
    assert answer.value == "dog"


@pytest.mark.parametrize(
    ("prediction", "raw"),
    [
        (choice("cat", score=0.25), {"confidence": 0.25}),
        (choice("cat", score=None), {}),
        (choice("cat", score="high"), {}),
        (choice("cat", score=True), {}),
        ({"result": [{**choice("cat")["result"][0], "score": 0.5}]}, {"confidence": 0.5}),
    ],
)
def test_the_score_is_the_confidence(server, prediction, raw):
    server.route("POST", "/predict", {"results": [prediction]})
    (answer,) = predict_all(open_it(server), items_of("x"))
    assert (answer.value, answer.raw) == ("cat", raw)


def test_the_model_version_is_the_model_that_answered(server):
    results = [choice("cat", model_version="a-2"), choice("cat")]
    server.route("POST", "/predict", {"results": results, "model_version": "a-1"})
    answers = predict_all(open_it(server), items_of("x", "y"))
    assert [answer.served_model for answer in answers] == ["a-2", "a-1"]


def test_a_configuration_of_ones_own_names_the_fields(server):
    config = """<View><!-- <b> --><Header value="Look"/><Text name="t" value="$title"/>
        <HyperText name="b" value="$body"/>
        <Choices name="mood" toName="t"><Choice value="cat"/></Choices></View>"""
    server.route("POST", "/predict", {"results": [choice("cat")]})
    backend = open_it(server, label_config=config)
    predict_all(backend, items_of("the text", data={"title": "T", "other": "secret"}))
    (body,) = asked(server)
    assert body["tasks"][0]["data"] == {"title": "T", "body": "the text"}


@pytest.mark.django_db
def test_an_image_goes_along_as_its_bytes(server, monkeypatch, tmp_path):
    content = tmp_path / "x.png"
    content.write_bytes(b"PNG")
    monkeypatch.setattr("routing.backends.label_studio_ml.items.open_file", lambda file: content.open("rb"))
    config = (
        '<View><Image name="i" value="$photo"/><Choices name="label" toName="i"><Choice value="cat"/>'
        "</Choices></View>"
    )
    server.route("POST", "/predict", {"results": [choice("cat")]})
    image = Item(pk=1, external_id="i", image=StoredFile(pk=5, media_type="image/png"))
    backend = open_it(server, label_config=config)
    answers = predict_all(backend, [image, *items_of("a text")])
    assert asked(server)[0]["tasks"] == [{"id": 1, "data": {"photo": "data:image/png;base64,UE5H"}}]
    assert [answer.value for answer in answers] == ["cat", None]
    assert "the item is text" in answers[1].reason
    (answer,) = predict_all(open_it(server), [image])
    assert "the item is an image" in answer.reason


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("<View>", "no XML"),
        ("plain", "no XML"),
        ("<View><Choices name='a' toName='b'/></View>", "shows anything"),
        ("<View><Text name='t' value='$text'/></View>", "needs a tag Choices"),
        ("<View><Text name='t' value='$text'/><Number name='n' toName='t'/></View>", "needs a tag Choices"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><View>&b;</View>", "DOCTYPE"),
        ("x" * 200_001, "characters"),
        (7, "must be text"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(server, config, words):
    with pytest.raises(InputError, match=words) as caught:
        open_it(server, label_config=config)
    assert caught.value.where == "label_config"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", ""),
        ("url", "ftp://example.org"),
        ("url", "http://10.0.0.1/"),
        ("batch_size", 0),
        ("concurrency", "many"),
        ("total_timeout", -1),
        ("read_timeout", "x"),
        ("connect_timeout", 0),
        ("access_token", "x"),
    ],
)
def test_a_param_that_cannot_be_used_is_named(server, name, value):
    with pytest.raises(InputError) as caught:
        open_it(server, **{name: value})
    assert caught.value.where == name


def test_names_that_two_choices_have_give_way_to_their_keys(server):
    task = TaskSpec("single_choice", (("k1", "same <&>"), ("k2", "same <&>"), ("k3", "other")))
    backend = open_it(server, task)
    backend.check()
    (setup,) = asked(server, "/setup")
    assert [part.split('"')[0] for part in setup["schema"].split('<Choice value="')[1:]] == [
        "k1",
        "k2",
        "other",
    ]


def test_the_fingerprint_covers_what_answers_depend_on_and_nothing_else(server):
    first = open_it(server).fingerprint()
    assert (
        open_it(server, batch_size=3, concurrency=1, total_timeout=9, connect_timeout=1).fingerprint()
        == first
    )
    changed = {
        open_it(server, url=f"http://127.0.0.1:{server.port}/").fingerprint(),
        open_it(server, TaskSpec("single_choice", (("c1", "cat"),))).fingerprint(),
        open_it(server, TaskSpec("multiple_choice", PETS.choices)).fingerprint(),
    }
    server.route("POST", "/setup", {"model_version": "1.1"})
    changed.add(open_it(server).fingerprint())
    assert len({first, *changed}) == 4  # a slash at the end of the address changes nothing


def test_checking_reports_the_version_that_is_served(server):
    assert open_it(server).check() == {"model": "1.0"}
    server.route("POST", "/setup", {"model_version": None})
    assert open_it(server).check() == {"model": ""}


@pytest.mark.parametrize(
    ("path", "reply", "words"),
    [
        ("/health", Reply(500, {"error": "secret"}), "status 500"),
        ("/health", Reply(401, {"error": "secret"}), "name:password"),
        ("/setup", Reply(404, {"error": "secret"}), "Label Studio ML backend"),
        ("/setup", Reply(302, b"secret", headers={"Location": "/x"}), "leads on"),
        ("/setup", Reply(500, {"traceback": "secret"}), "status 500"),
        ("/setup", Reply(503, {"error": "secret"}), "takes no requests"),
        ("/setup", Reply(200, b"secret"), "no JSON"),
        ("/setup", Reply(200, ["secret"]), "no JSON object"),
    ],
)
def test_a_server_that_is_no_such_backend_is_found_out_when_the_source_is_saved(server, path, reply, words):
    server.route("GET" if path == "/health" else "POST", path, reply)
    with pytest.raises(InputError, match=words) as caught:
        open_it(server).check()
    assert caught.value.where == "url"
    assert "secret" not in str(caught.value)


# --- Failures -----------------------------------------------------------------------------------------------


def test_one_bad_item_does_not_take_its_batch_along(server):
    def reply(request):
        if any(task["data"]["text"] == "boom" for task in request.body["tasks"]):
            return Reply(500, {"traceback": "secret"})
        return predict(choose)(request)

    server.route("POST", "/predict", reply)
    answers = predict_all(open_it(server), items_of("wuff", "boom", "miau"))
    assert [answer.value for answer in answers] == ["dog", None, "cat"]
    assert answers[1].reason == "the server answered with status 500"


@pytest.mark.parametrize(
    ("reply", "reason", "tries"),
    [
        (Reply(200, b"no json"), "no JSON", 2),
        (Reply(200, {"other": 1}), "no list of results", 2),
        (Reply(200, {"results": []}), "0 predictions came for 1 items", 1),
        (Reply(200, {"results": [{}, {}]}), "2 predictions came for 1 items", 1),
        (Reply(200, {"results": []}, cut=3), "spoilt", 2),
        (Reply(reset=True), "ended the connection", 2),
        (Reply(422), "status 422", 1),
        (Reply(200, b"[" + b" " * 17_000_000), "larger than", 1),
    ],
    ids=["no json", "no results", "none", "two", "cut", "reset", "422", "large"],
)
def test_what_a_server_answers_to_one_item_ends_as_its_reason(server, reply, reason, tries):
    server.route("POST", "/predict", reply)
    (answer,) = predict_all(open_it(server), items_of("x"))
    assert answer.value is None
    assert reason in answer.reason
    assert len(asked(server)) == tries


def test_a_server_that_recovers_is_asked_again(server):
    replies = [Reply(503, headers={"Retry-After": "0"}), Reply(502), Reply(reset=True)]
    server.route("POST", "/predict", lambda request: replies.pop(0) if replies else predict(choose)(request))
    (answer,) = predict_all(open_it(server), items_of("wuff"))
    assert answer.value == "dog"


def test_an_item_that_takes_for_ever_ends(server):
    def reply(request):
        slow = any(task["data"]["text"] == "slow" for task in request.body["tasks"])
        return Reply(200, {"results": []}, delay=30) if slow else predict(choose)(request)

    server.route("POST", "/predict", reply)
    answers = predict_all(open_it(server, total_timeout=1), items_of("wuff", "slow"))
    assert [answer.value for answer in answers] == ["dog", None]
    assert "in time" in answers[1].reason


@pytest.mark.parametrize(
    ("reply", "permanent", "words"),
    [
        (Reply(503), False, "cannot be reached"),
        (Reply(429), False, "cannot be reached"),
        (Reply(401), True, "name:password"),
        (Reply(403), True, "name:password"),
        (Reply(404), True, "knows no /predict"),
        (Reply(301, headers={"Location": "/x"}), True, "leads on"),
    ],
)
def test_a_server_that_answers_nobody_ends_the_work(server, reply, permanent, words):
    server.route("POST", "/predict", reply)
    with pytest.raises(BackendError, match=words) as caught:
        predict_all(open_it(server), items_of("x", "y"))
    assert caught.value.permanent is permanent


def test_a_server_that_is_gone_ends_the_work_for_now(server):
    backend = open_it(server)
    server.stop()
    for call in (backend.fingerprint, lambda: predict_all(backend, items_of("x"))):
        with pytest.raises(BackendError) as caught:
            call()
        assert not caught.value.permanent


def test_a_server_that_fails_every_item_ends_the_work(server):
    """And does not send a whole pool to people, as items that the model could not answer."""
    server.route("POST", "/predict", Reply(500))
    backend = open_it(server, concurrency=1, batch_size=4)
    answered = []
    with pytest.raises(BackendError, match="10 items in a row") as caught:
        collect(backend.predict(items_of(*map(str, range(100)))), answered)
    assert not caught.value.permanent
    assert len(answered) == 8


def test_what_was_answered_before_a_failure_is_given(server):
    def reply(request):
        if request.body["tasks"][0]["data"]["text"] == "4":
            return Reply(403)
        return predict(choose)(request)

    server.route("POST", "/predict", reply)
    backend = open_it(server, concurrency=1, batch_size=2)
    answered = []
    with pytest.raises(BackendError, match="403"):
        collect(backend.predict(items_of(*map(str, range(20)))), answered)
    assert [text for text, _ in answered] == ["0", "1", "2", "3"]
    assert len(asked(server)) == 3


def test_no_more_items_are_taken_than_may_be_in_flight(server):
    backend = open_it(server, concurrency=2, batch_size=3)
    taken, stored = [], 0

    def source():
        for item in items_of(*map(str, range(60))):
            taken.append(item)
            assert len(taken) - stored <= backend.in_flight == 9
            yield item

    groups = backend.predict(source())
    while group := next(groups, None):
        stored += len(group)
    assert len(taken) == stored == 60


def test_closing_asks_for_no_more(server):
    gate = threading.Event()

    def reply(request):
        if request.body["tasks"][0]["data"]["text"] != "0":
            gate.wait(10)
        return predict(choose)(request)

    server.route("POST", "/predict", reply)
    groups = open_it(server, concurrency=1, batch_size=1).predict(items_of(*map(str, range(9))))
    next(groups)
    while len(asked(server)) < 2:
        time.sleep(0.01)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("label-studio-ml")]
    groups.close()
    gate.set()
    for thread in threads:
        thread.join(10)
    assert len(asked(server)) == 2


def test_what_the_items_raise_comes_after_the_answers_of_those_before(server):
    def source():
        yield from items_of("wuff", "miau", "wuff")
        raise RuntimeError("no more money")

    answered = []
    with pytest.raises(RuntimeError, match="no more money"):
        collect(open_it(server, batch_size=2).predict(source()), answered)
    assert sorted(value for _, value in answered) == ["cat", "dog", "dog"]


def test_batches_are_asked_for_at_the_same_time(server):
    both = threading.Barrier(2, timeout=10)

    def reply(request: Request):
        both.wait()
        return predict(choose)(request)

    server.route("POST", "/predict", reply)
    answers = predict_all(open_it(server, batch_size=1, concurrency=2), items_of("wuff", "miau"))
    assert [answer.value for answer in answers] == ["dog", "cat"]


def test_what_is_sent_is_json(server):
    predict_all(open_it(server), items_of('Zürich "quoted" \u2028'))
    assert json.dumps(asked(server)[0]["tasks"][0]["data"]["text"]) == json.dumps('Zürich "quoted" \u2028')
