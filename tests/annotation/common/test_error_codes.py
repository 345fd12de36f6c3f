"""Errors that programs can tell apart: the registry, who uses it, and what answers say of it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework import exceptions

from annotation import error_codes
from annotation.error_codes import ERROR_CODES, FAULT_CODES, GENERAL, code_of, codes_by_status
from annotation.models import Job
from annotation.people import invitations
from testbed.factories import add_member, make_project, make_user
from tests.annotation.apis import Api, problem
from tests.error_table import written

pytestmark = pytest.mark.costly

ROOT = Path(error_codes.__file__).resolve().parent.parent
# How source names a code: as this argument, or as this attribute of a class.
NAMES = ("code", "default_code")
JOB_WAYS = {
    "pause": "cannot_pause",
    "resume": "not_paused",
    "retry": "cannot_retry",
    "try-now": "not_waiting",
    "undo": "import_empty",
}
OF_DJANGO_REST_FRAMEWORK = {
    str(kind.default_code)
    for kind in vars(exceptions).values()
    if isinstance(kind, type) and issubclass(kind, exceptions.APIException)
}


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for part in ("annotation", "routing", "hypac_site"):
        for path in sorted((ROOT / part).rglob("*.py")):
            if "migrations" not in path.parts and path.name != "error_codes.py":
                yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def _texts(node: ast.expr) -> set[str]:
    """The texts that an expression can be."""
    if isinstance(node, ast.IfExp):
        return _texts(node.body) | _texts(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def _named(tree: ast.Module) -> Iterator[str]:
    """The codes that a module names, of errors and of others."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            given = [word.value for word in node.keywords if word.arg in NAMES]
            if called in ("problem", "_told", "Refusal", "register", "__init__"):
                given += node.args[:2]
            for value in given:
                yield from _texts(value)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            if any(getattr(to, "id", "") == "CODES" for to in node.targets):
                for value in node.value.values:
                    yield from _texts(value)
        elif isinstance(node, ast.Assign) and any(getattr(to, "id", "") in NAMES for to in node.targets):
            yield from _texts(node.value)


def _failures(tree: ast.Module) -> dict[str, ast.expr]:
    """The codes of the failures that a module registers, by the names that it gives them."""
    return {
        to.id: node.value.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "attr", "") == "register"
        and isinstance(to := node.targets[0], ast.Name)
    }


def _conflicts(*, of_failures: bool = False) -> Iterator[tuple[str, ast.expr | None]]:
    """Where a conflict is made, by itself or of a failure, and how its code is written there."""
    trees = dict(_trees())
    registered = {path.removesuffix(".py").replace("/", "."): _failures(tree) for path, tree in trees.items()}
    for path, tree in trees.items():
        failures = dict(registered[path.removesuffix(".py").replace("/", ".")])
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                there = registered.get(node.module or "", {})
                failures |= {name.name: there[name.name] for name in node.names if name.name in there}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            words = {word.arg: word.value for word in node.keywords}
            called = getattr(node.func, "id", "")
            if getattr(words.get("raised_as"), "id", "") == "ConflictError":
                assert isinstance(node.func, ast.Attribute)
                of = node.func.value
                yield f"{path}:{node.lineno}", failures.get(of.id) if isinstance(of, ast.Name) else None
            elif of_failures:
                continue
            elif called in ("ConflictError", "NoDisputeError", "refuse_more"):
                yield f"{path}:{node.lineno}", words.get("code")
            elif called == "Refusal" and node.args:
                yield f"{path}:{node.lineno}", node.args[1]


def test_every_conflict_names_a_code_of_its_status() -> None:
    found = list(_conflicts())
    assert len(found) > 150
    for where, code in found:
        handed_on = isinstance(code, ast.Name) or (isinstance(code, ast.Attribute) and code.attr == "code")
        handed_on |= isinstance(code, ast.Call) and where.startswith("annotation/people/invitations.py")
        texts = set() if code is None else _texts(code)
        assert handed_on or texts, where
        assert all(ERROR_CODES[text].status == 409 for text in texts), (where, texts)
    assert {*invitations.CODES, invitations.OPEN} == {*invitations.STATES_IN_WORDS}
    assert all(ERROR_CODES[code].status == 409 for code in invitations.CODES.values())


def test_a_failure_of_jobs_shares_its_code_with_a_conflict_only_where_it_is_one() -> None:
    """A job that fails with a conflict keeps its code, of which the failure's sentence is made."""
    failures = {text for _, tree in _trees() for code in _failures(tree).values() for text in _texts(code)}
    raised = {text for _, code in _conflicts(of_failures=True) for text in _texts(code or ast.Constant(0))}
    assert failures & set(ERROR_CODES) == raised | {"import_in_use"}


def test_no_registered_code_is_unused() -> None:
    named = {code for _, tree in _trees() for code in _named(tree)}
    assert sorted(set(ERROR_CODES) - named - set(GENERAL.values()) - OF_DJANGO_REST_FRAMEWORK) == []


def test_codes_are_words_that_a_job_can_keep_and_each_says_what_to_do() -> None:
    most = Job._meta.get_field("error_code").max_length
    for known in ERROR_CODES.values():
        assert re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", known.code)
        assert len(known.code) <= (most or 0)
        assert re.fullmatch(r"[A-Z][^|]*[^.|]", known.title), known
        assert re.fullmatch(r"[A-Z][^|]*\.", known.remedy), known


