"""Backups: everything that is stored, as it was at one moment, while people and workers go on.

A backup is a folder: `manifest.json`, the database, and the files under `files/`. The keys of the site are
not in it, nor are models of workers or messages of the broker (the rows of the jobs say what there is to do).
"""
