"""The experiment of the paper on any table of per-item outputs: repeated random draws, every rule, every
epsilon.

``manage.py experiment FILE`` and ``python -m routing.core.experiment FILE`` are the same command.  A table
(`table`, read by `reading`) is the pool; each repeat draws anew (`split`), lets each method decide
(`methods`) and measures what would have been delivered and paid (`measure`); `summary` puts the repeats
together, `report` and `plots` write them down.
"""
