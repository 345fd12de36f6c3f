"""Checks a delivery of HyPAC with Python's standard library alone: `hypac-verify FOLDER`.

Read it in this order: `tails` (the exact tests), `draw` (who was drawn), `first_score`, `every_score` and
`expert` (the three kinds of certificates), `delivery` (the delivered file), `command` (how they are run).
"""

__version__ = "0.1.0"
