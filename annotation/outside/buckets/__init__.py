"""Buckets of S3-compatible stores whose addresses people enter. Requests are signed here and sent by
`annotation.outside.net.GuardedClient` alone, so that no address leads into the server's own network.
"""

from annotation.outside.buckets.client import PART, Bucket, Found
from annotation.outside.buckets.requests import Place

__all__ = ["PART", "Bucket", "Found", "Place"]
