"""Readers of foreign bytes under hostile ones: `python -m testbed.fuzz` (CONTRIBUTING.md, "Fuzzing").

`readers` says for each reader what it is given and what may come of it, `corpus` has small files
that are whole, `mutations` damages them, `loop` keeps what reaches new lines, and makes what fails small.
"""
