"""Small files that are whole, as our own writers and those of other tools make them: where damage begins."""

import gzip
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import PIL.Image

from routing.delivery.formats import FORMATS, DeliveryInfo, Files, Page, Row
from testbed.fuzz.mutations import zipped

PUBLISHED = Path(__file__).resolve().parents[2] / "tests" / "core" / "data"
CONFIG = """<?xml version="1.0" encoding="UTF-8"?>
<!-- animals --><View><Header value="Which?"/><Text name="text" value="$text"/>
<Choices name="label" toName="text" choice="single"><Choice value="Cat" alias="cat" hotkey="c"/>
<Choice value="Dog"/></Choices></View>"""
OTHER_CONFIGS = (
    '<View><Image name="i" value="$image"/><Rating name="r" toName="i" maxRating="5"/></View>',
    '<View><Text name="t" value="$a"/><TextArea name="x" toName="t" rows="3"/></View>',
    '<View><HyperText name="t" value="$a"/><Number name="n" toName="t" min="0" max="9"/></View>',
    '<View><Text name="t" value="$t"/><Choices name="c" toName="t" choice="multiple">'
    '<Choice value="a"/></Choices></View>',
)
_ROWS = [
    (
        {"id": "a", "text": 'Two lines,\n"quoted"; tab\t.', "n": "1.5"},
        Row("a", "cat", "Cat", "person", "ann"),
    ),
    (
        {"id": "b", "text": "=1+1 é \U0001f469", "n": ""},
        Row("b", "dog", "Dog", "M1", uncertainty=0.25, p_i="0.9", run=1),
    ),
    ({"id": "c", "text": "last", "n": "x"}, Row("c", reason="nobody was asked", asked=True)),
]
_ODF = "urn:oasis:names:tc:opendocument:xmlns"
_CHOICES = {"cat": "Cat", "dog": "Dog"}


@cache
def delivered(name: str) -> dict[str, bytes]:
    """The files of a small delivery in one of our formats."""
    files = Files(io.BytesIO)
    info = DeliveryInfo(["id", "text", "n"], choices=_CHOICES, sources=["M1"], label_config=CONFIG)
    writer = FORMATS[name](files, info)
    page = Page.of(_ROWS, [original["text"] for original, _row in _ROWS])
    writer.write(
        Page(page.originals, page.columns, [{"n": 1.5, "more": [1, {"a": None}]}, None, None], page.texts)
    )
    writer.close()
    found = {}
    for file in files.made:
        file.content.seek(0)
        found[file.name] = file.content.read()
    return found


def one_of(name: str) -> bytes:
    return max(delivered(name).values(), key=len)


def tables(name: str) -> list[bytes]:
    """Of a text format: plain, in other encodings, and compressed."""
    plain = one_of(name)
    text = plain.decode()
    return [plain, gzip.compress(plain, mtime=0), text.encode("utf-16"), text.encode("cp1252", "replace")]


LS_TASK: dict[str, Any] = {
    "id": 7,
    "data": {"text": "a cat"},
    "meta": {"hypac": {"item": 1}},
    "annotations": [
        {
            "id": 1,
            "completed_by": {"email": "ann@example.org"},
            "lead_time": 2.5,
            "was_cancelled": False,
            "created_at": "2024-05-06T07:08:09Z",
            "result": [
                {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["Cat"]}}
            ],
        },
    ],
    "predictions": [
        {
            "model_version": "m",
            "score": 0.5,
            "result": [
                {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["Dog"]}}
            ],
        }
    ],
}
LS_MIN = {
    "id": 7,
    "text": "a",
    "label": "Cat",
    "annotator": 1,
    "annotation_id": 2,
    "created_at": "2024",
    "lead_time": 1,
}
DOCCANO = {"id": 1, "text": "a cat", "label": ["cat"], "Comments": []}
GROUND_TRUTH = {
    "source": "a cat",
    "animal": 0,
    "animal-metadata": {
        "class-name": "cat",
        "human-annotated": "yes",
        "creation-date": "2024-05-06T07:08:09",
        "confidence": 0.5,
        "type": "groundtruth/text-classification",
    },
}
ARGILLA = {
    "id": "a",
    "status": "completed",
    "fields": {"text": "a cat"},
    "metadata": {"n": 1},
    "vectors": {},
    "suggestions": {"animal": {"value": "cat", "score": 0.5, "agent": "m"}},
    "responses": {"animal": [{"value": "cat", "user_id": "u", "status": "submitted"}]},
}


def lines(*documents: Any) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in documents)


def argilla() -> bytes:
    records = json.dumps([ARGILLA, {**ARGILLA, "id": "b"}]).encode()
    return zipped(
        {"d/.argilla/settings.json": b"{}", "d/.argilla/dataset.json": b"{}", "d/records.json": records}
    )


def images() -> list[bytes]:
    """One of each kind that is shown, and one that moves."""
    image = PIL.Image.linear_gradient("L").resize((9, 7)).convert("RGB")
    found = []
    for format_name in ("PNG", "JPEG", "GIF", "WEBP", "BMP"):
        buffer = io.BytesIO()
        exif = {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"}
        image.save(buffer, format_name, **(exif if format_name in ("PNG", "JPEG", "WEBP") else {}))
        found.append(buffer.getvalue())
    buffer = io.BytesIO()
    image.save(buffer, "GIF", save_all=True, append_images=[image.rotate(90)], duration=10)
    return [*found, buffer.getvalue()]


def workbooks() -> list[bytes]:
    """Ours, and one of OpenDocument."""
    content = (
        f'<office:document-content xmlns:office="{_ODF}:office:1.0" xmlns:table="{_ODF}:table:1.0" '
        f'xmlns:text="{_ODF}:text:1.0"><office:body><office:spreadsheet><table:table table:name="S">'
        '<table:table-row><table:table-cell office:value-type="string"><text:p>text</text:p>'
        '</table:table-cell></table:table-row><table:table-row table:number-rows-repeated="2">'
        '<table:table-cell office:value-type="float" office:value="1.5" '
        'table:number-columns-repeated="2"/></table:table-row></table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    listed = (
        f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>'
    )
    files = {"mimetype": kind, "content.xml": content, "META-INF/manifest.xml": listed}
    return [one_of("xlsx"), zipped({name: text.encode() for name, text in files.items()})]


def published() -> list[bytes]:
    """Deliveries that hold, each a zip archive of its folder; once with the list of hashes, once without."""
    whole = {path.name: path.read_bytes() for path in (PUBLISHED / "delivery-v6").iterdir()}
    bare = {name: content for name, content in whole.items() if name != "manifest.json"}
    found = [whole, bare]
    for version in (1, 2, 3, 4, 5):
        names = {"certificate.json": f"certificate-v{version}.json", "draw.jsonl": f"draw-v{version}.jsonl"}
        found.append({name: (PUBLISHED / path).read_bytes() for name, path in names.items()})
    return [zipped(files) for files in found]
