"""Texts that are not UTF-8 are never guessed in silence: what they would read as is offered."""

import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.errors import InputError
from annotation.imports.check import check_import
from annotation.imports.columns import ColumnMapping
from annotation.imports.encodings import ENCODINGS, EncodingNeededError, _offers, encoding_of, offers_for
from annotation.imports.upload import preview, start_import
from testbed.factories import make_project
from tests.annotation.imports.test_import_pages import text
from tests.annotation.imports.test_import_undo import undo
from tests.annotation.imports.test_imports import import_file, store

pytestmark = pytest.mark.django_db

FRENCH = "id,text\n1,Café à la crème\n2,plain\n3,naïve œuvre – 5 €\n"
BY_TEXT = ColumnMapping(id_column="id", text_column="text")


@pytest.fixture
def project():
    return make_project()


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("windows-1252", "Café à la crème, Größe"),
        ("windows-1252", "¿Qué? Él dijo «no»"),
        ("windows-1252", "costs 5 € – ok"),
        ("windows-1251", "Привет мир"),
        ("koi8-r", "Привет мир, как дела"),
        ("windows-1250", "Zażółć gęślą jaźń"),
        ("iso-8859-2", "Příliš žluťoučký kůň"),
        ("windows-1253", "Καλημέρα κόσμε"),
        ("windows-1256", "مرحبا بالعالم"),
        ("ibm850", "Café à la crème"),
        ("macintosh", "Café à la crème, Größe"),
        ("shift_jis", "これは日本語のテキストです"),
        ("euc-jp", "これは日本語のテキストです"),
        ("gb18030", "这是一个中文句子。"),
        ("big5", "這是一個中文句子。"),
    ],
)
def test_the_likeliest_encoding_is_offered_first(encoding, said) -> None:
    first = _offers([said.encode(ENCODINGS[encoding].codec)])[0]
    assert first.name == encoding
    assert all(word in said for word in first.words)


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16-le", "utf-16-be"])
def test_a_text_in_another_encoding_is_asked_about_and_read_as_said(project, encoding) -> None:
    stored = store(project, FRENCH.encode(ENCODINGS[encoding].codec))
    with pytest.raises(EncodingNeededError, match=encoding) as refused:
        preview(stored_file=stored)
    assert refused.value.where == "encoding"
    assert refused.value.offers[0].name == encoding
    seen = preview(stored_file=stored, encoding=encoding)
    assert (seen.format, seen.encoding, seen.rows[0]) == (
        "csv_comma",
        encoding,
        {"id": "1", "text": "Café à la crème"},
    )
    checked = check_import(stored_file=stored, mapping=BY_TEXT, format_name=seen.format, encoding=encoding)
    assert (checked.new, checked.unusable) == (3, 0)
    job = import_file(project, stored, BY_TEXT, encoding=encoding)
    assert job.result["added"] == 3
    assert project.items.get(external_id="3").text == "naïve œuvre – 5 €"


def test_an_imported_file_is_read_as_it_was_until_that_is_taken_back(project) -> None:
    stored = store(project, FRENCH.encode("cp1252"))
    job = import_file(project, stored, BY_TEXT, encoding="windows-1252")
    assert encoding_of(stored) == "windows-1252"
    with pytest.raises(InputError, match="imported in the encoding “windows-1252”"):
        preview(stored_file=stored, encoding="windows-1250")
    undo(job)
    assert encoding_of(stored, "windows-1250") == "windows-1250"


def test_what_says_itself_what_it_is_needs_nothing(project) -> None:
    for content in (FRENCH.encode(), FRENCH.encode("utf-8-sig"), FRENCH.encode("utf-16"), b"id,text\n1,a\n"):
        assert preview(stored_file=store(project, content)).encoding == ""
    long = json.dumps({"id": 1, "text": "é" * 300_000}, ensure_ascii=False).encode()
    assert encoding_of(store(project, long, "long.jsonl")) == ""  # a line that is read in pieces


def test_a_character_outside_the_chosen_encoding_is_named_with_its_line(project) -> None:
    stored = store(project, FRENCH.encode("cp1252") + b"4,\x81\n")
    with pytest.raises(EncodingNeededError) as refused:
        preview(stored_file=stored)
    assert "windows-1252" not in [offer.name for offer in refused.value.offers]
    job = None
    with pytest.raises(InputError, match="byte 0x81 stands for nothing") as wrong:
        job = start_import(
            project=project,
            user=project.created_by,
            stored_file=stored,
            mapping=BY_TEXT,
            encoding="windows-1252",
        )
    assert (wrong.value.where, job) == ("line 5", None)


def test_unknown_encodings_and_files_that_are_no_text_are_refused(project) -> None:
    with pytest.raises(InputError, match="There is no encoding 'latin9'"):
        preview(stored_file=store(project, FRENCH), encoding="latin9")
    image = store(project, b"\x89PNG\r\n\x1a\n0000", "a.png")
    with pytest.raises(InputError, match="This file is no text"):
        preview(stored_file=image, encoding="windows-1252")


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return out.getvalue()


@pytest.mark.parametrize(
    "files",
    [
        {"rows_csv": FRENCH.encode("cp1252")},
        {"one_txt": "Café à la crème".encode("cp1252"), "two_txt": b"plain"},
    ],
)
def test_texts_in_an_archive_are_read_as_said_too(project, files) -> None:
    stored = store(project, zipped(**files), "texts.zip")
    with pytest.raises(EncodingNeededError, match="windows-1252"):
        preview(stored_file=stored)
    seen = preview(stored_file=stored, encoding="windows-1252")
    assert seen.rows[0]["text"] == "Café à la crème"
    assert import_file(project, stored, seen.suggestion, encoding="windows-1252").result["problems"] == 0


class TestPages:
    @pytest.fixture
    def owner(self, client, project):
        client.force_login(project.created_by)
        return client

    def test_readings_are_offered_none_chosen_and_the_chosen_one_is_imported(self, owner, project) -> None:
        sent = SimpleUploadedFile("rows.csv", FRENCH.encode("cp1252"))
        path = owner.post(reverse("import_upload", args=[project.slug]), {"file": sent}).url
        page = text(owner.get(path))
        assert "<h1>Which of these reads right?</h1>" in page
        assert "<bdi>crème</bdi>" in page
        assert "Windows-1252, Western European · the most likely one" in page
        assert "checked" not in page
        read = text(owner.get(path, {"encoding": "windows-1252"}))
        assert "Café à la crème" in read
        assert "<h1>Which column is what?</h1>" in read
        form = {"text_column": ["text"], "id_column": "id", "encoding": "windows-1252"}
        assert "Café à la crème" in text(owner.post(path, form | {"do": "look"}))
        assert owner.post(path, form).status_code == 302
        assert project.jobs.get(kind="import").params["encoding"] == "windows-1252"

    def test_another_encoding_can_be_asked_for(self, owner, project) -> None:
        stored = store(project, FRENCH)
        path = reverse("import_mapping", args=[project.slug, stored.pk])
        assert '<a href="?encoding=ask">' in text(owner.get(path))
        assert offers_for(stored)[0].name == "utf-8"
        assert "The file is UTF-8." in text(owner.get(path, {"encoding": "ask"}))
        assert owner.get(path, {"encoding": "martian"}).status_code == 302
