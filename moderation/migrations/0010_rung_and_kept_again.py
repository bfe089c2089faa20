"""Until when workers that were called to a purge are waited for, and when a step's copies were written anew or others came to them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("moderation", "0009_erasures")]
    operations = [
        migrations.AddField(model_name="purge", name="rung_until", field=models.DateTimeField(null=True)),
        migrations.AddField(model_name="step", name="kept_again_at", field=models.DateTimeField(null=True)),
        migrations.AddField(model_name="step", name="copies_left_at", field=models.DateTimeField(null=True)),
    ]
