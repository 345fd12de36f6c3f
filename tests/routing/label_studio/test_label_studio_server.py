"""Label Studio asks HyPAC as an ML backend: what is answered, to whom, and about which item."""

import base64
import functools
import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import ApiToken, Item, Project, User
from annotation.people.tokens import make_token
from routing.label_studio.matching import match_items
from routing.models import Run
from testbed.factories import add_member, make_image_items, make_items, make_project
from testbed.worlds import NUMBERS, SETS, World, make_world

pytestmark = [pytest.mark.costly]

CONFIG = """<View><Header value="Look"/><Text name="t" value="$text"/>
<Choices name="sound" toName="t"><Choice value="loud"/></Choices>
<Choices name="animal" toName="t"><Choice value="cat"/><Choice value="Dog!" alias="dog"/><Choice value="emu"/>
</Choices></View>"""


def token_of(user: User, **fields: Any) -> str:
    return make_token(user=user, name="Label Studio", **fields)[1]


def basic(token: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"hypac:{token}".encode()).decode()}


class Asking:
    """As Label Studio does: requests with a password, of the newest routed run or what `place` names."""

    def __init__(self, project: Project, headers: dict[str, str], place: str = "") -> None:
        self._at = f"/label-studio/{project.slug}/{place}"
        self._headers = headers

    def get(self, name: str) -> Any:
        return Client().get(self._at + name, headers=self._headers)

    def post(self, name: str, body: Any) -> Any:
        return Client().post(
            self._at + name, json.dumps(body), content_type="application/json", headers=self._headers
        )

    def setup(self, config: str = CONFIG) -> Any:
        extra = {"hostname": "http://localhost:8080", "access_token": "x", "extra_params": None}
        return self.post("setup", {"project": "1.1700000000", "schema": config, **extra})

    def predict(self, tasks: list[Any], config: str = CONFIG) -> Any:
        params = {"login": None, "password": None, "context": None}
        return self.post(
            "predict", {"tasks": tasks, "project": "1.17", "label_config": config, "params": params}
        )


def task_of(item: Item, number: int = 900_001) -> dict[str, Any]:
    return {"id": number, "data": {"text": item.text}, "meta": {}, "project": 1, "predictions": []}


@pytest.fixture
def world(db: None) -> World:
    return make_world(60)


@pytest.fixture
def routed(world: World) -> Run:
    return world.routed(m=40)


@pytest.fixture
def asking(world: World, routed: Run) -> Asking:
    return Asking(world.project, basic(token_of(world.manager)))


