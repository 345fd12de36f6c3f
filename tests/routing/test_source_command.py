"""The command that makes a source: what it takes, what it refuses, and where a secret may come from."""

import io
import json
from decimal import Decimal

import pytest

from annotation.models import AuditEvent
from annotation.secrets import decrypt
from routing.models import Source
from testbed.factories import add_member, make_project
from tests.routing.test_script_commands import ended, run

pytestmark = pytest.mark.django_db
KEY = "sk-very-secret"
SERVER = ("--backend", "openai_batch", "--param", "model=qwen")


@pytest.fixture
def project():
    return make_project(choices=["good", "bad"])


def words(project, *more: object, name: str = "House model", backend: str = "uploaded") -> tuple[object, ...]:
    return ("source", project.slug, "--name", name, "--backend", backend, *more)


def owner(project) -> str:
    return project.created_by.username


def test_a_source_is_made_and_the_next_one_comes_behind_it(project) -> None:
    made = words(project, "--param", "model=house", "--param", "revision=1", "--cost", "0.001")
    told = json.loads(run(*made, "--json", user=owner(project)))
    source = Source.objects.get()
    assert told == {
        **{"id": source.pk, "name": "House model", "position": 1, "backend": "uploaded"},
        **{
            "cost_per_label": "0.001",
            "has_key": False,
            "warnings": told["warnings"],
            "usability": told["usability"],
        },
    }
    assert source.params == {"model": "house", "revision": "1"}
    assert source.cost_per_label == Decimal("0.001")
    event = AuditEvent.objects.get(action="source.added")
    assert event.actor == project.created_by
    second = words(project, "--param", "model=other", name="Second")
    assert "Second (uploaded) is source 2 of" in run(*second, user=owner(project))
    third = words(project, "--param", "model=third", "--position", 7, name="Third")
    assert "is source 7 of" in run(*third, user=owner(project))


def test_a_script_may_say_it_every_night(project) -> None:
    made = words(project, "--param", "model=house")
    first = json.loads(run(*made, "--unless-there", "--json", user=owner(project)))
    again = json.loads(run(*made, "--unless-there", "--json", user=owner(project)))
    assert first["id"] == again["id"] == Source.objects.get().pk
    assert AuditEvent.objects.filter(action__startswith="source.").count() == 1
    code, reason = ended(*made, user=owner(project))
    assert (code, "Another source has this name." in reason) == (1, True)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--param", "model"), "NAME=VALUE"),
        (("--param", "=x"), "NAME=VALUE"),
        (("--param", "model=a", "--param", "model=b"), "given twice"),
        (("--param", "modell=a"), "it knows model, revision"),
        (("--param", "model=a", "--cost", "cheap"), "--cost: 'cheap' is no number"),
        (("--param", "model=a", "--cost", "nan"), "no number"),
        (("--param", "model=a", "--cost", "-1"), "cost_per_label"),
        (("--param", "model:=[a"), "no JSON"),
        (("--param", "model:=5"), "model: This must be text"),
        (("--param", "model=a", "--position", "0"), "position"),
        (("--param", "model=a", "--price", "x=1"), "prices"),
        (("--param", "model=a", "--template", "gone.txt"), "gone.txt"),
        (("--param", "model=a", "--system", "gone.txt"), "--template"),
        (("--param", "model=a", "--key-env", "HYPAC_TEST_UNSET"), "not set"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(project, more, reason) -> None:
    code, told = ended(*words(project, *more), user=owner(project))
    assert (code, reason in told) == (1, True), told
    assert not Source.objects.exists()


def test_an_unknown_backend_is_told_which_there_are(project) -> None:
    code, told = ended(*words(project, backend="gpt"), user=owner(project))
    assert (code, "uploaded" in told, "vllm" in told) == (1, True, True), told


def test_a_key_comes_from_the_environment_or_standard_input_and_is_shown_nowhere(
    project, monkeypatch
) -> None:
    monkeypatch.setenv("HOUSE_KEY", f"{KEY}\n")
    told = run("source", project.slug, "--name", "A", *SERVER, "--key-env", "HOUSE_KEY", user=owner(project))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{KEY}\n"))
    told += run("source", project.slug, "--name", "B", *SERVER, "--key-stdin", "--json", user=owner(project))
    assert KEY not in told
    assert [decrypt(source.api_key, where="api_key") for source in Source.objects.all()] == [KEY, KEY]
    assert KEY not in str(list(AuditEvent.objects.values_list("data", flat=True)))
    for name in ("api_key", "API-Key", "token"):
        code, reason = ended(*words(project, "--param", f"{name}={KEY}", name="C"), user=owner(project))
        assert (code, "--key-env or --key-stdin" in reason, KEY in reason) == (1, True, False)


def test_numbers_prices_and_a_prompt_are_what_the_page_would_have_stored(project, tmp_path) -> None:
    template, system = tmp_path / "template.txt", tmp_path / "system.txt"
    template.write_text("Is this good or bad?\n{{ text }}\n")
    system.write_text("Be short.")
    run(
        *("source", project.slug, "--name", "A", *SERVER, "--param", "max_tokens:=5"),
        *("--cost-function", "api_price", "--price", "input=0.1", "--price", "output=0.4", "--cost", "0.02"),
        *("--price", "per_tokens=1000000"),
        *("--template", template, "--system", system),
        user=owner(project),
    )
    source = Source.objects.get()
    assert source.params["max_tokens"] == 5
    assert source.cost_function == "api_price"
    assert source.prices["input"] == "0.1"
    assert source.prompt_versions.get().system == "Be short."


def test_the_role_of_the_person_counts(project) -> None:
    for role in ("annotator", "reviewer", "viewer"):
        user = add_member(project, role).username
        assert ended(*words(project, "--param", "model=a"), user=user)[0] == 1
    assert not Source.objects.exists()
