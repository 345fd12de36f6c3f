"""The file formats that can be imported, by name. A new one is a module and a line here."""

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.importers.base import Importer
from annotation.importers.delimited import Delimited
from annotation.importers.json_list import JsonList
from annotation.importers.jsonl import JsonLines
from annotation.importers.lines import PlainLines
from annotation.importers.parquet import Parquet
from annotation.importers.zip_images import ZipImages

IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        Delimited("csv", "CSV table", ",;"),
        Delimited("csv_comma", "CSV table, commas between cells", ","),
        Delimited("csv_semicolon", "CSV table, semicolons between cells", ";"),
        Delimited("tsv", "TSV table, tabs between cells", "\t"),
        JsonLines(),
        JsonList(),
        PlainLines(),
        Parquet(),
        ZipImages(),
    )
}


def get(name: str) -> Importer:
    try:
        return IMPORTERS[name]
    except KeyError:
        raise InputError(
            _("There is no format %(name)r; known are %(names)s.")
            % {"name": name, "names": ", ".join(IMPORTERS)},
            where="format",
        ) from None
