"""Roles given to staff accounts, in place of groups."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0007_row_ids'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='RoleGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('auditor', 'auditor'), ('moderator', 'moderator'), ('lead', 'lead'), ('direct', 'direct'), ('operator', 'operator'), ('admin', 'admin')], max_length=20)),
                ('until', models.DateTimeField(null=True)),
                ('given_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('taken_at', models.DateTimeField(null=True)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='role_grants', to=settings.AUTH_USER_MODEL)),
                ('channel', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='role_grants', to='chatstore.channel')),
                ('given_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('guild', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='role_grants', to='chatstore.guild')),
                ('taken_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-id',),
                'default_permissions': ('add', 'view'),
                'constraints': [models.UniqueConstraint(condition=models.Q(('taken_at', None)), fields=('account', 'role', 'guild', 'channel'), name='role_given_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('guild', None), ('channel', None), _connector='OR'), name='role_for_guild_or_channel'), models.CheckConstraint(condition=models.Q(models.Q(('role__in', ['direct', 'operator']), _negated=True), models.Q(('channel', None), ('guild', None)), _connector='OR'), name='role_for_installation'), models.CheckConstraint(condition=models.Q(('until', None), ('until__gt', models.F('given_at')), _connector='OR'), name='role_ends_after_it_begins')],
            },
        ),
    ]
