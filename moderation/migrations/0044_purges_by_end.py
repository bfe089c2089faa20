"""Index of the purges that have ended, by time: previews look for those that ended after their scan."""

import django.contrib.postgres.operations
from django.db import migrations, models


class Migration(migrations.Migration):
    # The index is built without a lock against inserts, which no transaction allows.
    atomic = False

    dependencies = [
        ('moderation', '0043_admin_labels'),
    ]

    operations = [
        django.contrib.postgres.operations.AddIndexConcurrently(
            model_name='purge',
            index=models.Index(condition=models.Q(('finished_at__isnull', False)), fields=['finished_at'], name='purge_by_end'),
        ),
    ]
