"""The file formats that can be imported, by name. A new one is a module and a line here."""

from annotation.errors import InputError
from annotation.importers.base import Importer
from annotation.importers.delimited import Delimited
from annotation.importers.jsonl import JsonLines
from annotation.importers.zip_images import ZipImages

IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        Delimited("csv", "CSV table", ",;"),
        Delimited("tsv", "TSV table", "\t"),
        JsonLines(),
        ZipImages(),
    )
}


def get(name: str) -> Importer:
    try:
        return IMPORTERS[name]
    except KeyError:
        raise InputError(
            f"There is no format {name!r}; known are {', '.join(IMPORTERS)}.", where="format"
        ) from None
