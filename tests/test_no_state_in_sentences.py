"""What a program does follows from codes and parameters, never from what a sentence says: that is another
one in another language, or after the next change of words.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from routing.core.messages import TEMPLATES

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("annotation", "hypac_site", "routing")
WORDS = {"broken_by", "error", "error_in_words", "invalid_reasons", "message", "msg", "reason", "sentence"}
ASKS = {"startswith", "endswith", "removeprefix", "removesuffix"}
MATCHES = {"match", "fullmatch", "search"}
# Of what is not ours there is nothing but a sentence.
OF_OTHERS = {
    ("annotation/imports/formats/jsonl.py", "error.msg.startswith('Unterminated string')"): "the JSON parser",
    ("annotation/imports/formats/jsonl.py", "error.msg.removesuffix(' at')"): "the JSON parser",
    ("annotation/imports/formats/parquet.py", "'magic bytes' in str(error)"): "pyarrow",
    ("annotation/jobs/context.py", 'str(error) == "can\'t start new thread"'): "Python",
}


def read_from_sentences(tree: ast.AST) -> Iterator[str]:
    """Conditions on what an error or a reason says, as source text."""
    errors = {one.name for one in ast.walk(tree) if isinstance(one, ast.ExceptHandler) and one.name}
    errors |= {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg) and one.arg == "error"}

    def is_sentence(one: ast.AST) -> bool:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "str":
            return any(isinstance(arg, ast.Name) and arg.id in errors for arg in one.args)
        return isinstance(one, ast.Attribute) and one.attr in WORDS

    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            asked = one.func.value if one.func.attr in ASKS else None
            matched = one.args if one.func.attr in MATCHES else []
            if (asked is not None and is_sentence(asked)) or any(map(is_sentence, matched)):
                yield ast.unparse(one)
        elif isinstance(one, ast.Compare):
            texts = [part for part in (one.left, *one.comparators) if isinstance(part, ast.Constant)]
            full = any(isinstance(text.value, str) and text.value for text in texts)
            if full and any(map(is_sentence, (one.left, *one.comparators))):
                yield ast.unparse(one)


@pytest.mark.costly
def test_no_program_state_is_read_from_sentences() -> None:
    found = {
        (str(path.relative_to(ROOT)), text)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for text in read_from_sentences(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set(OF_OTHERS), "let the error say it by `code` and `params`"


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    f()\nexcept ValueError as wrong:\n    late = 'late' in str(wrong)",
        "stopped = job.error.startswith('The budget')",
        "found = PATTERN.match(verdict.reason)",
        "text = reason.message.removeprefix('row 0: ')",
        "if job.error == 'The budget is spent.':\n    stop()",
    ],
)
def test_such_a_condition_is_found(text: str) -> None:
    assert len(list(read_from_sentences(ast.parse(text)))) == 1


@pytest.mark.parametrize(
    "text", ["if job.error:\n    stop()", "same = job.error_code == 'spent'", "x = 'a' in names"]
)
def test_others_are_left_alone(text: str) -> None:
    assert not list(read_from_sentences(ast.parse(text)))


FAIL_JOBS = {"BackendError", "BudgetError", "JobFailedError"}


def words_of_failures(tree: ast.AST) -> Iterator[str]:
    """Errors of jobs that are made of words, as source text."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in FAIL_JOBS:
            yield ast.unparse(one)


@pytest.mark.costly
def test_what_a_job_fails_with_has_a_code() -> None:
    found = {
        (str(path.relative_to(ROOT)), text)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for text in words_of_failures(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set(), "register it in its module (annotation/failures.py), and raise its `error`"


def test_whatever_the_core_says_has_a_template() -> None:
    said = {
        node.args[0].value
        for path in (ROOT / "routing").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say"
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        if "core" in path.parts and "experiment" not in path.parts
    }
    assert len(said) > 50
    assert said <= TEMPLATES.keys()


def test_what_is_said_of_rows_names_its_values_as_texts() -> None:
    """Words make a text of each value first, and `%(most)d` takes none."""
    for path in (ROOT / "annotation" / "imports").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "gettext_noop":
                template = ast.literal_eval(node.args[0])
                assert not re.search(r"%\(\w+\)[dif]", template), f"{path}: {template}"
