"""A label is corrected where the item is looked at: by the rules of review and of people's own answers."""

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.errors import ConflictError
from annotation.labelling import queue, versions
from annotation.labelling.answers import correct
from annotation.labelling.labels_of_record import record_values
from annotation.labelling.overrule import overrule
from annotation.labelling.versions import replay
from annotation.models import AuditEvent, Label, Project, Settlement
from routing.models import Run
from testbed.factories import add_member, make_items, make_project, make_user
from testbed.worlds import make_world, rows_of
from tests.routing.by_people.people import answer, asked

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def project() -> Project:
    project = make_project(choices=("cat", "dog"))
    make_items(project, 1)
    return project


def send(client, project: Project, value: str, *, htmx: bool = True, **more: str):
    item = project.items.get()
    headers = {"HX-Request": "true"} if htmx else {}
    url = reverse("item_correct", args=[project.slug, item.pk])
    return client.post(url, {"value": value, "key": "k1", **more}, headers=headers)


def beside(client, project: Project) -> str:
    url = reverse("item", args=[project.slug, project.items.get().pk])
    return client.get(url, {"beside": "1"}, headers={"HX-Request": "true"}).content.decode()


def test_ones_own_label_gets_another_version_and_the_table_is_told(client_of, project) -> None:
    asked(project)
    answer(project, project.created_by, "cat")
    client = client_of(project.created_by)
    assert 'value="cat" selected' in beside(client, project)
    said = send(client, project, "dog", comment="a tail")
    assert said.headers["HX-Trigger"] == "item-corrected"
    assert "The label is corrected." in said.content.decode()
    versions = Label.objects.order_by("version").values_list("value", "version", "comment")
    assert list(versions) == [("cat", 1, ""), ("dog", 2, "a tail")]
    # Sent twice it has one effect; a lock asks first; a label that is none is refused.
    send(client, project, "dog", comment="a tail")
    assert "HX-Trigger" not in send(client, project, "horse", key="k2").headers
    project.work_batches.update(locked_at=timezone.now())
    assert "Tick the box first" in send(client, project, "cat", key="k3").content.decode()
    assert Label.objects.count() == 2
    send(client, project, "cat", key="k3", confirm="yes", htmx=False)
    assert Label.objects.get(version=3).value == "cat"


def test_labels_of_others_stay_theirs_for_all_but_who_leads(client_of, project) -> None:
    asked(project)
    answer(project, add_member(project), "cat")
    for person in (add_member(project, "reviewer"),):
        client = client_of(person)
        assert "data-correct" not in beside(client, project)
        assert "Nothing here is yours to correct" in send(client, project, "dog").content.decode()
    assert send(client_of(add_member(project)), project, "dog").status_code == 403
    assert send(client_of(make_user()), project, "dog").status_code == 404
    assert Label.objects.count() == 1


def test_a_reviewer_decides_where_people_differ_and_changes_that(client_of, project) -> None:
    asked(project, overlap=2)
    for value in ("cat", "dog"):
        answer(project, add_member(project), value)
    reviewer, other = (client_of(add_member(project, "reviewer")) for _ in range(2))
    assert "Decide: which label is right?" in beside(reviewer, project)
    assert send(reviewer, project, "cat").headers["HX-Trigger"]
    assert send(reviewer, project, "dog").headers["HX-Trigger"]
    decided = Settlement.objects.order_by("version").values_list("value", flat=True)
    assert list(decided) == ["cat", "dog"]
    # What another reviewer decided is theirs, as on the page of reviews.
    assert "Nothing here is yours to correct" in send(other, project, "cat").content.decode()


@pytest.mark.parametrize("overlap", [1, 2])
def test_nothing_of_a_hidden_batch_is_offered(client_of, project, monkeypatch, overlap) -> None:
    asked(project, overlap=overlap)
    answer(project, project.created_by, "cat")
    if overlap == 2:
        answer(project, add_member(project), "dog")
    client = client_of(project.created_by)
    assert "data-correct" in beside(client, project)
    batches = set(project.work_batches.values_list("pk", flat=True))
    monkeypatch.setattr("routing.visibility.hidden_batches", lambda _project: batches)
    assert "data-correct" not in beside(client, project)
    assert "Nothing here is yours to correct" in send(client, project, "dog").content.decode()


@pytest.mark.parametrize("overrules", [False, True])
def test_a_key_that_is_used_at_the_same_moment_makes_one_version(project, monkeypatch, overrules) -> None:
    """The first look for the key finds nothing: the other request has not been stored by then."""
    make_items(project, 1)
    asked(project)
    answer(project, add_member(project) if overrules else project.created_by, "cat")
    first, second = Label.objects.order_by("pk")

    def replace(label: Label, value: str = "dog") -> Label:
        if overrules:
            return overrule(
                actor=project.created_by,
                label_id=label.pk,
                value=value,
                reason="It barks.",
                idempotency_key="k",
            )
        return correct(user=project.created_by, label_id=label.pk, value=value, idempotency_key="k")

    newer = replace(first)
    assert replace(first) == newer

    def blind_once(*args):
        looks.append(args)
        return None if len(looks) == 1 else replay(*args)

    for asks, code in ((second, "answer_key_reused"), (first, "")):
        looks: list[tuple[object, ...]] = []
        with monkeypatch.context() as patch:
            patch.setattr(versions, "replay", blind_once)
            patch.setattr(versions, "_has_newer", lambda _old: False)
            if code:
                with pytest.raises(ConflictError) as refused:
                    replace(asks)
                assert refused.value.code == code
            else:
                assert replace(asks) == newer
        assert len(looks) == 2
    assert Label.objects.filter(version=2).get() == newer
    assert AuditEvent.objects.filter(action="label.overruled").count() == overrules


