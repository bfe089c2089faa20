"""Guilds are called servers in the admin, and an apostrophe. Changes no table."""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0013_server_names'),
        ('moderation', '0041_raid_limits_of_accounts'),
    ]

    operations = [
        migrations.AlterField(
            model_name='raidsettings',
            name='guild',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='raid_settings', serialize=False, to='chatstore.guild', verbose_name='server'),
        ),
        migrations.AlterField(
            model_name='raidsettings',
            name='times_usual',
            field=models.IntegerField(db_default=5, default=5, help_text='In busy channels, a raid also has at least this many times the channel’s average of the last 30 days.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='multiple of the usual rate'),
        ),
    ]
