"""The form that drafted a purge, so that one that is sent twice drafts one."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0037_first_seen_hours'),
    ]

    operations = [
        migrations.AddField(
            model_name='purge',
            name='sent_form',
            field=models.UUIDField(null=True),
        ),
        migrations.AddIndex(
            model_name='purge',
            index=models.Index(condition=models.Q(('sent_form__isnull', False)), fields=['sent_form'], name='purge_by_sent_form'),
        ),
    ]
