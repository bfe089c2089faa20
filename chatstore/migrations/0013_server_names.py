"""Guilds are called servers in the admin, as on all pages. Changes no table."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0012_guild_roles'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='guild',
            options={'ordering': ('name', 'id'), 'verbose_name': 'server'},
        ),
        migrations.AlterField(
            model_name='channel',
            name='guild',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='channels', to='chatstore.guild', verbose_name='server'),
        ),
    ]
