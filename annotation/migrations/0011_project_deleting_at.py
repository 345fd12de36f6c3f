from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0010_connections"),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="deleting_at",
            field=models.DateTimeField(
                editable=False,
                help_text="From then on it is there for nobody, and a job removes it.",
                null=True,
            ),
        ),
    ]