class TestOverruling:
    """Who leads the project may replace somebody's label, with a reason, where nothing else rests on it."""

    def test_it_is_a_new_version_with_a_reason_and_in_the_audit_trail(self, client_of, project) -> None:
        asked(project)
        ann = add_member(project)
        answer(project, ann, "cat")
        client = client_of(add_member(project, "manager"))
        page = beside(client, project)
        assert f"<bdi>{ann.username}</bdi> gave this label." in page
        assert "Replace the label" in page
        said = send(client, project, "dog").content.decode()
        assert "Say why the label is replaced" in said
        assert 'aria-invalid="true" aria-describedby="comment-error"' in said
        assert Label.objects.count() == 1
        assert send(client, project, "dog", comment="It barks.").headers["HX-Trigger"] == "item-corrected"
        send(client, project, "dog", comment="It barks.")
        versions = Label.objects.order_by("version").values_list("value", "comment", "annotator__username")
        first, second = versions
        assert first == ("cat", "", ann.username)
        assert second[:2] == ("dog", "It barks.")
        item = project.items.get()
        assert record_values(project, [item.pk])[item.pk].value == "dog"
        entry = AuditEvent.objects.get(action="label.overruled")
        assert entry.project == project
        # From now on it is the manager's own.
        assert "Save the correction" in beside(client, project)

    @pytest.mark.parametrize(
        "field", ["blind", "rostered", "locked_at", "for_round", "for_gold", "withdrawn_at"]
    )
    def test_not_where_something_else_rests_on_it(self, client_of, project, field) -> None:
        asked(project)
        answer(project, add_member(project), "cat")
        project.work_batches.update(**{field: timezone.now() if field.endswith("_at") else True})
        client = client_of(project.created_by)
        assert "data-correct" not in beside(client, project)
        assert "HX-Trigger" not in send(client, project, "dog", comment="It barks.").headers
        label = Label.objects.get()
        with pytest.raises(ConflictError):
            overrule(
                actor=project.created_by,
                label_id=label.pk,
                value="dog",
                reason="It barks.",
                idempotency_key="k",
            )

    def test_not_of_several_people(self, client_of, project) -> None:
        asked(project, overlap=2)
        for _ in range(2):
            answer(project, add_member(project), "cat")
        assert "data-correct" not in beside(client_of(project.created_by), project)

    @pytest.mark.parametrize("own", [False, True])
    def test_it_is_the_label_that_the_item_has_and_not_a_newer_one(self, client_of, own) -> None:
        world = make_world(60)
        run = world.routed(m=30)
        world.label(limit=1)
        first = run.routed_batch.work_items.get(state="done").labels.get()
        again = queue.create_batch(
            project=world.project, item_ids=[first.item_id], blind=False, priority=1, entropy=1
        )
        other = next(name for name in ("cat", "dog", "emu") if name != first.value)
        newer = Label.objects.create(
            item=first.item,
            work_item=again.work_items.get(),
            annotator=world.manager if own else add_member(world.project),
            value=other,
            idempotency_key="newer",
        )
        again.work_items.update(state="done")
        type(again).objects.filter(pk=again.pk).update(withdrawn_at=timezone.now())
        client, url = client_of(world.manager), reverse("item", args=[world.project.slug, first.item_id])
        shown = client.get(url, {"beside": "1"}, headers={"HX-Request": "true"}).content.decode()
        assert f"<bdi>{first.annotator.username}</bdi> gave this label." in shown
        assert f'value="{first.value}" selected' in shown
        sent = {"value": other, "key": "k1", "comment": "It barks."}
        client.post(reverse("item_correct", args=[world.project.slug, first.item_id]), sent)
        assert Label.objects.get(version=2).supersedes == first
        assert not Label.objects.filter(supersedes=newer).exists()
        row = next(row for row in rows_of(run) if row.external_id == first.item.external_id)
        assert (row.label, row.annotator) == (other, world.manager.username)

    def test_not_while_a_calibration_is_open_nor_what_it_rests_on(self, client_of) -> None:
        world = make_world(60)
        asked(world.project, sample=5)
        answer(world.project, world.annotators[0])
        item = Label.objects.all()[0].item
        client = client_of(world.manager)
        url = reverse("item", args=[world.project.slug, item.pk])

        def offered(of: str) -> bool:
            headers = {"HX-Request": "true"}
            return "data-correct" in client.get(of, {"beside": "1"}, headers=headers).content.decode()

        assert offered(url)
        run = world.calibrating(m=30)
        assert not offered(url)
        world.finish()
        world.analyse(run)
        assert offered(url)
        calibrated = run.calibration_batch.work_items.exclude(labels__annotator=world.manager).first()
        assert not offered(reverse("item", args=[world.project.slug, calibrated.item_id]))
        assert not Run.objects.exclude(invalid_reasons=[]).exists()
