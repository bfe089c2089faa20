"""The number of buckets that the newest page of a channel reads."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0016_channel_states'),
    ]

    operations = [
        migrations.AddField('channelsummary', 'page_buckets', models.IntegerField(null=True)),
    ]
