"""What models, their servers and other programs say, and what people write for them."""

import json
from itertools import product
from typing import Any

import httpx
from django.http import HttpResponse
from django.test import RequestFactory

from annotation.common import downloads, markdown
from annotation.common.addresses import address_in
from annotation.common.api.conditional import answer_once
from annotation.common.value_reader import ValueReader
from annotation.errors import HypacError, InputError
from annotation.models import Item
from annotation.outside.buckets import ObjectInfo, _size, parsed
from annotation.outside.net import NetResponse
from annotation.outside.webhooks.sending import LONGEST_RETRY_AFTER, _retry_after
from annotation.projects.label_studio_config import read_config
from annotation.task_types import SHAPES, TASK_TYPES
from routing.elsewhere import cvat
from routing.items.sorts import NAMES as SORT_NAMES, key_of
from routing.sources import storable
from routing.sources.backends import TaskSpec
from routing.sources.backends.cells import decimal_cell, label_numbers, listed, numbers
from routing.sources.backends.label_studio_ml.calls import answer_of as ml_answer_of
from routing.sources.backends.label_studio_ml.label_config import label_config
from routing.sources.backends.llm import SAMPLING, answer_of, sampling_of
from routing.sources.backends.openai_api.completions import generated_in
from routing.sources.backends.openai_api.endpoint import usage_of
from routing.sources.backends.openai_api.verdicts import verdict_on
from routing.sources.backends.openai_batch.lines import read_results
from routing.sources.backends.params import read_values
from routing.sources.backends.uploaded.lines import read_line
from routing.sources.prompts import check_prompt, read_answer, render
from routing.sources.source_context import Example, Prompt
from testbed.fuzz import corpus
from testbed.fuzz.storable import assert_storable
from testbed.fuzz.target import Target

CHOICES = (("cat", "Cat"), ("dog", "Dog, big"), ("n", "neither"))
SPECS = [
    TaskSpec(name, CHOICES if kind.has_labels else (), "Be *kind*.", ("text", "a b", "text:x"))
    for name, kind in TASK_TYPES.items()
]
READERS = [
    ValueReader(spec.task_type, {w: key for key, name in spec.choices for w in (key, name)}) for spec in SPECS
]
ANSWERS = (
    b"cat",
    b"**Dog, big**",
    b"<think>cat?</think>dog",
    b'{"label": "cat", "why": "x"}',
    b'["cat", "dog"]',
    b"- cat\n- dog",
    b"Answer: \\boxed{\\frac{1}{2}}",
    b"1,234.5",
    b"about 3/4 or 75 %",
    b"```python\nprint(1)\n```",
    b"It is not a cat.",
    b'[{"label":"cat","x":10.5,"y":20,"width":30,"height":25.25},'
    b'{"label":"n","x":0,"y":0,"width":1,"height":1e-4}]',
    b'[{"label":"cat","size":[4,6],"counts":[5,2,2,2,13]},{"label":"n","size":[4,6],"counts":"5220;"}]',
    b'[{"label":"cat","size":[4,6],"rle":[0,0,0,96,57,27,254,27,0,159,255,29,128,0]}]',
)
CVAT = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version>'
    b'<image id="0" name="images/17_cat.png" width="80" height="60">'
    b'<box label="cat" xtl="8.0" ytl="6.5" xbr="40" ybr="60" rotation="0.0"/></image>'
    b'<image id="2" name="19_.png" width="80" height="60">'
    b'<mask label="cat" rle="1, 2, 3" left="3" top="4" width="3" height="2"/></image>'
    b'<image id="1" name="18_.png" width="80" height="60"/></annotations>'
)
COMPLETION = {
    "model": "m",
    "system_fingerprint": "f",
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    "choices": [
        {
            "index": n,
            "finish_reason": "stop",
            "message": {"content": "cat", "reasoning_content": "x"},
            "logprobs": {
                "content": [
                    {"token": "cat", "logprob": -0.1, "top_logprobs": [{"token": "dog", "logprob": -3}]}
                ]
            },
        }
        for n in (0, 1)
    ],
}
BATCH = {"custom_id": f"12-{'0a' * 12}", "response": {"status_code": 200, "body": COMPLETION}, "error": None}
PREDICTION = {
    "external_id": "a",
    "label": "cat",
    "confidence": 0.5,
    "probabilities": {"cat": 0.5, "dog": 0.5},
    "tokens_in": 3,
    "token_logprobs": [-0.1],
    "samples": ["cat", "dog"],
    "seconds": 0.5,
    "cost": "0.001",
    "finish_reason": "stop",
}
ML_PREDICTION = corpus.LS_TASK["predictions"][0]


def text_of(data: bytes) -> str:
    """Any text that JSON can bring, halves of surrogate pairs included."""
    return data.decode("utf-8", "surrogateescape")


