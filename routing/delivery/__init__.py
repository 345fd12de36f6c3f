"""Delivery formats: one module and one line here each (docs/deliveries.md)."""

from routing.delivery.base import Row, Writer
from routing.delivery.csv import CsvWriter
from routing.delivery.jsonl import JsonlWriter

FORMATS: dict[str, type[Writer]] = {"csv": CsvWriter, "jsonl": JsonlWriter}

__all__ = ["FORMATS", "Row", "Writer"]
