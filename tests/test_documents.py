"""Links between documents lead somewhere, files that they name exist, and every page can be reached."""

import re
from pathlib import Path

import pytest

from annotation.common.markdown import anchor
from annotation.task_types import TASK_TYPES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
PAGES = sorted(DOCS.glob("*.md"))
DOCUMENTS = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# A file or a folder of ours in backticks; `<name>`, `*` and `...` stand for more than one.
OURS = "annotation|benchmarks|clients|hypac_site|routing|static|templates|tests"
NAMED = re.compile(rf"`((?:{OURS})/[\w./-]*)`")


def text_of(path: Path) -> str:
    """Without blocks of code, in which brackets mean something else."""
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def leads_nowhere(document: Path, link: str) -> bool:
    """Whether the file or the heading that a link names is missing."""
    if re.match(r"[a-z]+:", link):
        return False
    name, _, heading = link.partition("#")
    target = (document.parent / name).resolve() if name else document
    if not target.exists():
        return True
    return bool(heading) and heading not in {anchor(found) for found in HEADING.findall(text_of(target))}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert [link for link in LINK.findall(text_of(document)) if leads_nowhere(document, link)] == []


@pytest.mark.parametrize("document", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_files_that_are_named_exist(document: Path) -> None:
    named = NAMED.findall(document.read_text(encoding="utf-8"))
    assert [name for name in named if "..." not in name and not (ROOT / name).exists()] == []


def test_functions_that_the_architecture_names_stand_in_a_file_of_their_line() -> None:
    missing = []
    for line in (DOCS / "architecture.md").read_text(encoding="utf-8").splitlines():
        files = [ROOT / name for name in NAMED.findall(line) if name.endswith(".py")]
        code = "".join(path.read_text(encoding="utf-8") for path in files)
        missing += [name for name in re.findall(r"`(\w+)\(\)`", line) if f"def {name}(" not in code]
    assert missing == []


def test_each_question_of_label_studio_that_is_read_stands_in_its_table() -> None:
    tags = {tag for kind in TASK_TYPES.values() for tag in kind.controls}
    rows = "".join(row for row in text_of(DOCS / "label-studio.md").splitlines() if row.startswith("| `"))
    assert [tag for tag in sorted(tags) if f"`{tag}`" not in rows] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    linked = {(DOCS / link.split("#")[0]).resolve() for link in LINK.findall(text_of(INDEX))}
    assert [page.name for page in PAGES if page not in linked and page != INDEX] == []


def test_pages_that_are_named_elsewhere_exist() -> None:
    folders = ("annotation", "routing", "hypac_site", "templates", "tests", "benchmarks", "clients", "locale")
    suffixes = {".py", ".html", ".po", ".md"}
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    files += [ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in re.findall(r"\bdocs/[\w-]+\.md", path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    }
    assert missing == set()