class TestAnswers:
    def test_the_labels_of_the_newest_routed_run(self, world: World, routed: Run, asking: Asking) -> None:
        from label_studio_sdk.label_interface import LabelInterface  # takes two seconds

        assert asking.get("health").json()["status"] == "UP"
        version = asking.setup().json()["model_version"]
        assert version == f"{world.project.slug} run {routed.number}"
        items = list(world.project.items.order_by("position"))
        answer = asking.predict([task_of(item) for item in items])
        assert answer.status_code == 200, answer.content
        results = answer.json()["results"]
        assert len(results) == len(items)
        waiting = 0
        interface = LabelInterface(CONFIG)
        for item, given in zip(items, results, strict=True):
            if given == []:  # it waits for a person
                waiting += 1
                continue
            (region,) = given["result"]
            assert (region["from_name"], region["to_name"], region["type"]) == ("animal", "t", "choices")
            assert given["model_version"] == version
            assert interface.validate_prediction({"result": given["result"], "score": given["score"]})
            if region["meta"]["text"] == ["a person"]:
                assert region["value"]["choices"] == [world.truth[item.external_id]]
                assert given["score"] is None
            elif region["meta"]["text"] == ["Model 1"]:
                assert given["score"] == pytest.approx(float(item.data["confidence1"]))
                assert region["value"]["choices"] == [item.data["model1"]]
        assert 0 < waiting < len(items)

    def test_the_stored_answers_of_a_source(self, world: World, routed: Run, asking: Asking) -> None:
        source = world.project.sources.order_by("position")[0]
        of_source = Asking(world.project, asking._headers, f"sources/{source.pk}/")
        version = of_source.setup().json()["model_version"]
        assert version.startswith("Model 1 ")
        items = list(world.project.items.order_by("position"))
        results = of_source.predict([task_of(item) for item in items]).json()["results"]
        given = [result["result"][0]["value"]["choices"] for result in results]
        assert given == [[item.data["model1"]] for item in items]
        assert results[0]["score"] == pytest.approx(float(items[0].data["confidence1"]))

    def test_a_run_by_its_number(self, world: World, routed: Run, asking: Asking) -> None:
        of_run = Asking(world.project, asking._headers, f"runs/{routed.number}/")
        assert of_run.setup().json()["model_version"].endswith(f"run {routed.number}")
        assert of_run.get("health").json()["status"] == "UP"

    def test_one_that_there_is_not_is_said_at_once(self, world: World, routed: Run, asking: Asking) -> None:
        for place, words in (("runs/99/", "no run 99"), ("sources/999999/", "no source with the id 999999")):
            other = Asking(world.project, asking._headers, place)
            for answer in (other.get("health"), other.setup(), other.get("versions"), other.predict([])):
                assert answer.status_code == 404
                assert words in answer.json()["detail"]

    def test_tasks_that_are_no_items_get_an_empty_answer(self, asking: Asking) -> None:
        odd = [{"id": 1, "data": {"text": "no such"}}, {}, None, 7, {"data": {"text": None, "x": [1]}}]
        answer = asking.predict(odd)
        assert (answer.status_code, answer.json()["results"]) == (200, [[]] * 5)
        assert asking.predict([]).json()["results"] == []

    def test_a_thousand_tasks_take_few_queries(
        self, world: World, asking: Asking, django_assert_max_num_queries: Any
    ) -> None:
        items = list(world.project.items.all())
        with django_assert_max_num_queries(60):
            answer = asking.predict([task_of(items[n % 60]) for n in range(1000)])
        assert len(answer.json()["results"]) == 1000

    def test_numbers_and_sets_in_their_form(self, db: None) -> None:
        for answers, tag, field in (
            (NUMBERS, '<Number name="n" toName="t"/>', "number"),
            (
                SETS,
                '<Choices name="n" toName="t" choice="multiple"><Choice value="cat"/><Choice value="dog"/>'
                '<Choice value="emu"/></Choices>',
                "choices",
            ),
        ):
            world = make_world(60, answers=answers)
            world.routed(m=40)
            asking = Asking(world.project, basic(token_of(world.manager)), "")
            config = f'<View><Text name="t" value="$text"/>{tag}</View>'
            tasks = [task_of(item) for item in world.project.items.all()]
            given = [result for result in asking.predict(tasks, config).json()["results"] if result]
            assert given
            for result in given:
                value = result["result"][0]["value"][field]
                assert isinstance(value, list if field == "choices" else int)

    def test_a_configuration_that_asks_something_else_is_refused(self, asking: Asking) -> None:
        for config, words in (
            ('<View><Text name="t" value="$text"/></View>', "needs a tag Choices"),
            ("<View>", "no XML"),
            ('<!DOCTYPE a [<!ENTITY b "c">]><View/>', "DOCTYPE"),
            (CONFIG.replace("cat", "x").replace("og", "x").replace("emu", "x"), "None of the project's"),
        ):
            for answer in (asking.setup(config), asking.predict([], config)):
                assert answer.status_code == 400, config
                assert words in answer.json()["detail"]

    def test_what_is_there_to_learn_from_is_not_read(self, asking: Asking, world: World) -> None:
        for name in ("webhook", "train"):
            for headers in (asking._headers, {}):
                answer = Asking(world.project, headers).post(name, {"action": "ANNOTATION_CREATED"})
                assert (answer.status_code, answer.json()["status"]) == (200, "ignored")
        nobody = Client().post("/label-studio/no-such/webhook", "x", content_type="text/plain")
        assert nobody.json()["status"] == "ignored"


