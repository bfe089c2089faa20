"""The channels of a server in the order in which they are listed, without sorting all of them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0017_page_buckets'),
    ]

    operations = [
        migrations.AddIndex(
            'channel', models.Index(fields=['guild', 'category', 'name', 'id'], name='channel_by_guild'),
        ),
    ]
