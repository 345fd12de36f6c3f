"""What each file format yields: rows, problems with their places, and errors that end the reading."""

import csv
import io
import json
import zipfile
from typing import IO

import pytest

from annotation.errors import InputError
from annotation.imports.formats import registry
from annotation.imports.formats.base import Importer, Problem, Record, Row
from annotation.imports.formats.detect import detect_in
from annotation.imports.formats.registry import IMPORTERS
from annotation.imports.formats.text import without_marks
from testbed.factories import make_image


def read(name: str, content: str | bytes, **options: int) -> list[Record]:
    raw = content if isinstance(content, bytes) else content.encode()
    return list(registry.get(name).records(io.BytesIO(raw), "data.x", **options))


def count_of(importer: Importer, file: IO[bytes], name: str) -> int:
    return sum(rows for rows, _characters in importer.measure(file, name))


def make_zip(entries: dict[str, bytes | str], *, compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for path, content in entries.items():
            archive.writestr(path, content)
    return buffer.getvalue()


def problems(records: list[Record]) -> list[Problem]:
    return [record for record in records if isinstance(record, Problem)]


class TestDelimited:
    def test_rows_keep_columns_quotes_and_line_numbers(self) -> None:
        rows = read("csv", 'id,text\n1,"a, ""b""\nc"\n\n2,=1+1\n')
        assert rows == [
            Row("line 2", "data.x:2", {"id": "1", "text": 'a, "b"\nc'}),
            Row("line 5", "data.x:5", {"id": "2", "text": "=1+1"}),
        ]

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("csv", "a;b\n1,5;2\n"),
            ("tsv", "a\tb\n1,5\t2\n"),
            ("csv", "\ufeffa;b\r\n1,5;2\r\n"),
        ],
    )
    def test_delimiters_line_ends_and_byte_order_mark(self, name: str, content: str) -> None:
        assert read(name, content) == [Row("line 2", "data.x:2", {"a": "1,5", "b": "2"})]

    @pytest.mark.parametrize(
        ("header", "found"),
        [
            ('"Name, first";"Name, last";b', "csv_semicolon"),
            ('a;"x ""y"", z, w"', "csv_semicolon"),
            ('"a;b;c",d', "csv_comma"),
            ('5" disk,6" disk;x', "csv_comma"),
            ('a,"open;;;', "csv_comma"),
        ],
    )
    def test_marks_in_quoted_names_tell_nothing_of_the_delimiter(self, header: str, found: str) -> None:
        assert detect_in(io.BytesIO(f"{header}\n".encode()), "x.csv", IMPORTERS.values()) == found
        if "open" not in header:
            names = {"csv_comma": ",", "csv_semicolon": ";"}
            width = len(next(csv.reader([header], delimiter=names[found])))
            (row,) = read("csv", f"{header}\n" + names[found].join("1" * width) + "\n")
            assert isinstance(row, Row)
            assert len(row.columns) == width

    def test_a_row_with_another_number_of_cells_is_a_problem_and_reading_goes_on(self) -> None:
        short, long, good = read("csv", "a,b\n1\n1,2,3\n1,2\n")
        assert "has 1 cell, but the header names 2 columns. Complete it, or" in str(short)
        assert "has 3 cells" in str(long)
        assert "into quotation marks" in str(long)
        assert isinstance(good, Row)
        assert "Complete it" in str(read("csv", "a,b,c\n1,2\n")[0])

    @pytest.mark.parametrize(
        ("content", "where", "message"),
        [
            (b"", "data.x", "empty"),
            (b"a,a\n1,2\n", "line 1", "twice"),
            (b"a,,c\n1,2,3\n", "line 1", "Column 2 has no name"),
            (b"a,b\n1,2\n3,caf\xe9\n", "line 3", "not UTF-8: byte 0xE9 at place 6"),
            (b"a,b\n1,\x002\n", "line 2", "NUL"),
            (b'a\n1\n"open\n4\n', "line 3", "Close the quotation mark in line 3"),
            (b'a,b\n1,2\n3,"cut', "line 3", "Close the quotation mark in line 3"),
            (b'a,b\n1,"two\nlines, and "more" in it"\n3,4\n', "line 2", "quotation marks"),
            (b'a,"b"x\n1,2\n', "line 1", "quotation marks"),
            ("a,b\n1,2\n".encode("utf-16") + b"x", "line 3", "begins as UTF-16, and this is not"),
        ],
    )
    def test_what_cannot_be_read_on_names_the_line(self, content: bytes, where: str, message: str) -> None:
        with pytest.raises(InputError) as raised:
            read("csv", content)
        assert raised.value.where == where
        assert message in raised.value.message

    @pytest.mark.parametrize(
        "bad",
        [b'3,"x"y\n', b'3,"open\n', b'"3"",4\n', b'3,"open\n5,6\n7,8\n'],
        ids=["behind", "open", "odd", "long"],
    )
    def test_quotation_marks_that_do_not_fit_refuse_one_row_where_it_can_be_told_apart(self, bad) -> None:
        found = read("csv", b"a,b\n1,2\n" + bad + b'8,"9"\n"10\nlines",11\n')
        problem = found[1]
        assert isinstance(problem, Problem)
        assert problem.where == "line 3"
        assert "quotation marks of this row do not fit together" in problem.message
        rest = [row.columns for row in found[2:] if isinstance(row, Row)]
        assert rest[-2:] == [{"a": "8", "b": "9"}, {"a": "10\nlines", "b": "11"}]
        assert len(found) == 3 + bad.count(b"\n")
        assert read("csv", b"a,b\n1,2\n" + bad + b'8,"9"\n', skip=2) == found[2:-1]

    @pytest.mark.parametrize(
        ("first", "mark", "name"),
        [
            ("sep=;", ";", "csv_semicolon"),
            ("SEP=,", ",", "csv_comma"),
            ("sep=\t", "\t", "tsv"),
            ("sep=|", "|", "csv"),
        ],
    )
    def test_a_first_line_says_what_is_between_the_cells(self, first: str, mark: str, name: str) -> None:
        content = (
            f"{first}\r\na{mark}b\r\n1,2;3{mark}4\r\n".encode()
            if mark == "|"
            else (f"{first}\r\na{mark}b\r\n1{mark}2\r\n".encode())
        )
        assert detect_in(io.BytesIO(content), "x.csv", IMPORTERS.values()) == name
        assert detect_in(io.BytesIO(b"\xef\xbb\xbf" + content), "x", IMPORTERS.values()) == name
        (row,) = read(name, content)
        assert isinstance(row, Row)
        assert row.where == "line 3"
        assert list(row.columns) == ["a", "b"]
        assert [*read("csv", "sep=x\n1\n")] == [Row("line 2", "data.x:2", {"sep=x": "1"})]

    def test_caps(self, settings) -> None:
        settings.HYPAC_MAX_CELL_CHARACTERS = 10
        assert [type(row) for row in read("csv", f"a\n{'x' * 10}\n{'x' * 11}\nok\n")] == [Row, Problem, Row]
        with pytest.raises(InputError, match="longer than"):
            read("csv", f"a\n{'x' * 100_000}\n")
        with pytest.raises(InputError, match="longer than"):
            read("csv", 'a\n"' + "x\n" * 100_000)
        settings.HYPAC_MAX_IMPORT_ROWS = 2
        with pytest.raises(InputError, match="more than 2 rows"):
            read("csv", "a\n1\n2\n3\n")
        with pytest.raises(InputError, match="501 columns"):
            read("csv", ",".join(f"c{number}" for number in range(501)) + "\n")

    def test_skipping_goes_on_where_it_stopped(self) -> None:
        content = "a\n1\n2\n3\n"
        assert read("csv", content, skip=1) == read("csv", content)[1:]

    @pytest.mark.costly
    def test_utf_16_long_headers_and_many_columns(self) -> None:
        rows = "".join(f"{n};\u0a0d é {n}\r\n" for n in range(20_000))  # 0A and 0D, and no line's end
        found = read("csv", f"id;text\r\n{rows}".encode("utf-16"))
        assert found[-1] == Row("line 20001", "data.x:20001", {"id": "19999", "text": "\u0a0d é 19999"})
        assert found == read("csv", f"id;text\r\n{rows}")
        names = [f"{'name ' * 63}{number:05d}" for number in range(500)]
        (row,) = read("csv", ",".join(f'"{name}"' for name in names) + "\n" + "1," * 499 + "1\n")
        assert isinstance(row, Row)
        assert {len(name) for name in row.columns} == {320}
        assert list(row.columns) == names

    def test_utf_16_is_read_again_from_its_start_and_takes_no_copy(self, monkeypatch) -> None:
        def no_file(*_args: object, **_options: object) -> None:
            raise AssertionError

        monkeypatch.setattr("tempfile.TemporaryFile", no_file)
        monkeypatch.setattr("tempfile.SpooledTemporaryFile", no_file)
        lines = "".join(f"{n} \u0a0d\n" for n in range(50_000))
        file = without_marks(io.BytesIO(lines.encode("utf-16")))
        assert file.readline().decode() == "0 \u0a0d\n"
        file.seek(0)
        assert file.read().decode() == lines

    def test_where_utf_16_ends_is_named(self) -> None:
        content = "a,b\n1,2\n3,4\n".encode("utf-16") + b"\x00\xd8\x00\x00"  # half of a pair
        with pytest.raises(InputError, match="begins as UTF-16") as raised:
            read("csv", content)
        assert raised.value.where == "line 4"


