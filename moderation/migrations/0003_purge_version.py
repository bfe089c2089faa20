"""A version of each purge, so that pages are rendered again only when something has changed."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("moderation", "0002_survivors_may_be_unknown")]

    operations = [
        migrations.AddField(
            model_name="purge",
            name="version",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
