"""Labels of the admin. Changes no table."""

import chatstore.models.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0042_raid_setting_names'),
    ]

    operations = [
        migrations.AlterField(
            model_name='auditentry',
            name='id',
            field=models.BigIntegerField(db_default=chatstore.models.ids.NextId(), primary_key=True, serialize=False, verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='purge',
            name='id',
            field=models.BigIntegerField(db_default=chatstore.models.ids.NextId(), primary_key=True, serialize=False, verbose_name='ID'),
        ),
    ]
