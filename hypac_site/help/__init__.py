"""The documents of docs/ on the site itself, each page of a project with the one that tells of it."""
