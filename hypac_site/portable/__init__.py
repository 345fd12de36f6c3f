"""A project as one file, carried from one installation to another.

The file is a zip: `manifest.json`, `people.jsonl`, one NDJSON a table under `tables/`, and the stored files
under `files/`, each named by its SHA-256. Rows refer to one another by the numbers that they have in the
file, and to people by name; all get new numbers where the file is read in. Keys, tokens, links and addresses
that are told of events stay behind.
"""
