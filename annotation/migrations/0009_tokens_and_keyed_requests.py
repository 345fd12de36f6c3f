import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

ROLES = [
    ("owner", "Owner"),
    ("manager", "Manager"),
    ("reviewer", "Reviewer"),
    ("annotator", "Annotator"),
    ("viewer", "Viewer"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0008_webhooks"),
    ]

    operations = [
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token_key", models.CharField(db_index=True, max_length=25)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("digest", models.CharField(max_length=128, unique=True)),
                ("name", models.CharField(help_text="What it is for.", max_length=100)),
                (
                    "role",
                    models.CharField(
                        blank=True,
                        choices=ROLES,
                        help_text="It may do what this role may, of what you may; empty: all that you may.",
                        max_length=20,
                    ),
                ),
                (
                    "password_stamp",
                    models.CharField(help_text="SHA-256 of the password's hash by then.", max_length=64),
                ),
                ("expiry", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        help_text="It opens this project only; empty: all of yours.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="annotation.project",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("role__in", ["", "owner", "manager", "reviewer", "annotator", "viewer"])
                        ),
                        name="api_token_role_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="KeyedRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                ("address", models.TextField(help_text="Method, path, query, and headers that count.")),
                ("content", models.CharField(blank=True, help_text="SHA-256 of the body.", max_length=64)),
                ("status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("headers", models.JSONField(default=dict)),
                (
                    "body",
                    models.BinaryField(
                        help_text="Null where the answer held a secret or was too large.", null=True
                    ),
                ),
                ("created_at", models.DateTimeField(db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [models.UniqueConstraint(fields=("user", "key"), name="keyed_request_once")],
            },
        ),
    ]