class TestWho:
    def test_a_token_as_password_or_as_itself(self, world: World, routed: Run) -> None:
        token = token_of(world.manager)
        for headers in (basic(token), {"Authorization": f"Token {token}"}):
            assert Asking(world.project, headers).get("health").status_code == 200

    @pytest.mark.parametrize(
        "headers",
        [{}, basic("x" * 64), basic(""), {"Authorization": "Basic ???"}, {"Authorization": "Basic"}],
    )
    def test_nobody_else(self, world: World, routed: Run, headers: dict[str, str]) -> None:
        asking = Asking(world.project, headers)
        answers = [asking.get("health"), asking.get("versions"), asking.setup(), asking.predict([])]
        assert {answer.status_code for answer in answers} == {401}

    def test_passwords_of_accounts_open_nothing(self, world: World, routed: Run) -> None:
        from testbed.factories import PASSWORD

        given = f"{world.manager.username}:{PASSWORD}".encode()
        headers = {"Authorization": "Basic " + base64.b64encode(given).decode()}
        assert Asking(world.project, headers).get("health").status_code == 401

    def test_only_whose_role_sees_predictions(self, world: World, routed: Run) -> None:
        for role, status in (("viewer", 200), ("annotator", 403), ("reviewer", 403)):
            token = token_of(add_member(world.project, role))
            assert Asking(world.project, basic(token)).predict([]).status_code == status, role
        capped = token_of(world.manager, role="annotator")
        assert Asking(world.project, basic(capped)).predict([]).status_code == 403
        stranger = token_of(make_project().created_by)
        assert Asking(world.project, basic(stranger)).predict([]).status_code == 404

    def test_a_token_that_expired(self, world: World, routed: Run) -> None:
        token = token_of(world.manager)
        row = ApiToken.objects.get()
        ApiToken.objects.filter(pk=row.pk).update(expiry=row.created - timedelta(days=1))
        assert Asking(world.project, basic(token)).get("health").status_code == 401

    def test_nothing_of_models_before_the_analysis_nor_in_the_next_run(self, world: World) -> None:
        headers = basic(token_of(world.manager))
        source = world.project.sources.first()
        places = [Asking(world.project, headers, place) for place in ("", f"sources/{source.pk}/")]
        world.calibrated(m=40)
        tasks = [task_of(item) for item in world.project.items.all()]
        for asking in places:
            for answer in (asking.setup(), asking.predict(tasks), asking.get("versions")):
                assert answer.status_code == 409
                assert "model1" not in answer.content.decode()
            assert asking.get("health").status_code == 200


