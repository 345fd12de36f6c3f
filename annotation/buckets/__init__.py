"""Buckets of S3-compatible stores whose addresses people enter. Requests are signed here and sent by
`annotation.net.GuardedClient` alone, so that no address leads into the server's own network.
"""

from annotation.buckets.client import PART, Bucket, Found
from annotation.buckets.requests import Place

__all__ = ["PART", "Bucket", "Found", "Place"]
