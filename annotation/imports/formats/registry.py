"""The file formats that can be imported, by name. A new one is a module and a line here."""

from django.utils.translation import gettext as _, gettext_noop

from annotation.imports.faults import fault
from annotation.imports.formats.argilla import Argilla
from annotation.imports.formats.base import Importer
from annotation.imports.formats.delimited import Delimited
from annotation.imports.formats.doccano import Doccano
from annotation.imports.formats.excel import NAME as EXCEL, Excel
from annotation.imports.formats.hugging_face import HuggingFace
from annotation.imports.formats.json_list import JsonList
from annotation.imports.formats.jsonl import JsonLines
from annotation.imports.formats.label_studio import LabelStudio
from annotation.imports.formats.lines import PlainLines
from annotation.imports.formats.manifest import Manifest
from annotation.imports.formats.parquet import Parquet
from annotation.imports.formats.zip_file import ZipFile
from annotation.imports.formats.zip_images import ZipImages
from annotation.imports.formats.zip_texts import ZipTexts


def get(name: str) -> Importer:
    """By its name; of a workbook with the name of a sheet behind it: "excel:Sheet2"."""
    if name.startswith(f"{EXCEL}:"):
        return Excel(sheet=name.removeprefix(f"{EXCEL}:"))
    try:
        return IMPORTERS[name]
    except KeyError:
        raise fault(
            gettext_noop("There is no format %(name)r; known are %(names)s."),
            where="format",
            name=name,
            names=", ".join(IMPORTERS),
        ) from None


IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        Delimited("csv", gettext_noop("CSV table"), ",;"),
        Delimited("csv_comma", gettext_noop("CSV table, commas between cells"), ","),
        Delimited("csv_semicolon", gettext_noop("CSV table, semicolons between cells"), ";"),
        Delimited("tsv", gettext_noop("TSV table, tabs between cells"), "\t"),
        JsonLines(),
        JsonList(),
        Doccano(),
        Manifest(),
        LabelStudio(),
        PlainLines(),
        Parquet(),
        Excel(),
        ZipImages(),
        ZipTexts(),
        ZipFile(lambda: IMPORTERS),
        HuggingFace("hf_dataset", gettext_noop("Hugging Face data set"), False),
        HuggingFace("hf_images", gettext_noop("Hugging Face data set of images"), True),
        Argilla(),
    )
}


def text_formats() -> list[str]:
    """Names of those in which a text may be read; what is no text is never taken for one."""
    return [name for name, importer in IMPORTERS.items() if importer.reads_text]


def formats_with_labels() -> str:
    """Titles of those that say which labels people gave, for a sentence."""
    titles = [_(importer.title) for importer in IMPORTERS.values() if importer.holds_labels]
    return "; ".join([*titles, _("deliveries of HyPAC")])
