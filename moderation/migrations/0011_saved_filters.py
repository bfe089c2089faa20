import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("moderation", "0010_raids"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60)),
                ("description", models.JSONField()),
                ("is_shared", models.BooleanField(default=False)),
                ("saved_at", models.DateTimeField(db_default=Now())),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("name", "id"),
                "default_permissions": (),
                "indexes": [
                    models.Index(condition=models.Q(("is_shared", True)), fields=["name"], name="shared_filters")
                ],
                "constraints": [models.UniqueConstraint(fields=("owner", "name"), name="one_filter_of_a_name")],
            },
        ),
    ]
