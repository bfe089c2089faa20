"""The ids that an act was about, where there may be very many."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("moderation", "0011_bucket_digest")]
    operations = [
        migrations.AddField(model_name="auditentry", name="ids", field=models.BinaryField(null=True)),
    ]