def test_each_status_has_a_general_code_first() -> None:
    assert {status: codes[0].code for status, codes in codes_by_status().items()} == GENERAL
    assert code_of("not_found", 404) == "not_found"
    assert code_of("not_found", 409) == code_of(None, 409) == code_of("of_a_job", 409) == "conflict"


def test_the_documents_have_the_tables() -> None:
    for file, text in written().items():
        assert file.read_text() == text, f"{file.name}: run `python -m tests.error_table`"


@pytest.mark.django_db
def test_answers_name_each_field_at_fault_by_its_path() -> None:
    project = make_project()
    api = Api(project, add_member(project, "owner"))
    answer = problem(api.put("choices/", choices=[{"name": "a"}, {"key": "b", "hotkey": "too long"}]), 400)
    assert answer["code"] == "invalid_input"
    assert [(fault["field"], fault["code"]) for fault in answer["faults"]] == [
        ("choices[1].name", "required"),
        ("choices[1].hotkey", "max_length"),
    ]
    assert all(fault["detail"] and set(fault) == {"field", "code", "detail"} for fault in answer["faults"])
    # As before there were faults.
    assert answer["field"] == "choices[1].name"
    assert set(answer["errors"]) == {"choices[1].name", "choices[1].hotkey"}

    answer = problem(api.patch(nmae="x"), 400)
    assert (answer["code"], answer["faults"][0]["field"]) == ("unknown_name", "nmae")
    assert answer["faults"][0]["code"] == "unknown"

    answer = problem(api.patch(name=""), 400)
    assert [(fault["field"], fault["code"]) for fault in answer["faults"]] == [("name", "blank")]


@pytest.mark.django_db
def test_the_same_status_has_different_codes() -> None:
    project = make_project()
    owner = add_member(project, "owner")
    api, nobody = Api(project, owner), Api(project, None)
    assert problem(nobody.get(), 401)["code"] == "not_authenticated"
    wrong = nobody.client.get(nobody.base, headers={"Authorization": "Token hypac_wrong"})
    assert problem(wrong, 401)["code"] == "authentication_failed"
    assert problem(Api(project, make_user()).get(), 404)["code"] == "not_found"
    assert problem(api.get("nowhere/"), 404)["code"] == "no_such_address"
    assert problem(api.send("PUT", "", {}), 405)["code"] == "method_not_allowed"
    assert problem(api.client.get(api.base, headers={"Accept": "image/png"}), 406)["code"] == "not_acceptable"
    assert problem(api.raw("choices/", b"{", "application/json"), 405)["code"] == "method_not_allowed"
    half = api.client.put(f"{api.base}choices/", b"{", content_type="application/json")
    assert problem(half, 400)["code"] == "parse_error"
    assert problem(api.client.put(f"{api.base}choices/", b"x", content_type="a/b"), 415)["code"] == (
        "unsupported_media_type"
    )
    changed = api.send("PATCH", "", {"name": "x"}, **{"If-Match": '"old"'})
    assert problem(changed, 412)["code"] == "changed_meanwhile"
    assert (
        problem(Api(project, add_member(project, "viewer")).patch(name="x"), 403)["code"]
        == "permission_denied"
    )
    assert api.post("archive/").status_code == 200
    assert problem(api.patch(name="x"), 403)["code"] == "project_archived"


@pytest.mark.django_db
def test_the_address_of_a_code_is_a_page_for_everybody() -> None:
    listed = Client().get(reverse("api_errors")).content.decode()
    for known in ERROR_CODES.values():
        page = Client().get(reverse("api_error", args=[known.code]))
        assert page.status_code == 200
        assert page["Content-Type"].startswith("text/html")
        assert f"<h1><code>{known.code}</code></h1>" in page.content.decode()
        assert f'href="{reverse("api_error", args=[known.code])}"' in listed
        assert f'href="{reverse("api_errors")}"' in page.content.decode()
        assert "<table" not in page.content.decode(), "of one code alone"
    assert all(f"<code>{code}</code>" in listed for code in FAULT_CODES)
    problem(Client().get(reverse("api_error", args=["no_such_code"])), 404)
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = Client().get(reverse("api_error", args=["no_such_code"]), headers=browser)
    assert (page.status_code, page["Content-Type"][:9]) == (404, "text/html")
    assert "no error with the code no_such_code" in page.content.decode()


def test_the_schema_names_the_codes_of_each_status() -> None:
    from drf_spectacular.generators import SchemaGenerator

    schema: dict[str, Any] = SchemaGenerator().get_schema(public=True)
    name = {"responses": schema["components"]["responses"]}
    of_problem = schema["components"]["schemas"]["Problem"]["properties"]
    assert set(of_problem["code"]["enum"]) == set(ERROR_CODES)
    assert set(schema["components"]["schemas"]["Fault"]["properties"]["code"]["enum"]) == set(FAULT_CODES)
    for operations in schema["paths"].values():
        for operation in operations.values():
            for status in ("400", "406", "429", "500", "503"):
                asked = operation["responses"][status]["$ref"].rpartition("/")[2]
                content = name["responses"][asked]["content"]["application/problem+json"]
                assert GENERAL[int(status)] in content["schema"]["allOf"][1]["properties"]["code"]["enum"]


@pytest.mark.django_db
def test_conflicts_of_one_status_are_told_apart() -> None:
    project = make_project()
    api = Api(project, add_member(project, "owner"))
    job = Job.objects.create(project=project, kind="import", state=Job.State.DONE)
    codes = {name: problem(api.post(f"jobs/{job.pk}/{name}/"), 409)["code"] for name in JOB_WAYS}
    assert codes == JOB_WAYS
