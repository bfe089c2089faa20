"""Sessions that name their account. Those of the old table end: everyone signs in again."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('moderation', '0025_audit_chain'),
    ]

    operations = [
        migrations.CreateModel(
            name='StaffSession',
            fields=[
                ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('last_used_at', models.DateTimeField()),
                ('account', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'session',
                'verbose_name_plural': 'sessions',
                'abstract': False,
                'default_permissions': (),
                'indexes': [models.Index(condition=models.Q(('account__isnull', False)), fields=['account'], name='session_by_account')],
            },
        ),
    ]
