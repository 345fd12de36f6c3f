"""Delivery formats: one module and one line here each (docs/deliveries.md)."""

from routing.delivery.base import Files, Limit, Writer
from routing.delivery.csv import CsvWriter, TsvWriter
from routing.delivery.doccano import DoccanoWriter
from routing.delivery.huggingface import HuggingFaceWriter
from routing.delivery.json import JsonWriter
from routing.delivery.jsonl import JsonlWriter
from routing.delivery.label_studio import LabelStudioWriter
from routing.delivery.manifest import ManifestWriter
from routing.delivery.parquet import ParquetWriter
from routing.delivery.row import About, Page, Row

FORMATS: dict[str, type[Writer]] = {
    "csv": CsvWriter,
    "jsonl": JsonlWriter,
    "tsv": TsvWriter,
    "json": JsonWriter,
    "parquet": ParquetWriter,
    "huggingface": HuggingFaceWriter,
    "doccano": DoccanoWriter,
    "manifest": ManifestWriter,
    "label_studio": LabelStudioWriter,
}
DEFAULT_FORMATS = ("csv", "jsonl")

__all__ = ["DEFAULT_FORMATS", "FORMATS", "About", "Files", "Limit", "Page", "Row", "Writer"]