class TestPlainLines:
    def test_each_line_is_an_item(self) -> None:
        assert read("lines", '\ufeffone, two\r\n \n"three\n') == [
            Row("line 1", "data.x:1", {"text": "one, two"}),
            Row("line 3", "data.x:3", {"text": '"three'}),
        ]

    def test_empty_and_too_long(self, settings) -> None:
        with pytest.raises(InputError, match="empty"):
            read("lines", "\n \n")
        settings.HYPAC_MAX_CELL_CHARACTERS = 3
        assert [type(row) for row in read("lines", "abc\nabcd\nab\n")] == [Row, Problem, Row]
        assert read("lines", "a\nb\nc\n", skip=2)[0].where == "line 3"


class TestJsonList:
    LIST = ' [{"s": "a \\" ], { \\\\", "n": 1.50},\n\n {"s": "b",\n "o": [1, {"k": "}"}]} ,\n5, {"s": ""}]\n'

    def test_entries_are_read_as_lines_of_json_lines_are(self) -> None:
        first, second, number, last = read("json", self.LIST)
        assert first == Row(
            "line 1, entry 1", "data.x:1", {"s": 'a " ], { \\', "n": "1.50"}, typed={"n": 1.5}
        )
        cells = {"s": "b", "o": '[1, {"k": "}"}]'}
        assert second == Row("line 3, entry 2", "data.x:2", cells, typed={"o": [1, {"k": "}"}]})
        assert isinstance(number, Problem)
        assert number.where == "line 5, entry 3"
        assert last == Row("line 5, entry 4", "data.x:4", {"s": ""})

    @pytest.mark.parametrize("block", [1, 2, 3, 5, 7, 64])
    def test_wherever_a_block_ends(self, monkeypatch, block: int) -> None:
        whole = read("json", self.LIST)
        monkeypatch.setattr("annotation.imports.formats.json_list.BLOCK", block)
        assert read("json", self.LIST) == whole
        rows = [{"id": str(n), "text": f'{n} "é\\" [\u20ac]'} for n in range(50)]
        for indent in (None, 2):
            text = json.dumps(rows, indent=indent, ensure_ascii=indent is None)
            assert [row.columns for row in read("json", text) if isinstance(row, Row)] == rows

    @pytest.mark.parametrize(
        ("content", "where", "message"),
        [
            ("[", "line 1", "never closed"),
            ('[{"a": "x"},\n{"a": "x]', "line 2", "seems to be cut off: export or upload it again, whole."),
            ('[{"a": 1}]\n[', "line 2", "after the end"),
            ('[\n"a"}]', "line 1", "without its {"),
            ("[]", "data.x", "no entries"),
            ('x [{"a": 1}]', "line 1", "begins with ["),
            (b'[{"a": "1"},\n\n{"a": "\xe9"}]', "line 3", "not UTF-8"),
            (b'[{"a": "\0"}]', "line 1", "NUL"),
        ],
    )
    def test_what_cannot_be_read_on_names_the_line(self, content, where: str, message: str) -> None:
        with pytest.raises(InputError) as raised:
            read("json", content)
        assert raised.value.where == where
        assert message in raised.value.message

    def test_caps(self, settings) -> None:
        settings.HYPAC_MAX_CELL_CHARACTERS = 10
        good, bad = read("json", json.dumps([{"a": "x" * 10}, {"a": "x" * 11}]))
        assert (type(good), type(bad)) == (Row, Problem)
        with pytest.raises(InputError, match="longer than"):
            read("json", json.dumps([{"a": "x" * 200_000}]))
        settings.HYPAC_MAX_IMPORT_ROWS = 2
        with pytest.raises(InputError, match="more than 2 rows"):
            read("json", '[{"a": 1}, {"a": 1}, {"a": 1}]')


