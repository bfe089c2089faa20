"""The number of messages kept in a bucket is unknown where only selected messages were read."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("moderation", "0001_v0_2")]

    operations = [
        migrations.AlterField(
            model_name="manifestbucket",
            name="survivors",
            field=models.IntegerField(null=True),
        ),
    ]
