"""Sources: what is refused, and what a change of one breaks."""

from decimal import Decimal
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from annotation.errors import ConflictError, HypacError, InputError
from routing.models import Route, Run
from routing.runs.cancel import cancel_run
from routing.runs.route import route
from routing.runs.source_changes import has_changed
from routing.sources.manage import delete_source, move_source, save_source
from testbed.scripted_replies import model_list
from testbed.scripted_server import ScriptedServer
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def _change_first_source(world):
    source = world.project.sources.get(position=1)
    return save_source(
        project=world.project,
        user=world.manager,
        name=source.name,
        backend=source.backend,
        params={"label_column": "model2", "confidence_column": "confidence1"},
        cost_per_label=source.cost_per_label,
        source=source,
    )


def test_a_source_that_changed_is_refused_at_routing_and_the_run_marked_invalid():
    world = make_world(100)
    run = world.analysed(m=40)
    _change_first_source(world)
    with pytest.raises(ConflictError, match="Model 1 was changed"):
        route(run=run, user=world.manager)
    run.refresh_from_db()
    assert run.state == Run.State.ANALYSED
    assert "Model 1 was changed" in run.broken_by[0]
    assert not Route.objects.exists()


def test_a_source_cannot_be_changed_under_a_run_but_its_price_can():
    world = make_world(100)
    run = world.start(m=40)
    with pytest.raises(ConflictError, match="under way"):
        _change_first_source(world)
    source = world.project.sources.get(position=1)
    save_source(
        project=world.project,
        user=world.manager,
        name=source.name,
        backend=source.backend,
        params=source.params,
        cost_per_label=Decimal(5),
        source=source,
    )
    assert run.run_sources.get(position=1).cost_per_label == 1
    with pytest.raises(ConflictError, match="belongs to a run"):
        delete_source(source=source, user=world.manager)


def test_under_a_run_only_what_shapes_no_answer_can_be_changed(settings):
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    world = make_world(60)

    def save(server, source=None, backend="openai_api", **params):
        return save_source(
            project=world.project,
            user=world.manager,
            name="Language model",
            backend=backend,
            params={"url": server.url, "model": "scripted", **params},
            cost_per_label=Decimal(1),
            source=source,
        )

    with ScriptedServer("cat") as here, ScriptedServer("cat") as there, ScriptedServer("cat") as other:
        other.models = ["scripted"]
        listed = model_list(["scripted"])
        listed["data"][0]["root"] = "org/retrained"
        other.route("GET", "/v1/models", listed)
        source = save(here)
        run = world.start(m=40)
        assert source.pk in run.run_sources.values_list("source", flat=True)
        here.stop()  # the model has moved
        save(there, source, concurrency=3, read_timeout=77)
        source.refresh_from_db()
        assert source.params["read_timeout"] == 77
        assert not has_changed(run.run_sources.get(source=source))
        for changes in ({"temperature": 0.7}, {"backend": "openai_batch"}):
            with pytest.raises(ConflictError, match="only what shapes no answer"):
                save(there, source, **changes)
        with pytest.raises(ConflictError, match="only what shapes no answer"):
            save(other, source)
        there.stop()
        with pytest.raises(HypacError, match=r"cannot be reached|Nobody accepts"):
            save(there, source, read_timeout=78)
    source.refresh_from_db()
    assert source.params["read_timeout"] == 77


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"name": "Model 1"}, "name"),
        ({"name": " "}, "name"),
        ({"position": 1}, "position"),
        ({"cost_per_label": Decimal(-1)}, "cost_per_label"),
        ({"backend": "oracle"}, "backend"),
        ({"params": {}}, "label_column"),
        ({"params": {"label_column": "model9"}}, "label_column"),
        ({"params": {"label_column": "model1", "colour": "red"}}, "colour"),
    ],
)
def test_a_source_that_cannot_be_is_refused_by_field(changes, where):
    world = make_world(10)
    fields = {
        "name": "New",
        "backend": "recorded",
        "params": {"label_column": "model1"},
        "cost_per_label": Decimal(1),
    }
    with pytest.raises(InputError) as caught:
        save_source(project=world.project, user=world.manager, **(fields | changes))
    assert caught.value.where == where
    assert world.project.sources.count() == 2


