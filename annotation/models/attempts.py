from django.db import models


class AttemptBucket(models.Model):
    """How many attempts at passwords somebody has made lately, or everybody: a bucket that fills up with each
    and empties by itself. In the database, so that all web processes count together.
    """

    name = models.CharField(primary_key=True, max_length=100)
    empty_at = models.FloatField(
        default=0, db_index=True, help_text="When it is empty, in seconds since 1970."
    )

    def __str__(self) -> str:
        return self.name
