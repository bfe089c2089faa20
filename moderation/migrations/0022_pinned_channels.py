"""Channels that members of staff pinned."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0007_row_ids'),
        ('moderation', '0019_scan_parts'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='PinnedChannel',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chatstore.channel')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pinned_channels', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('id',),
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('user', 'channel'), name='one_pin_of_a_channel')],
            },
        ),
    ]
