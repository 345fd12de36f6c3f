"""Delivery formats: one module and one line here each (docs/deliveries.md)."""

from routing.delivery.formats.base import Files, Limit, Writer
from routing.delivery.formats.csv import CsvWriter, TsvWriter
from routing.delivery.formats.doccano import DoccanoWriter
from routing.delivery.formats.excel import ExcelWriter
from routing.delivery.formats.huggingface import HuggingFaceWriter
from routing.delivery.formats.json import JsonWriter
from routing.delivery.formats.jsonl import JsonlWriter
from routing.delivery.formats.label_studio import LabelStudioWriter
from routing.delivery.formats.manifest import ManifestWriter
from routing.delivery.formats.parquet import ParquetWriter
from routing.labels.page import DeliveryInfo, Page, Row

FORMATS: dict[str, type[Writer]] = {
    "csv": CsvWriter,
    "jsonl": JsonlWriter,
    "tsv": TsvWriter,
    "json": JsonWriter,
    "xlsx": ExcelWriter,
    "parquet": ParquetWriter,
    "huggingface": HuggingFaceWriter,
    "doccano": DoccanoWriter,
    "manifest": ManifestWriter,
    "label_studio": LabelStudioWriter,
}
DEFAULT_FORMATS = ("csv", "jsonl")

__all__ = ["DEFAULT_FORMATS", "FORMATS", "DeliveryInfo", "Files", "Limit", "Page", "Row", "Writer"]
