"""The statistics of HyPAC: draws, bounds, chains, certificates.  NumPy and SciPy only; no Django, no
database.

Arrays and small frozen dataclasses come in, small frozen dataclasses go out.  Files are touched only by
``verify``, which recomputes a certificate from its two published files.
"""
