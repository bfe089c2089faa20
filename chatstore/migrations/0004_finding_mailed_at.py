"""A finding may have been taken by the webhook and not by the mail server, or the other way round."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatstore", "0003_deletes_and_days")]
    operations = [
        migrations.AddField(model_name="finding", name="mailed_at", field=models.DateTimeField(null=True)),
    ]
