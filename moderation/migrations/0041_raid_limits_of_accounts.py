"""Limits of floods, mentions and links, which were the same for all guilds."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0040_column_rights'),
    ]

    operations = [
        migrations.AddField(
            model_name='raidsettings',
            name='account_messages',
            field=models.IntegerField(db_default=6, default=6, help_text='This many messages of one account within one minute are a sign of a raid.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='messages per minute and account'),
        ),
        migrations.AddField(
            model_name='raidsettings',
            name='links',
            field=models.IntegerField(db_default=3, default=3, help_text='This many are a sign of a raid; one is, if other accounts post the same text.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='messages with links of an account'),
        ),
        migrations.AddField(
            model_name='raidsettings',
            name='mentions',
            field=models.IntegerField(db_default=5, default=5, help_text='Mentions of this many users by one account, or of everyone, are a sign of a raid.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='users mentioned by an account'),
        ),
    ]
