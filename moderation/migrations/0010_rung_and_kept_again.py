"""When a purge's enqueued workers count as lost, when a step's held copies were renewed, and when it got others' copies."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("moderation", "0009_erasures")]
    operations = [
        migrations.AddField(model_name="purge", name="rung_until", field=models.DateTimeField(null=True)),
        migrations.AddField(model_name="step", name="kept_again_at", field=models.DateTimeField(null=True)),
        migrations.AddField(model_name="step", name="copies_left_at", field=models.DateTimeField(null=True)),
    ]
