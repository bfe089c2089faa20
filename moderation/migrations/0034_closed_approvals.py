"""A request for approval is closed by what ends it: a confirmation, a change of the preview, discarding it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0033_purge_reach'),
    ]

    operations = [
        migrations.AlterField(
            model_name='purgeapproval',
            name='decision',
            field=models.CharField(blank=True, choices=[('', ''), ('approved', 'approved'), ('rejected', 'rejected'), ('withdrawn', 'withdrawn'), ('expired', 'expired'), ('closed', 'closed')], default='', max_length=10),
        ),
    ]
