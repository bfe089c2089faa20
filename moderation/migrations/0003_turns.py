"""The position of a scan, and a version of each purge, so that pages are rendered only when something has changed."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("moderation", "0002_survivors_may_be_unknown")]

    operations = [
        migrations.AddField(
            model_name="purge",
            name="scanned_bucket",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="purge",
            name="scanned_channel_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="purge",
            name="version",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
