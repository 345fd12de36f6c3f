"""Delivery formats: one module and one line here each (docs/deliveries.md)."""

from routing.delivery.base import Page, Row, Writer
from routing.delivery.csv import CsvWriter, TsvWriter
from routing.delivery.json import JsonWriter
from routing.delivery.jsonl import JsonlWriter
from routing.delivery.parquet import ParquetWriter

FORMATS: dict[str, type[Writer]] = {
    "csv": CsvWriter,
    "jsonl": JsonlWriter,
    "tsv": TsvWriter,
    "json": JsonWriter,
    "parquet": ParquetWriter,
}
DEFAULT_FORMATS = ("csv", "jsonl")

__all__ = ["DEFAULT_FORMATS", "FORMATS", "Page", "Row", "Writer"]
