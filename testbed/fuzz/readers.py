"""All readers of foreign bytes, by name. A new one is a `Target` here, and tests/test_fuzz.py runs it."""

from testbed.fuzz import deliveries, imports, texts

TARGETS = {target.name: target for target in (*imports.TARGETS, *texts.TARGETS, *deliveries.TARGETS)}
