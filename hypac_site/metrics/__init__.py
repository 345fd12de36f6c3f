"""Figures for Prometheus: of requests, counted by the web processes, and of everything else, read from the
database when they are asked for.

What is read is the same whichever web process answers. Each query goes over an index to few rows, or stops
at a limit: a scrape costs the same at a thousand items and at ten million.
"""
