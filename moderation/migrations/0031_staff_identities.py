"""Identities of single sign-on."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('moderation', '0030_selected_channels'),
    ]

    operations = [
        migrations.CreateModel(
            name='StaffIdentity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(max_length=255)),
                ('subject', models.CharField(max_length=255)),
                ('linked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'staff identities',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='one_account_per_identity'), models.UniqueConstraint(fields=('issuer', 'account'), name='one_identity_per_account')],
            },
        ),
    ]