class TestJsonLines:
    def test_values_become_text_as_they_were_written(self) -> None:
        line = '{"s": "<b>", "n": 1.50, "i": 10, "t": true, "z": null, "o": {"k": [1, "é"]}}\n'
        assert read("jsonl", "\n" + line) == [
            Row(
                "line 2",
                "data.x:2",
                {"s": "<b>", "n": "1.50", "i": "10", "t": "true", "z": "", "o": '{"k": [1, "é"]}'},
                typed={"n": 1.5, "i": 10, "t": True, "z": None, "o": {"k": [1, "é"]}},
            )
        ]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("{", "breaks off before its end). If the file was cut off, export or upload it again, whole."),
            ('{"a": "open', "breaks off before its end). If the file was cut off"),
            ('{"a": "\x01"}', "Invalid control character at place 8)"),
            ("[1]", "no JSON object"),
            ("{}", "0 columns"),
            ('{"a": NaN}', "NaN"),
            ('{"a": 1, "a": 2}', "twice"),
            ('{"a": "\\u0000"}', "NUL"),
            ('{"a": "\\ud800"}', "surrogate"),
            ('{"a\\u0000": "x"}', "no usable name"),
            ('{"a": ' + "[" * 100_000, "nested"),
            ('{"a": ' + "9" * 5000 + "}", "cannot be used"),
        ],
    )
    def test_a_bad_line_is_a_problem_and_reading_goes_on(self, line: str, message: str) -> None:
        bad, good = read("jsonl", f'{line}\n{{"a": "x"}}\n')
        assert isinstance(bad, Problem)
        assert bad.where == "line 1"
        assert message in bad.message
        assert good == Row("line 2", "data.x:2", {"a": "x"})

    def test_the_last_line_of_a_cut_file_says_what_to_do(self) -> None:
        (bad,) = read("jsonl", '{"id": "t1", "text": "an open')
        assert isinstance(bad, Problem)
        assert "the text that begins at place 22 has no closing quotation mark" in bad.message
        assert "export or upload it again, whole" in bad.message

    def test_an_empty_file(self) -> None:
        with pytest.raises(InputError, match="empty"):
            read("jsonl", "\n \n")


