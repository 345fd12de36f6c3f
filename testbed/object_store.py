"""A server that speaks the S3 protocol: moto's server mode, which forgets everything when it stops."""

import sys
import uuid
from typing import Any

import boto3
from botocore.config import Config

from testbed.servers import _Server, status_of

ACCESS, SECRET = "access-of-tests", "secret-of-tests"


class ObjectStoreServer(_Server):
    name = "s3"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", self.address, "-p", str(self.port)]

    def ping(self) -> bool:
        return status_of(self.url(), seconds=5) == 200

    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    def bucket(self) -> "Bucket":
        """A new, empty bucket."""
        bucket = Bucket(self.url(), f"hypac-{uuid.uuid4().hex[:12]}")
        bucket.client.create_bucket(Bucket=bucket.name)
        return bucket


class Bucket:
    """A bucket, as tests look at it past the application."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.endpoint, self.name = endpoint, name
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=ACCESS,
            aws_secret_access_key=SECRET,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 2}),
        )

    @property
    def environment(self) -> dict[str, str]:
        """With which a site keeps its files there."""
        return {
            "HYPAC_S3_BUCKET": self.name,
            "HYPAC_S3_ENDPOINT": self.endpoint,
            "HYPAC_S3_REGION": "us-east-1",
            "HYPAC_S3_ACCESS_KEY": ACCESS,
            "HYPAC_S3_SECRET_KEY": SECRET,
        }

    def names(self) -> set[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return {entry["Key"] for page in pages for entry in page.get("Contents", ())}
