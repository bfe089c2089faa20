"""The help text of a setting of raids: first messages are known exactly."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0036_manifest_guilds'),
    ]

    operations = [
        migrations.AlterField(
            model_name='raidsettings',
            name='first_seen_hours',
            field=models.IntegerField(db_default=24, default=24, help_text='An author is new who posted for the first time within these hours, in any channel.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(8760)], verbose_name='hours of a new author'),
        ),
    ]
