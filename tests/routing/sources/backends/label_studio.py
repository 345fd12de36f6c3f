"""A scripted Label Studio ML backend, and sources that ask it."""

from annotation.models import Item
from routing.sources.backends import SourceContext, TaskSpec, open_backend

PETS = TaskSpec("single_choice", (("c1", "cat"), ("d1", "dog")))


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
