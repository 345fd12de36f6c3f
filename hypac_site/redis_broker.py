"""What a worker does with messages of Redis that it cannot acknowledge.

Kombu asks Redis first, and only then counts the message as done with. Where Redis does not answer in time,
Celery logs the error and goes on, with the message still counted as under way: with one message for each
process (`CELERY_WORKER_PREFETCH_MULTIPLIER`) each such message costs the worker a process, until it connects
anew. Here its place is free all the same. Redis mostly does what it was told once it goes on; where it never
heard of it, the message comes again after `visibility_timeout`. Every task bears that: a job that is finished
is left alone, and the others look for what is due.
"""

from typing import Any

from kombu.transport import redis, virtual


class QoS(redis.QoS):
    """Counts a message as done with whether or not Redis could be told."""

    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)
        except Exception:
            virtual.QoS.ack(self, delivery_tag)
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        try:
            super().reject(delivery_tag, requeue=requeue)
        except Exception:
            virtual.QoS.ack(self, delivery_tag)
            raise


def install(broker_url: str | None) -> None:
    """Have the workers of this process count so, whichever transport of Redis the broker's URL names."""
    channel: Any = redis.Channel  # that of Sentinel inherits from it
    if (broker_url or "").startswith(("redis", "sentinel")):
        channel.QoS = QoS