# --- Models ---


def answers(data: bytes) -> None:
    text = text_of(data)
    for spec, reader in zip(SPECS, READERS, strict=True):
        for found in (read_answer(text, spec), spec.kind.parse(text, spec.choices) if text.strip() else None):
            if found is not None:
                _assert_answered(found.value, found.reason)
        value, reason = reader(text)
        _assert_answered(value, reason)
        if value is not None:
            again, _ = reader(value)
            assert again == value, f"{value!r} is read as {again!r}"


def _assert_answered(value: Any, reason: str) -> None:
    assert (value is None) == bool(reason)
    assert_storable([value, str(reason)])


def values(data: bytes) -> None:
    """Any JSON in place of a label."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    for reader in READERS:
        _assert_answered(*reader(found))


def completions(data: bytes) -> None:
    for status in (200, 400, 429, 500):
        verdict = verdict_on(NetResponse(status, httpx.Headers(), data), "key")
        assert_storable(str(verdict.reason))
        if verdict.body is None:
            continue
        for spec in SPECS:
            sampling = sampling_of(
                read_values(SAMPLING, {"structured": "json" if spec.choices else "none"}), spec
            )
            texts = generated_in(verdict.body)
            found = answer_of(
                texts[0],
                spec=spec,
                sampling=sampling,
                usage=usage_of(verdict.body),
                samples=texts,
                verbalized=["50 %"],
                served_model=str(verdict.body.get("model")),
            )
            assert_storable([found.value, found.reason, found.raw, found.finish_reason, found.served_model])
            assert found.tokens_in is None or 0 <= found.tokens_in < 2**31


def predictions(data: bytes) -> None:
    """Lines of sent answers, and of files that the Batch API gives back."""
    for result in read_results(data.splitlines()):
        assert_storable(result.reason)
    refused: InputError | None = None
    for line in text_of(data).splitlines()[:20]:
        for spec, reader in zip(SPECS, READERS, strict=True):
            try:
                found = read_line(line, "", spec, reader)
            except InputError as error:
                refused = error
                assert_storable(str(error))
            else:
                assert_storable([storable.text(found.external_id, 300), storable.document(found.answer)])
    if refused:
        raise refused


def ml_backend(data: bytes) -> None:
    """What a machine learning backend of Label Studio answers."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    for spec in SPECS:
        answer = ml_answer_of(found, label_config(spec), spec.kind, "v")
        told = {"value": answer.value, "raw": answer.raw, "served": answer.served_model}
        assert_storable([storable.document(told), storable.text(answer.reason, 500)])


def cells(data: bytes) -> None:
    """Cells of a table in which a model's answers were recorded."""
    text = data.decode("utf-8", "replace").replace("\0", "")
    assert_storable([numbers(text), listed(text), label_numbers(text), str(decimal_cell(text))])


# --- What people write ---


def prompts(data: bytes) -> None:
    system, _, template = text_of(data).partition("\x1e")
    for spec in SPECS:
        example = Example({"text": "x", "a b": "y"}, spec.choices[0][0] if spec.choices else "7")
        prompt = Prompt(template or system, system if template else "", (example,))
        try:
            check_prompt(prompt, spec)
        except InputError as error:
            str(error)
            continue
        render(prompt, spec, Item(external_id="a", text="{{ text }} $&\\1", data={"a b": None, "text": 1}))


def configs(data: bytes) -> None:
    """Label Studio's labelling configurations: of a project, and of a model server."""
    text = text_of(data)
    refused: InputError | None = None
    for spec in SPECS:
        try:
            label_config(spec, text)
        except InputError as error:
            refused = error
    found = read_config(text)
    assert found.task_type in TASK_TYPES
    if refused:
        raise refused


def frames(data: bytes) -> None:
    """What CVAT exports."""
    for kind, empty in product(SHAPES, cvat.EMPTY):
        for one in cvat.answers_of(data, kind, annotator="ann", empty=empty):
            assert (one.value is None) == bool(one.problem)
            assert one.item is None or 0 <= one.item < 2**63
            assert_storable(one.problem)
            for reader in READERS if one.value is not None else ():
                _assert_answered(*reader(one.value))


def marked_up(data: bytes) -> None:
    html = markdown.render(data.decode("utf-8", "replace")) or ""
    assert len(html) <= 100 * len(data) + 1000
    for forbidden in ("<script", "<img", "<style", "<iframe", "javascript:"):
        assert f'="{forbidden}' not in html.lower()
        assert not forbidden.startswith("<") or forbidden not in html.lower()


# --- Servers and addresses ---


def bucket_answers(data: bytes) -> None:
    parsed(NetResponse(200, httpx.Headers(), data))