class TestMatching:
    def test_what_a_delivery_of_ours_says_goes_first(self, db: None) -> None:
        project = make_project()
        _first, second, other = make_items(project, ["same", "same", "other"])

        def task(text: Any, name: str) -> dict[str, Any]:
            return {"id": 1, "data": {"text": text}, "meta": {"hypac": {"external_id": name}}}

        tasks = [task("same", second.external_id), task("same", "no-such"), task("other", second.external_id)]
        assert match_items(project, tasks) == [second, None, other]
        # Of another project, or changed since: no label of ours is about that text.
        assert (
            match_items(project, [task("another text", item.external_id) for item in (second, other)])
            == [None] * 2
        )

    def test_what_a_delivery_holds_is_known_again_whatever_people_see(self, db: None) -> None:
        project = make_project()
        fields = [["title", "a"], ["stars", "4"], ["note", ""], ["new", "true"], ["tags", '["é"]']]
        (several,) = make_items(project, ["title: a\nstars: 4"], fields=fields)
        number, late = make_items(project, ["17", "late"])
        (picture,) = make_image_items(project, 1)
        cells: list[tuple[Item, dict[str, Any]]] = [
            (several, {"title": "a", "stars": 4, "note": None, "new": True, "tags": ["é"]}),
            (number, {"n": 17, "o": [17]}),
            (late, {**{f"c{place}": f"text {place}" for place in range(400)}, "text": "late"}),
            (picture, {"file_name": picture.external_id, "n": 5}),
        ]
        tasks = [
            {"id": 900, "data": data, "meta": {"hypac": {"external_id": item.external_id}}}
            for item, data in cells
        ]
        assert match_items(project, tasks) == [several, number, late, picture]
        for task in tasks:
            task["data"] = {"title": "b", "stars": 4, "n": 18, "text": "earlier"}
        assert match_items(project, tasks) == [None] * 4
        assert match_items(project, [{"data": {"n": 17}}]) == [None]
        odd = [["\ud800"], ["\0"], functools.reduce(lambda inner, _: [inner], range(100_000), [])]
        assert (
            match_items(project, [{"id": number.external_id, "data": {"n": cell}} for cell in odd])
            == [None] * 3
        )

    def test_a_number_counts_where_the_content_is_the_same(self, db: None) -> None:
        project = make_project()
        one, two = make_items(project, ["same", "same"])
        Item.objects.filter(pk=one.pk).update(external_id="1")
        Item.objects.filter(pk=two.pk).update(external_id="2")
        tasks = [
            {"id": 2, "data": {"text": "same"}},
            {"id": 2, "data": {"text": "another text"}},
            {"id": 77, "data": {"id": 1, "text": "same"}},
            {"id": 77, "data": {"text": "same"}},  # which of the two?
        ]
        assert match_items(project, tasks) == [two, None, one, None]

    def test_a_text_that_one_item_has(self, db: None) -> None:
        project = make_project()
        make_items(make_project(), ["alone"])
        (item,) = make_items(project, ["alone"])
        tasks = [
            {"data": {"body": "alone", "n": 5}},
            {"data": {"body": "alone "}},
            {"data": {"b": "a\0\ud800"}},
        ]
        assert match_items(project, tasks) == [item, None, None]

    def test_several_fields_and_pictures(self, db: None) -> None:
        project = make_project()
        (item,) = make_items(project, ["a: 1\nb: 2"], fields=[["a", "1"], ["b", "2"]])
        (picture,) = make_image_items(project, 1)
        tasks = [
            {"id": item.external_id, "data": {"a": "1", "b": "2", "c": "3"}},
            {"id": item.external_id, "data": {"a": "1"}},
            {"data": {"image": f"/data/upload/3/1a2b3c4d-{picture.external_id}"}},
            {"data": {"image": f"https://example.org/x/{picture.external_id}?key=1"}},
            {"data": {"image": "https://example.org/another.png"}},
        ]
        assert match_items(project, tasks) == [item, None, picture, picture, None]

    def test_what_an_item_has_not_is_not_in_its_task(self, db: None) -> None:
        project = make_project()
        (item,) = make_items(project, ["q: yes\na: "], fields=[["q", "yes"], ["a", ""]])
        same = [{"q": "yes", "a": ""}, {"q": "yes", "a": None}, {"q": "yes"}, {"q": "yes", "b": "more"}]
        other = [{"q": "yes", "a": cell} for cell in ("other", " ", 0, False, [])] + [{"a": ""}]
        tasks = [{"id": item.external_id, "data": data} for data in (*same, *other)]
        assert match_items(project, tasks) == [item] * len(same) + [None] * len(other)

    def test_nothing_that_items_hold_is_loaded_to_compare_it(
        self, db: None, django_assert_max_num_queries: Any
    ) -> None:
        """Tasks name a hundred files each, and a text that all items of a project have."""
        project = make_project()
        items = make_items(project, ["same"] * 300)
        (alone,) = make_items(project, ["alone"])
        tasks = [
            {"id": n, "data": {f"k{k}": f"/x/{items[(n + k) % 300].external_id}" for k in range(40)}}
            for n in range(499)
        ]
        for task in tasks:
            task["data"] |= {"text": "same"}
        tasks.append({"id": 7, "data": {"text": "alone", "other": "unknown"}})
        with django_assert_max_num_queries(20), CaptureQueriesContext(connection) as asked:
            assert match_items(project, tasks) == [None] * 499 + [alone]
        read = [query["sql"] for query in asked]
        assert not any('"annotation_item"."data"' in sql or '"annotation_item"."text"' in sql for sql in read)

    def test_a_picture_under_another_address_is_known_by_its_columns(self, db: None) -> None:
        project = make_project()
        (picture,) = make_image_items(project, 1)
        Item.objects.filter(pk=picture.pk).update(external_id="5", data={"file": "s3://b/a.png"})
        right = {"id": 5, "data": {"image": "s3://b/a.png"}}
        assert match_items(project, [right, {"id": 5, "data": {"image": "s3://b/b.png"}}]) == [picture, None]


def test_the_addresses_are_those_that_label_studio_makes() -> None:
    assert reverse("api_label_studio_predict", args=["p"]) == "/label-studio/p/predict"
