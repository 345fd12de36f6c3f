"""Routing by every model's own score: the rule `every_score` (docs/statistics.md)."""