HEADERS = b"\n".join(
    (
        b"Retry-After: 120",
        b"Retry-After-Ms: 12.5",
        b"X-RateLimit-Reset-Tokens: 6m0s",
        b"Range: bytes=0-99",
        b'If-Range: "x"',
        b'If-None-Match: W/"abc", "def"',
        b"Content-Length: 12",
        b"X-Forwarded-For: 1.2.3.4, [::1]:80",
        b"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT",
        b"Cursor: [1,2]",
    )
)


def headers(data: bytes) -> None:
    """Headers of requests and of answers, one a line, as far as we read them ourselves."""
    pairs = [line.partition(": ") for line in data.decode("latin-1").splitlines()[:40]]
    named = {
        name.lower(): value for name, _, value in pairs if name.isascii() and name.replace("-", "").isalnum()
    }
    given = httpx.Headers([(name.encode(), value.encode("latin-1")) for name, value in named.items()])
    wait = verdict_on(NetResponse(429, given, b"{}")).wait
    assert wait is None or 0 <= wait < float("inf")
    assert 0 <= _retry_after(named.get("retry-after", "")) <= LONGEST_RETRY_AFTER
    assert ":" not in address_in(named.get("x-forwarded-for", "")) or len(named["x-forwarded-for"]) > 1
    for sort in SORT_NAMES:
        key_of(sort, named.get("cursor"))
    request = RequestFactory().get("/", headers=named)
    answer_once(request, HttpResponse(b"x"))
    found = downloads.RANGE.fullmatch(named.get("range", ""))
    if found and found.groups() != ("", ""):
        first, last = downloads._span(found[1], found[2], 10)
        assert first > last or 0 <= first <= last < 10
    try:
        assert ObjectInfo("k", _size(named.get("content-length", "0")), "").size >= 0
    except HypacError as error:
        str(error)


TARGETS = [
    Target(
        "answers",
        answers,
        lambda: ANSWERS,
        words=[b"<think>", b"</think>", b"\\boxed{", b"```", b"\\frac", b"%"],
    ),
    Target("values", values, lambda: [b'"cat"', b'["cat","Dog, big"]', b"3.50", b'{"a": 1}', b"[[1], null]"]),
    Target(
        "cvat",
        frames,
        lambda: [CVAT],
        (InputError,),
        words=[b"<box", b"<mask", b"<image", b'rotation="', b"<!DOCTYPE", b"&#0;", b"1e999999999"],
    ),
    Target(
        "completions",
        completions,
        lambda: [json.dumps(COMPLETION).encode(), b'{"error":{"message":"m","code":429}}'],
    ),
    Target(
        "predictions",
        predictions,
        lambda: [corpus.lines(PREDICTION), corpus.lines(BATCH), corpus.lines(PREDICTION, BATCH)],
        (InputError,),
    ),
    Target(
        "ml-backend",
        ml_backend,
        lambda: [json.dumps(ML_PREDICTION).encode(), json.dumps([ML_PREDICTION]).encode()],
    ),
    Target(
        "cells",
        cells,
        lambda: [b"0.5; 0.25", b'["a", "b"]', b'{"cat": 0.5}', b"cat: 0.5; dog: 0.25", b"[0.5, 1e3]"],
    ),
    Target(
        "prompts",
        prompts,
        lambda: [b"Label: {{ labels }}\x1e{{ text }} {{a b}} {{ column:text }}{{ examples }}"],
        words=[b"{{", b"}}", b"{{ label_keys }}", b"{{ guidelines }}", b"column:"],
    ),
    Target(
        "label-config",
        configs,
        lambda: [one.encode() for one in (corpus.CONFIG, *corpus.OTHER_CONFIGS)],
        (InputError,),
        words=[
            b"<!--",
            b"-->",
            b"<?x ",
            b"?>",
            b"<!DOCTYPE v [<!ENTITY a 'b'>]>",
            b"&a;",
            b"<![CDATA[",
            b"]]>",
        ],
    ),
    Target(
        "markdown",
        marked_up,
        lambda: [b"# A\n\n* b [c](http://d)\n\n| a | b |\n|---|---|\n| `x` | <b> |\n\n> q\n\n1. z"],
        words=[b"](javascript:", b"![", b"<script>", b"***", b"|", b"> > > >", b"[["],
    ),
    Target(
        "bucket",
        bucket_answers,
        lambda: [b'<?xml version="1.0"?><R xmlns="http://x"><Contents><Key>a</Key></Contents></R>'],
        (HypacError,),
        words=[b"<!DOCTYPE r [<!ENTITY a 'b'>]>", b"&a;"],
    ),
    Target(
        "headers",
        headers,
        lambda: [HEADERS],
        words=[b"bytes=-0", b"nan", b"inf", b"1e400", b"1h2m", b'W/"', b"::ffff:1.2.3.4"],
    ),
]
