"""The request of each entry of the audit log."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0017_row_ids'),
    ]

    operations = [
        migrations.AddField(
            model_name='auditentry',
            name='request_id',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
    ]
