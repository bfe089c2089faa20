"""An index of the recorded deletes by hour, of which the repair clocks read the first."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('chatstore', '0010_guild_members'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='bucketdeletes',
            index=models.Index(fields=['hour'], name='deletes_by_hour'),
        ),
    ]
