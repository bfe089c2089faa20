"""Labels and help texts of the raid settings, as they are read on their page."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0038_sent_forms'),
    ]

    operations = [
        migrations.AlterField(
            model_name='raidsettings',
            name='messages_per_minute',
            field=models.IntegerField(db_default=20, default=20, help_text='A raid has at least this many messages within one minute.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(10000)], verbose_name='messages per minute'),
        ),
        migrations.AlterField(
            model_name='raidsettings',
            name='times_usual',
            field=models.IntegerField(db_default=5, default=5, help_text="In busy channels, a raid also has at least this many times the channel's average of the last 30 days.", validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='multiple of the usual rate'),
        ),
        migrations.AlterField(
            model_name='raidsettings',
            name='accounts',
            field=models.IntegerField(db_default=4, default=4, help_text='A raid has at least this many accounts that seem to take part.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='accounts taking part'),
        ),
        migrations.AlterField(
            model_name='raidsettings',
            name='account_days',
            field=models.IntegerField(db_default=7, default=7, help_text='Such accounts count as new.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(3650)], verbose_name='account younger than (days)'),
        ),
        migrations.AlterField(
            model_name='raidsettings',
            name='first_seen_hours',
            field=models.IntegerField(db_default=24, default=24, help_text='Authors whose first message, in any channel, is that recent count as new.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(8760)], verbose_name='first seen within (hours)'),
        ),
        migrations.AlterField(
            model_name='raidsettings',
            name='same_text_accounts',
            field=models.IntegerField(db_default=3, default=3, help_text='The same, or nearly the same, text is a sign of a raid once this many accounts post it.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='accounts posting the same text'),
        ),
    ]
