"""Project files that are broken, cut, or made by somebody who means no good: refused, nothing is stored."""

import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import DatabaseError

from annotation.errors import HypacError, InputError
from annotation.models import Project, User
from hypac_site.portable import archive, importing
from hypac_site.portable.exporting import export_project
from hypac_site.portable.importing import import_project
from hypac_site.portable.manifest import NAME, PEOPLE
from hypac_site.portable.tables import STAYS_BEHIND, travelling
from hypac_site.version import version
from testbed.factories import make_user
from testbed.worlds import World
from tests.annotation.projects.portable import Lines, forged
from tests.annotation.projects.portable_world import everything
from tests.conftest import Stored

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

PROJECT, ITEM, LABEL = (
    "tables/annotation.project.jsonl",
    "tables/annotation.item.jsonl",
    "tables/annotation.label.jsonl",
)
RUN, FILE = "tables/routing.run.jsonl", "tables/annotation.storedfile.jsonl"


@pytest.fixture(scope="module")
def _made(stored: Stored, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make() -> Path:
        world: World = everything(size=70)
        path = tmp_path_factory.mktemp("portable") / "good.zip"
        export_project(slug=world.project.slug, target=path)
        make_user("owner-here")
        return path

    return stored(make)


@pytest.fixture
def good(_made: Path) -> Path:
    return _made


def stored_now() -> tuple[list[int], set[str]]:
    """How many rows there are, and which files."""
    counts = [model._base_manager.count() for model in (User, *travelling(), *STAYS_BEHIND)]
    return counts, {name for name, _written in default_storage.walk("projects")}


def unchanged(before: tuple[list[int], set[str]]) -> bool:
    """No row and no file more. Tests that were rolled back leave files, which may go."""
    counts, files = stored_now()
    return counts == before[0] and files <= before[1]


def refused(path: Path, words: str, *, error: type[HypacError] = InputError) -> None:
    before = stored_now()
    with pytest.raises(error, match=words):
        import_project(path=path, owner="owner-here", slug="other")
    assert unchanged(before)


def entries(path: Path, target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The same zip with other entries, the manifest as it was."""
    with zipfile.ZipFile(path) as old:
        content = {name: old.read(name) for name in old.namelist()}
    change(content)
    with zipfile.ZipFile(target, "w") as new:
        for name, data in content.items():
            new.writestr(name, data)
    return target


def test_the_good_one_comes_in(good: Path, tmp_path: Path) -> None:
    """Also as others write it, by another zip program: what follows is refused for its own reason."""
    import_project(path=good, owner="owner-here", slug="one")
    same = forged(good, tmp_path / "f.zip", lambda lines: None)
    import_project(path=same, owner="owner-here", slug="two")
    assert Project.objects.filter(slug__in=["one", "two"]).count() == 2


class TestWhole:
    @pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
    def test_one_that_was_cut(self, good: Path, tmp_path: Path, share: float) -> None:
        path = tmp_path / "cut.zip"
        content = good.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        refused(path, "no zip file, or its end is missing")

    def test_what_is_no_zip(self, tmp_path: Path) -> None:
        path = tmp_path / "p.zip"
        path.write_bytes(os.urandom(5_000))
        refused(path, "no zip file")

    def test_another_zip(self, tmp_path: Path) -> None:
        path = tmp_path / "p.zip"
        with zipfile.ZipFile(path, "w") as content:
            content.writestr("a.txt", "a")
        refused(path, "No project file has an entry of this name: 'a.txt'")
        with zipfile.ZipFile(path, "w"):
            pass
        refused(path, "has no manifest.json")

    def test_bytes_that_changed_on_the_way(self, good: Path, tmp_path: Path) -> None:
        """Wherever it is: each is refused, by whichever check."""
        content, draws = good.read_bytes(), random.Random(5)
        path = tmp_path / "p.zip"
        for number in range(25):
            place = draws.randrange(len(content))
            path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
            before = stored_now()
            try:
                import_project(path=path, owner="owner-here", slug=f"other-{number}")
            except HypacError:
                assert unchanged(before)
            else:  # what a zip has beside its content: times, attributes, marks of who made it
                with zipfile.ZipFile(path) as new, zipfile.ZipFile(good) as old:
                    assert {name: new.read(name) for name in new.namelist()} == {
                        name: old.read(name) for name in old.namelist()
                    }

    def test_other_content_than_the_manifest_says(self, good: Path, tmp_path: Path) -> None:
        def same_length(content: dict[str, bytes]) -> None:
            changed = content[ITEM].replace(b'"position":0,', b'"position":9,', 1)
            assert changed != content[ITEM]
            content[ITEM] = changed

        refused(entries(good, tmp_path / "a.zip", same_length), "damaged, or was changed")

        def one_more(content: dict[str, bytes]) -> None:
            content[ITEM] += content[ITEM].splitlines(keepends=True)[-1]

        refused(entries(good, tmp_path / "b.zip", one_more), "damaged, or was changed")

        def other_file(content: dict[str, bytes]) -> None:
            name = next(name for name in content if name.startswith("files/") and len(content[name]) > 3)
            content[name] = content[name][:-1] + b"\x00"

        refused(entries(good, tmp_path / "c.zip", other_file), "not what its name says")

    @pytest.mark.parametrize(
        "name",
        [
            "../../evil.py",
            "/etc/cron.d/evil",
            "files/../../../evil",
            "files/" + "a" * 63 + "/",
            "tables/auth.user.jsonl",
            "tables/annotation.user.jsonl",
            "tables/annotation.apitoken.jsonl",
            "C:\\evil",
        ],
    )
    def test_names_that_lead_elsewhere_or_to_other_tables(
        self, good: Path, tmp_path: Path, name: str
    ) -> None:
        path = entries(good, tmp_path / "p.zip", lambda content: content.update({name: b"{}"}))
        refused(path, "No project file has an entry of this name")

    def test_entries_twice_and_entries_that_are_missing(self, good: Path, tmp_path: Path) -> None:
        refused(
            entries(good, tmp_path / "a.zip", lambda content: content.pop(LABEL)), "It is not in the file"
        )
        path = entries(good, tmp_path / "b.zip", lambda content: None)
        with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as content:
            content.writestr(LABEL, b"")
        refused(path, "It is there twice")

    def test_files_that_no_row_names(self, good: Path, tmp_path: Path) -> None:
        path = entries(good, tmp_path / "a.zip", lambda content: content.update({"files/" + "a" * 64: b"x"}))
        refused(path, "another number of stored files")

    def test_a_bomb(self, good: Path, tmp_path: Path) -> None:
        path = tmp_path / "p.zip"
        with zipfile.ZipFile(good) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                if name != ITEM:
                    new.writestr(name, old.read(name))
            with new.open("files/" + "a" * 64, "w") as bomb:
                for _ in range(40):
                    bomb.write(b" " * 2**20)
            new.writestr(ITEM, old.read(ITEM))
        refused(path, "it is not read")

    def test_a_bomb_that_says_it_is_small(self, good: Path, tmp_path: Path) -> None:
        """Its size in the list of entries is a lie: reading stops there."""
        path = tmp_path / "p.zip"
        with zipfile.ZipFile(good) as old:
            content = {name: old.read(name) for name in old.namelist()}
        told = json.loads(content[NAME])
        (part,) = [part for part in told["parts"] if part["name"] == ITEM]
        part["bytes"] = 10
        content[NAME] = json.dumps(told).encode()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name, data in content.items():
                new.writestr(name, data)
            new.getinfo(ITEM).file_size = 10
        refused(path, "damaged|cannot be read")

    def test_a_manifest_that_is_none(self, good: Path, tmp_path: Path) -> None:
        for told, words in (
            (b"{", "cannot be read"),
            (b"[" * 100_000, "cannot be read"),
            (b"[]", "no file of a project"),
            (b'{"format": "another"}', "no file of a project"),
            (b'{"format": "hypac-project", "hypac": "\xed\xa0\x80"}', "cannot be read"),
        ):
            path = entries(good, tmp_path / "p.zip", lambda content, told=told: content.update({NAME: told}))
            refused(path, words)
        for change, words in (
            (lambda one: one.pop("parts"), "lacks something"),
            (lambda one: one.update(more=1), "has too much"),
            (lambda one: one.update(files="many"), "wrong kind"),
            (lambda one: one.update(hypac="\ud800"), "wrong kind"),
            (lambda one: one.update(made_at="\x1b[31m"), "wrong kind"),
            (lambda one: one.update(made_at="soon"), "wrong kind"),
            (lambda one: one.update(missing=["../x"]), "wrong kind"),
            (lambda one: one.update(left_out={"tokens": "many"}), "wrong kind"),
            (lambda one: one["parts"][0].update(rows=-1), "wrong kind"),
            (lambda one: one["parts"][0].update(rows=10**400), "cannot be read|wrong kind"),
            (lambda one: one["parts"].pop(), "other tables"),
            (lambda one: one["parts"].append(one["parts"][0]), "other tables"),
            (lambda one: one["parts"][0].update(name="tables/../x"), "other tables"),
        ):
            refused(forged(good, tmp_path / "p.zip", lambda lines: None, manifest=change), words)

    def test_another_version_is_named(self, good: Path, tmp_path: Path) -> None:
        def older(told: dict[str, Any]) -> None:
            told.update(hypac="0.2.9", migrations=told["migrations"][:-1])

        def newer(told: dict[str, Any]) -> None:
            told.update(hypac="9.0.0", migrations=[*told["migrations"], "routing.9999_later"])

        def other_format(told: dict[str, Any]) -> None:
            told.update(hypac="9.9.9", version=2)

        nothing: Callable[[Lines], None] = lambda lines: None  # noqa: E731
        refused(
            forged(good, tmp_path / "a.zip", nothing, manifest=older), r"HyPAC 0\.2\.9.*it lacks routing\."
        )
        refused(
            forged(good, tmp_path / "b.zip", nothing, manifest=newer), r"HyPAC 9\.0\.0.*it has routing\.9999"
        )
        words = rf"HyPAC 9\.9\.9, whose format of projects this version \({version()}\)"
        refused(forged(good, tmp_path / "c.zip", nothing, manifest=other_format), words)


ROWS: dict[str, tuple[Callable[[Lines], Any], str]] = {
    "a column too many": (lambda all_: all_[ITEM][0].update(is_superuser=True), "no column 'is_superuser'"),
    "a column too few": (lambda all_: all_[ITEM][0].pop("text"), "a column is missing"),
    "a number for a text": (lambda all_: all_[ITEM][0].update(external_id=5), "external_id: it is no text"),
    "an object for a text": (lambda all_: all_[ITEM][0].update(external_id={}), "external_id: it is no text"),
    "nothing where something has to be": (lambda all_: all_[ITEM][0].update(position=None), "it is empty"),
    "a number that no column holds": (lambda all_: all_[ITEM][0].update(position=2**63), "no such number"),
    "true for a number": (lambda all_: all_[ITEM][0].update(position=True), "no such number"),
    "a text too long": (lambda all_: all_[ITEM][0].update(external_id="x" * 256), "external_id: .*255"),
    "a time that is none": (lambda all_: all_[ITEM][0].update(created_at="soon"), "it is no time"),
    "a time of no zone": (lambda all_: all_[ITEM][0].update(created_at="2026-01-01T00:00:00"), "zone"),
    "a price that is none": (lambda all_: all_[PROJECT][0].update(human_cost="1e9999999"), "decimal"),
    "a price below 0": (lambda all_: all_[PROJECT][0].update(human_cost="-1"), "human_cost: "),
    "a NUL": (lambda all_: all_[ITEM][1].update(text="a\0b"), "no database stores"),
    "half a surrogate": (lambda all_: all_[ITEM][1].update(data={"a": ["\ud800"]}), "no database stores"),
    "no number of its own": (lambda all_: all_[ITEM][1].update(id=all_[ITEM][0]["id"]), "does not follow"),
    "a number of 0": (lambda all_: all_[ITEM][0].update(id=0), "does not follow"),
    "an item of another project": (lambda all_: all_[ITEM][0].update(project=1_000_000), "not there"),
    "a reference that is a text": (lambda all_: all_[LABEL][0].update(item="1"), "not there"),
    "a label by nobody": (lambda all_: all_[LABEL][0].update(annotator="admin"), "annotator is nobody"),
    "a label by a number": (lambda all_: all_[LABEL][0].update(annotator=1), "annotator is nobody"),
    "a role that there is not": (
        lambda all_: all_["tables/annotation.membership.jsonl"][0].update(role="root"), "none of the values"
    ),
    "a colour that is CSS": (
        lambda all_: all_["tables/annotation.choice.jsonl"][0].update(color="red;x:1"), "color: "
    ),
    "two projects": (
        lambda all_: all_[PROJECT].append(all_[PROJECT][0] | {"id": all_[PROJECT][0]["id"] + 1}),
        "second project",
    ),
    "no project": (lambda all_: all_[PROJECT].clear(), "not there"),
    "a kind of labels that is unknown": (lambda all_: all_[PROJECT][0].update(task_type="x"), "no labels of"),
    "code for a loss": (lambda all_: all_[PROJECT][0].update(loss="os:system"), "the code 'os:system'"),
    "code for a run's loss": (lambda all_: all_[RUN][0].update(loss="os:kill"), "the code 'os:kill'"),
    "code beside a loss": (
        lambda all_: all_[RUN][0].update(loss="cosine_distance", loss_params={"embedder": "os:system"}),
        "the code 'os:system'",
    ),
    "a file that is not there": (lambda all_: all_[FILE][0].update(sha256="a" * 64), "its file is not there"),
    "a file that is a path": (lambda all_: all_[FILE][0].update(sha256="../../" + "a" * 58), "no SHA-256"),
    "a file of another size": (lambda all_: all_[FILE][0].update(size=1), "of another size"),
    "a certificate that was changed": (
        lambda all_: all_["tables/routing.certificate.jsonl"][0].update(document="{}"), "not have the hash"
    ),
    "a commitment that was changed": (
        lambda all_: all_["tables/routing.commitment.jsonl"][0].update(document="{}"), "not have the hash"
    ),
    "a ledger with another alpha": (
        lambda all_: all_["tables/routing.ledgerentry.jsonl"][0]["document"].update(alpha="0.000001"),
        "does not hold together",
    ),
    "a delivered file that is a path": (
        lambda all_: all_["tables/routing.deliveryfile.jsonl"][0].update(name="../../tmp/x"), "such a name"
    ),
    "a person twice": (lambda all_: all_[PEOPLE].append(all_[PEOPLE][0]), "no name of its own"),
    "a person without a name": (lambda all_: all_[PEOPLE][0].update(name=""), "no name of its own"),
    "a person with rights": (lambda all_: all_[PEOPLE][0].update(is_staff=True), "it is nobody"),
    "a number that JSON has not": (lambda all_: all_[ITEM][0].update(typed=float("nan")), "number of JSON"),
}  # fmt: skip


class TestRows:
    @pytest.mark.parametrize("case", ROWS)
    def test_what_no_export_would_write(self, good: Path, tmp_path: Path, case: str) -> None:
        change, words = ROWS[case]
        refused(forged(good, tmp_path / "p.zip", change), words)

    @pytest.mark.database
    def test_what_the_database_refuses(self, good: Path, tmp_path: Path) -> None:
        """Labels of one work item twice: the files, which come first, go as well."""

        def twice(lines: Lines) -> None:
            first, second = lines[LABEL][:2]
            second.update(work_item=first["work_item"], item=first["item"])

        refused(forged(good, tmp_path / "p.zip", twice), "Nothing was imported", error=HypacError)

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            (b"[1]\n", "it is no object"),
            (b"[" * 100_000 + b"\n", "it is no JSON"),
            (b'{"id": 1, "id": 2}\n', "a name twice"),
            (b'{"id": 1e999}\n', "too large"),
            (b'{"id": ' + b"1" * 5_000 + b"}\n", "it is no JSON"),
            (b'{"id": "\xff"}\n', "it is no JSON"),
            (b'{"a":"\xed\xa0\x80"}\n', "it is no JSON"),
            ('{"id": 1}\n'.encode("utf-16"), "it is no JSON"),
            (b"\n", "it is no JSON"),
        ],
    )
    def test_lines_that_are_none(self, good: Path, tmp_path: Path, line: bytes, words: str) -> None:
        from hashlib import sha256

        with zipfile.ZipFile(good) as content:
            told = json.loads(content.read(NAME))
        (part,) = [part for part in told["parts"] if part["name"] == ITEM]
        part |= {"rows": 1, "bytes": len(line), "sha256": sha256(line).hexdigest()}
        changed = {ITEM: line, NAME: json.dumps(told).encode()}
        refused(entries(good, tmp_path / "p.zip", lambda content: content.update(changed)), words)

    def test_a_line_that_is_too_long(self, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archive, "LONGEST_LINE", 300)
        refused(good, "The line is longer than 300 bytes")


class TestAllOrNothing:
    def test_a_name_that_is_taken(self, good: Path) -> None:
        import_project(path=good, owner="owner-here", slug="other")
        refused(good, "There is a project 'other' here already: say with --slug")

    @pytest.mark.parametrize("slug", ["a b", "new", "x" * 81, "../x"])
    def test_a_name_that_is_none(self, good: Path, slug: str) -> None:
        with pytest.raises(InputError, match="short name"):
            import_project(path=good, owner="owner-here", slug=slug)

    @pytest.mark.database
    @pytest.mark.parametrize("error", [DatabaseError("full"), OSError("full"), KeyboardInterrupt()])
    def test_an_end_in_the_middle(
        self, good: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
    ) -> None:
        def fails(*args: Any, **options: Any) -> None:
            raise error

        monkeypatch.setattr(importing, "join", fails)
        before = stored_now()
        with pytest.raises((HypacError, OSError, KeyboardInterrupt)):
            import_project(path=good, owner="owner-here", slug="other")
        assert unchanged(before)

    def test_a_loss_that_the_settings_name_is_let_in(
        self, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(settings, "HYPAC_LOSSES", ["mine:loss"])
        path = forged(good, tmp_path / "p.zip", lambda lines: lines[PROJECT][0].update(loss="mine:loss"))
        assert import_project(path=path, owner="owner-here", slug="other").project.loss == "mine:loss"
