"""What is promised is agreement with people and not truth: "wrong" is said of other things alone."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "templates").rglob("*.html"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DEFINED = {
    # They work with right and wrong as words of mathematics. `test_...says_what_it_means` holds the first.
    *("statistics.md", "methods.md", "validity.md"),
    # Measurements on made-up worlds and public tables, where the truth is known.
    *("performance.md", "experiment.md"),
}
ALLOWED = {
    r"(?:went|goes|go|getting) wrong": "what fails: a program, a request, a bound",
    r"what (?:is|went) wrong": "what fails",
    r"wrong (?:old )?passwords?": "something that somebody typed or sent",
    r"wrong (?:token|sheet|one|param)|WRONG_TOKEN": "something that somebody typed or sent",
    r"(?:address|request) is wrong|password are wrong": "something that somebody typed or sent",
    r"(?:called|asked) wrongly": "a command, a source",
    r"certificate would be wrong": "a certificate that is false",
    r"a wrong reading": "of a model's reply, which need not be what the model meant",
    r"talked into a wrong label|Which items are wrong|labelled wrongly": "attacks, after which nobody agrees",
    r"wrong label of a model that is replaced by the label of record stops being wrong": "against the record",
    r"none counts as wrong": "that of people nothing is counted",
    r"with wrong=row\.wrong|\{\{ wrong \}\} of": "what differs from the expert, counted",
}


def unexplained(text: str) -> list[str]:
    """Where `text` says it of something else."""
    text = " ".join(text.split())
    explained = [found.span() for words in ALLOWED for found in re.finditer(words, text, re.IGNORECASE)]
    return [
        text[max(0, said.start() - 40) : said.end() + 40]
        for said in re.finditer("wrong", text, re.IGNORECASE)
        if not any(start <= said.start() < stop for start, stop in explained)
    ]


@pytest.mark.parametrize("file", PAGES + [file for file in DOCUMENTS if file.name not in DEFINED], ids=str)
def test_no_page_or_document_calls_labels_wrong_that_differ_from_a_persons(file: Path) -> None:
    assert unexplained(file.read_text()) == []


def test_the_document_that_calls_them_so_says_what_it_means_and_not_in_the_promise() -> None:
    text = (ROOT / "docs" / "statistics.md").read_text().replace("\n", " ")
    begins, promised = text.split("## The three targets")[0], text.split("## The three targets")[1]
    assert 'A person\'s label is right by definition here, and "wrong"' in begins
    assert "wrong" not in promised.split(" ## ")[0]
