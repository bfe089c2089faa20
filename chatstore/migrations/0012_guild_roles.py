"""Names of roles in guilds, for messages that mention them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0011_deletes_by_hour'),
    ]

    operations = [
        migrations.CreateModel(
            name='GuildRole',
            fields=[
                ('pk', models.CompositePrimaryKey('guild_id', 'role_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('role_id', models.BigIntegerField()),
                ('name', models.CharField(max_length=100)),
                ('guild', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='chatstore.guild')),
            ],
            options={
                'default_permissions': (),
            },
        ),
    ]