class TestZipImages:
    @pytest.mark.parametrize("format_name", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
    def test_images_are_read_with_the_type_of_their_content(self, format_name: str) -> None:
        (row,) = read("zip_images", make_zip({"a/b.dat": make_image(format=format_name)}))
        assert isinstance(row, Row)
        assert row.image is not None
        assert (row.where, row.name, row.columns) == ("a/b.dat", "a/b.dat", {"file_name": "a/b.dat"})
        assert row.image.media_type == f"image/{format_name.lower()}"

    def test_a_path_that_climbs_is_only_a_name(self) -> None:
        (row,) = read("zip_images", make_zip({"../../etc/x.png": make_image()}))
        assert isinstance(row, Row)
        assert row.name == "../../etc/x.png"

    def test_what_systems_add_is_passed_over(self) -> None:
        junk = {
            "__MACOSX/._a.png": b"x",
            ".hidden/b.png": b"x",
            "c/": b"",
            ".DS_Store": b"x",
            "d/Thumbs.db": b"x",
        }
        records = read("zip_images", make_zip({**junk, "a.png": make_image()}))
        assert [record.where for record in records] == ["a.png"]

    def test_what_is_no_whole_image_is_a_problem(self) -> None:
        whole = make_image(size=(64, 64))
        svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
        entries = {"note.txt": b"hello", "cut.png": whole[:-30], "x.svg": svg, "ok.png": whole}
        records = read("zip_images", make_zip(entries))
        assert [record.where for record in problems(records)] == ["note.txt", "cut.png", "x.svg"]
        assert isinstance(records[-1], Row)

    def test_caps_on_images(self, settings) -> None:
        content = make_zip({"a.png": make_image(size=(40, 40)), "b.png": make_image()})
        settings.HYPAC_MAX_IMAGE_PIXELS = 100
        big, small = read("zip_images", content)
        assert isinstance(big, Problem)
        assert "more than 100 pixels" in big.message
        assert isinstance(small, Row)
        settings.HYPAC_MAX_IMAGE_BYTES = 10
        assert all("10 bytes" in problem.message for problem in problems(read("zip_images", content)))

    def test_archives_that_are_not_opened(self) -> None:
        bomb = make_zip({"a.png": b"\0" * 50_000_000}, compression=zipfile.ZIP_DEFLATED)
        with pytest.raises(InputError, match="times its size"):
            read("zip_images", bomb)
        encrypted = bytearray(make_zip({"a.png": make_image()}))
        for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            encrypted[encrypted.index(magic) + offset] |= 1
        with pytest.raises(InputError, match="encrypted"):
            read("zip_images", bytes(encrypted))
        with pytest.raises(InputError, match="damaged"):
            read("zip_images", b"PK\x03\x04 and then nothing")
        with pytest.raises(InputError, match="no images"):
            read("zip_images", make_zip({"c/": b""}))

    def test_a_damaged_entry_is_a_problem_and_reading_goes_on(self) -> None:
        content = bytearray(make_zip({"a.png": make_image(1), "b.png": make_image(2)}))
        content[content.index(b"IDAT") + 5] ^= 0xFF  # the archive's own checksum no longer fits
        damaged, good = read("zip_images", bytes(content))
        assert isinstance(damaged, Problem)
        assert isinstance(good, Row)

    def test_metadata_gives_columns_and_order(self) -> None:
        table = (
            "file_name,label,confidence\nb.png,cat,0.9\nmissing.png,dog,0.1\nb.png,dog,0.2\na.png,dog,0.8\n"
        )
        entries = {f"d/{name}.png": make_image(ord(name)) for name in "abc"}
        records = read("zip_images", make_zip({**entries, "d/metadata.csv": table}))
        assert [record.where for record in records] == [
            "d/b.png",
            "d/metadata.csv, line 3",
            "d/metadata.csv, line 4",
            "d/a.png",
            "d/c.png",
        ]
        assert isinstance(records[0], Row)
        assert records[0].columns == {"file_name": "b.png", "label": "cat", "confidence": "0.9"}
        assert isinstance(records[-1], Row)
        assert records[-1].columns == {"file_name": "d/c.png"}

    def test_metadata_without_file_names_is_refused(self) -> None:
        with pytest.raises(InputError, match="file_name"):
            read("zip_images", make_zip({"a.png": make_image(), "metadata.csv": "name\na.png\n"}))

    def test_counting_agrees_with_reading(self) -> None:
        content = make_zip({"a.png": make_image(), "b.txt": b"no", "metadata.csv": "file_name\nx.png\n"})
        count = count_of(registry.get("zip_images"), io.BytesIO(content), "z")
        assert count == len(read("zip_images", content)) == 3
