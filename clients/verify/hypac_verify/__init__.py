"""Checks a delivery of HyPAC with Python's standard library alone: `hypac-verify FOLDER`.

Read it in this order: `tails` (the exact tests), `draw` (who was drawn; with `boxes` and `masks`, what is
right), then the kinds of certificates: `first_score`; `score_chains`, `score_tests` and `every_score`;
`expert_labels`, `expert` and `final_audit`; with `words`, their sentences. Then `commitments` and
`committed_files` (what was there before the draw), `delivered_file`, `delivery` and `manifest` (what was
delivered), `spot`, and `command` (how they are run). `reading` is what all of them read with.
"""

__version__ = "0.1.0"
