"""The position of a scan, the order of turns, and a version of each purge, so that pages know what has changed."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0002_survivors_may_be_unknown'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='purge',
            name='guild_id',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='purge',
            name='scanned_bucket',
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name='purge',
            name='scanned_channel_id',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='purge',
            name='turn_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='purge',
            name='version',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddIndex(
            model_name='purge',
            index=models.Index(condition=models.Q(('wakeup_expires_at__isnull', False)), fields=['wakeup_expires_at'], name='purge_that_waits'),
        ),
        migrations.AddIndex(
            model_name='purge',
            index=models.Index(fields=['guild_id', 'turn_at'], name='purge_turn_by_guild'),
        ),
        migrations.AddIndex(
            model_name='purge',
            index=models.Index(fields=['moderator', 'turn_at'], name='purge_turn_by_moderator'),
        ),
    ]
