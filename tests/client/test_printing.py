"""What `hypac` prints of a server or a file moves no cursor, and what it reads ends in no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from hypac_client import command
from hypac_client.command import main
from hypac_client.progress import Lines
from tests.client.scripted import SITE, TOKEN, Script, ok, problem

DEEP = "[" * 200_000


@pytest.mark.parametrize(
    ("file", "words", "ends"),
    [
        (DEEP, ["take-back", "a", "3", "FILE"], 2),
        ('{"a": ' + DEEP, ["take-back", "a", "3", "FILE"], 2),
        ("", ["take-back", "a", "3", "FILE", "--people", DEEP], 2),
        ("", ["request", "GET", "x", "--data", DEEP], 2),
        (DEEP[:900] + "]" * 900, ["request", "GET", "x", "--data", DEEP[:900] + "]" * 900], 0),
    ],
)
def test_json_that_is_nested_too_deeply_is_refused_in_words(
    file: str,
    words: list[str],
    ends: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    (tmp_path / "rows").write_text(file)
    words = [str(tmp_path / "rows") if word == "FILE" else word for word in words]
    found = [ok({"slug": "a"}), ok({"number": 3, "state": "labelling"})]
    assert main(words, transport=Script(found)) == ends
    assert ("nested too deeply" in capsys.readouterr().err) == bool(ends)


def test_an_answer_that_is_nested_too_deeply_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    for status, ends in ((200, 1), (400, 1)):
        answer = httpx.Response(status, text=DEEP, headers={"Content-Type": "application/json"})
        assert main(["me"], transport=Script([answer])) == ends
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (["start", "p", "epsilon=0.1"], [{"id": 1, "title": "of another API"}]),
        (["start", "p", "epsilon=0.1"], [[{"id": 1}]]),
        (["start", "p", "epsilon=0.1"], [{"slug": "p"}, {"number": None, "state": "calibrating"}]),
        (["start", "p", "epsilon=0.1"], [{"slug": "p"}, {"number": float("inf"), "state": "calibrating"}]),
        (["start", "p", "epsilon=0.1"], [{"slug": "p"}, {"number": "a-b", "state": "calibrating"}]),
        (["projects"], ["text"]),
        (["projects"], [None]),
        (["projects"], [{"results": 5}]),
        (["analyse", "p", "3"], [{"slug": "p"}, {"number": 3, "state": "of another API"}]),
        (["deliver", "p", "3", "folder"], [{"slug": "p"}, {"number": 3, "state": "complete"}, [], {"id": 1}]),
        (["preview", "p", __file__], [{"slug": "p"}, {"suggestion": []}]),
    ],
)
def test_an_answer_of_another_shape_is_refused_in_words(
    words: list[str], answers: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    for flags in ([], ["--json"]):
        replies = [httpx.Response(200, text=json.dumps(answer)) for answer in answers]
        assert main([*flags, *words], transport=Script(replies)) == 1
    plain, as_json = capsys.readouterr().err.splitlines()
    assert "is this the address of a HyPAC site?" in plain
    assert f"hypac: {json.loads(as_json)['detail']}" == plain


def test_a_fault_of_its_own_is_called_no_fault_of_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    monkeypatch.setattr(command.commands, "projects", lambda _client, _options: {}["fault"])
    with pytest.raises(KeyError, match="fault"):
        main(["projects"], transport=Script([]))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_answers_are_read_in_the_encoding_that_their_file_says(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    file, row = tmp_path / "rows", {"item": 1, "value": "café", "annotator": "bo"}
    file.write_bytes(json.dumps(row, ensure_ascii=False).encode(encoding))
    script = Script([ok({"slug": "a"}), ok({"number": 3}), ok({"stored": 1, "known": 0, "refused": []})])
    status = main(["take-back", "a", "3", str(file)], transport=script)
    if encoding == "latin-1":
        assert (status, "it is no text in UTF-8" in capsys.readouterr().err) == (2, True)
    else:
        assert (status, json.loads(script.requests[-1].content)["rows"]) == (0, [row])


def sent(status: int, body: Any) -> httpx.Response:
    """With texts that UTF-8 cannot hold."""
    return httpx.Response(status, text=json.dumps(body), headers={"Content-Type": "application/json"})


EVIL = "a\x1b[2J\x9b8m\u202eb\nexit: 0\ud800"


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_nothing_that_is_printed_moves_the_cursor(
    flags: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    named = {"username": EVIL, EVIL: [EVIL], "fine": "é\u00a0: 模型"}
    assert main([*flags, "me"], transport=Script([sent(200, named)])) == 0
    out, _ = capsys.readouterr()
    assert main([*flags, "me"], transport=Script([sent(400, {"detail": EVIL})])) == 1
    _, err = capsys.readouterr()
    for line in (out, err):  # one line, whatever is in it
        assert line.count("\n") == 1
        assert all(sign.isprintable() or sign in "\n\u00a0" for sign in line)
    assert "é\u00a0: 模型" in out
    if flags:
        assert json.loads(out) == named
        assert json.loads(err)["detail"] == EVIL


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        ("", TOKEN, "HYPAC_URL is not set"),
        ("labels.example.org:8432", TOKEN, "HYPAC_URL has to begin with http:// or https://"),
        ("localhost", TOKEN, "HYPAC_URL has to begin with http:// or https://"),
        ("https://ada:secret@labels.example.org", TOKEN, "HYPAC_URL has to be the site's address"),
        (SITE, "", "HYPAC_TOKEN is not set"),
        (SITE, f"{TOKEN} ", "HYPAC_TOKEN is nothing that a site shows as a token"),
        (f"{SITE}/", "é", "HYPAC_TOKEN is nothing that a site shows as a token"),
    ],
)
def test_what_is_to_be_set_is_named(
    url: str, token: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", url)
    monkeypatch.setenv("HYPAC_TOKEN", token)
    assert main(["me"], transport=Script([])) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"hypac: {words}")
    assert (f"{SITE}/account/" in said) == ("TOKEN" in words)
    assert not any(secret in said for secret in ("secret", TOKEN))


def test_a_page_in_place_of_the_api_is_told_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", f"{SITE}/projects")
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    assert main(["projects"], transport=Script([httpx.Response(404, html="<!doctype html><p>x")])) == 1
    said = "hypac: A web page answered, and no API: this address is no HyPAC site. (HTTP 404)\n"
    assert capsys.readouterr().err == said


def test_all_fields_at_fault_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    faults = [{"field": name, "code": "invalid", "detail": f"Not {name}."} for name in ("alpha", "m")]
    answer = problem(400, "Not alpha.", field="alpha", faults=faults)
    assert main(["me"], transport=Script([answer])) == 1
    assert capsys.readouterr().err == "hypac: alpha: Not alpha. (HTTP 400)\nhypac: m: Not m.\n"


@pytest.mark.parametrize(
    ("status", "code", "named"),
    [
        (401, "authentication_failed", True),
        (401, "", True),
        (403, "token_too_narrow", True),
        (403, "permission_denied", False),
    ],
)
def test_a_token_that_the_site_refuses_is_named_with_the_page_that_makes_another(
    *,
    status: int,
    code: str,
    named: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    for flags in ([], ["--json"]):
        answer = problem(status, "This token does not hold.", code=code)
        assert main([*flags, "me"], transport=Script([answer])) == 1
        said = capsys.readouterr().err
        assert "This token does not hold." in said
        assert ("HYPAC_TOKEN" in said, f"{SITE}/account/" in said) == (named, named)


def test_whoever_waits_may_stop_it_and_a_pipe_may_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_words: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "main", stopped)
    with pytest.raises(SystemExit) as ended:
        command.entry()
    assert (ended.value.code, capsys.readouterr().err.startswith("hypac: stopped")) == (130, True)
    code = (
        "import httpx; from hypac_client import command; "
        "answer = httpx.MockTransport(lambda _: httpx.Response(200, json={'username': 'x' * 10**6})); "
        "main = command.main; command.main = lambda: main(['me'], transport=answer); command.entry()"
    )
    package = str(Path(command.__file__).parents[1])
    own = {**os.environ, "HYPAC_URL": SITE, "HYPAC_TOKEN": TOKEN, "PYTHONPATH": package}
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=own) as child:
        assert child.stdout
        assert child.stderr
        child.stdout.close()
        assert (child.stderr.read(), child.wait()) == (b"", 141)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["take-back", "a", "3", "FILE", "--people", "5"], "--people: names are wanted"),
        (["take-back", "a", "3", "FILE", "--people", "[]"], "--people: names are wanted"),
        (["take-back", "a", "3", "FILE", "--people", '{"user 3": 3}'], "--people: names are wanted"),
        (["take-back", "a", "3", "FILE", "--people", "{"], "--people: it is no JSON"),
        (["request", "POST", "projects/", "--data", "{"], "--data: it is no JSON"),
    ],
)
def test_an_option_that_cannot_be_read_is_named(
    words: list[str],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    (tmp_path / "rows").write_text("[{}]")
    words = [str(tmp_path / "rows") if word == "FILE" else word for word in words]
    assert main(words, transport=Script([ok({"slug": "a"}), ok({"number": 3})])) == 2
    assert named in capsys.readouterr().err


def test_a_stage_that_is_shown_moves_no_cursor_either(capsys: pytest.CaptureFixture[str]) -> None:
    Lines("import").show("\x1b[2J", 1, 2)
    assert "\x1b" not in capsys.readouterr().err
