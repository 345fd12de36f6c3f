"""Runs whose reference is an expert: people are a source like any other, and their mistakes count.

In its order: `freeze` (with the chains), `ask` (the expert's part of the calibration set), `analyse`, `route`
(by slices or by scores), `requests` (what annotators' answers bring to the expert), `audit`.
"""
