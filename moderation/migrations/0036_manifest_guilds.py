"""Guilds of the messages in a purge's manifest: limits count there. Purges of before have those of their reach."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0034_closed_approvals'),
    ]

    operations = [
        migrations.AddField(
            model_name='purge',
            name='manifest_guild_ids',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), null=True, size=None),
        ),
    ]
