"""An existing Label Studio ML backend as a source: what it is sent, and how its answers are read."""

import pytest

from annotation.errors import InputError
from annotation.models import Item, StoredFile
from routing.sources.backends import TaskSpec, predict_all
from routing.sources.backends.label_studio_ml import calls
from testbed.scripted_server import Reply, ScriptedServer
from tests.routing.sources.backends.label_studio import (
    PETS,
    asked,
    choice,
    choose,
    items_of,
    open_it,
    predict,
)

pytestmark = pytest.mark.costly


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
    server.route("POST", "/predict", predict(choose))
    assert predict_all(open_it(server), items_of("x"))[0].served_model == "1.0"  # what /setup named


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
    monkeypatch.setattr(
        "routing.sources.backends.label_studio_ml.calls.open_file", lambda file: content.open("rb")
    )
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
        ("<?a <!-- ?><!DOCTYPE a [<!ENTITY b 'c'>]><?a --> ?><View>&b;</View>", "DOCTYPE"),
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
    for said, model in ((None, ""), ({}, ""), (2, "2"), ("a\0\ud800b", "a??b"), ("x" * 1_000, "x" * 200)):
        server.route("POST", "/setup", {"model_version": said})
        assert open_it(server).check() == {"model": model}


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
