from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0013_rendered_guidelines"),
    ]

    operations = [
        migrations.CreateModel(
            name="AttemptBucket",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                (
                    "empty_at",
                    models.FloatField(
                        db_index=True, default=0, help_text="When it is empty, in seconds since 1970."
                    ),
                ),
            ],
        ),
    ]
