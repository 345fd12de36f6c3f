"""What makes two items the same."""

import hashlib


def text_hash(text: str) -> str:
    """SHA-256 (hexadecimal) of what people see of a text item. An image item has the hash of its file."""
    return hashlib.sha256(text.encode()).hexdigest()
