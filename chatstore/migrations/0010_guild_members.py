"""Members of guilds, with their roles and when they joined, and the icons of guilds."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0009_worst_days'),
    ]

    operations = [
        migrations.AddField(
            model_name='guild',
            name='icon_url',
            field=models.CharField(blank=True, db_default='', default='', max_length=500),
        ),
        migrations.CreateModel(
            name='GuildMember',
            fields=[
                ('pk', models.CompositePrimaryKey('guild_id', 'user_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('user_id', models.BigIntegerField()),
                ('joined_at', models.DateTimeField(null=True)),
                ('roles', models.JSONField(null=True)),
                ('guild', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='chatstore.guild')),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['user_id'], name='member_by_user'), models.Index(fields=['guild', 'joined_at'], name='member_by_join')],
            },
        ),
    ]
