"""Index of the channels that purges select."""

import django.contrib.postgres.indexes
import django.contrib.postgres.operations
import django.db.models.fields.json
from django.db import migrations


class Migration(migrations.Migration):

    # Indexes are built without a lock against inserts, which no transaction allows.
    atomic = False

    dependencies = [
        ('moderation', '0029_invitations'),
    ]

    operations = [
        django.contrib.postgres.operations.AddIndexConcurrently(
            model_name='purge',
            index=django.contrib.postgres.indexes.GinIndex(django.db.models.fields.json.KeyTransform('channels', 'selection'), name='purge_by_selected_channel'),
        ),
    ]