def test_a_column_that_a_later_import_brought_can_be_named():
    world = make_world(10, change=lambda index, row: row.pop("model1") if index == 0 else None)
    source = save_source(
        project=world.project,
        user=world.manager,
        name="New",
        backend="recorded",
        params={"label_column": "model1"},
        cost_per_label=Decimal(1),
    )
    assert source.params == {"label_column": "model1"}


def test_an_unused_source_can_be_deleted():
    world = make_world(10)
    delete_source(source=world.project.sources.get(position=2), user=world.manager)
    assert world.project.sources.count() == 1


def _order(project):
    return list(project.sources.order_by("position").values_list("name", "position"))


def test_two_neighbours_change_places():
    world = make_world(10)
    save_source(
        project=world.project,
        user=world.manager,
        name="Model 3",
        backend="recorded",
        params={"label_column": "model1"},
        cost_per_label=Decimal(3),
        position=7,  # places may have gaps
    )
    last = world.project.sources.get(name="Model 3")
    move_source(source=last, user=world.manager, up=True)
    assert _order(world.project) == [("Model 1", 1), ("Model 3", 2), ("Model 2", 7)]
    move_source(source=last, user=world.manager, up=True)
    move_source(source=last, user=world.manager, up=True)  # it is the first one by now
    assert _order(world.project) == [("Model 3", 1), ("Model 1", 2), ("Model 2", 7)]
    move_source(source=last, user=world.manager, up=False)
    assert [name for name, _ in _order(world.project)] == ["Model 1", "Model 3", "Model 2"]
    assert world.project.audit_events.filter(action="source.moved").count() == 3


def test_the_order_stays_while_a_run_is_open():
    world = make_world(60)
    run = world.start(m=40)
    before = _order(world.project)
    with pytest.raises(ConflictError, match="Run 1 is under way"):
        move_source(source=world.project.sources.get(position=2), user=world.manager, up=True)
    assert _order(world.project) == before
    cancel_run(run=run, user=world.manager)
    move_source(source=world.project.sources.get(position=2), user=world.manager, up=True)
    assert [name for name, _ in _order(world.project)] == ["Model 2", "Model 1"]


def _grey_model(**changes) -> dict:
    features = np.array([np.full(4, level) for level in (0.0, 0.2, 0.8, 1.0)])
    estimator = LogisticRegression().fit(features, [0, 0, 1, 1])
    whole = {"estimator": estimator, "kind": "image", "size": [2, 2], "scale": 1 / 255}
    return whole | {"classes": ["dark", "light"]} | changes


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not a model", "cannot be loaded"),
        (b"\x80\x04n.", "cannot be loaded"),
        ({"kind": "image"}, "estimator"),
        (_grey_model(kind="sound"), "kind"),
        (_grey_model(classes=["dark", "grey", "light"]), "one probability for each"),
        (_grey_model(size=[3, 3]), "failed: ValueError"),
        (_grey_model(size=[0, 2]), "size"),
        (_grey_model(estimator=LogisticRegression()), "failed: NotFittedError"),
    ],
)
def test_a_model_file_that_cannot_answer_is_refused_when_the_source_is_saved(
    tmp_path: Path, settings, content, words
):
    settings.HYPAC_SKLEARN_MODELS = tmp_path
    file = tmp_path / "shades.joblib"
    file.write_bytes(content) if isinstance(content, bytes) else joblib.dump(content, file)
    world = make_world(10)
    fields = {"name": "Shades", "backend": "sklearn", "params": {"model": "shades"}}
    saving = {"project": world.project, "user": world.manager, "cost_per_label": Decimal(1), **fields}
    with pytest.raises(InputError, match=words) as caught:
        save_source(**saving)
    assert caught.value.where == "model"
    assert not world.project.sources.filter(name="Shades").exists()
    joblib.dump(_grey_model(), file)
    assert save_source(**saving).params == {"model": "shades"}
