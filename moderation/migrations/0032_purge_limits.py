"""Limits on what one person deletes, and approvals of purges above them."""

import chatstore.models.ids
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0009_worst_days'),
        ('moderation', '0031_staff_identities'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='PurgeApproval',
            fields=[
                ('id', models.BigIntegerField(db_default=chatstore.models.ids.NextId(), primary_key=True, serialize=False)),
                ('requested_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('reason', models.TextField()),
                ('manifest_hash', models.BinaryField()),
                ('decision', models.CharField(blank=True, choices=[('', ''), ('approved', 'approved'), ('rejected', 'rejected'), ('withdrawn', 'withdrawn'), ('expired', 'expired')], default='', max_length=10)),
                ('decided_at', models.DateTimeField(null=True)),
                ('decision_reason', models.TextField(blank=True, db_default='', default='')),
            ],
            options={
                'ordering': ('-id',),
                'permissions': (('approve_purge', 'Can approve purges above the limit of their moderator'),),
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='PurgeLimits',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('moderator', 'moderator'), ('lead', 'lead')], max_length=20)),
                ('messages_without_approval', models.IntegerField(null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000000)])),
                ('purges_per_hour', models.IntegerField(null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000000)])),
                ('messages_per_hour', models.IntegerField(null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000000)])),
                ('open_previews', models.IntegerField(null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000000)])),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.AddIndex(
            model_name='purge',
            index=models.Index(condition=models.Q(('confirmed_at__isnull', False)), fields=['moderator', 'confirmed_at'], name='purge_confirmed_by'),
        ),
        migrations.AddField(
            model_name='purgeapproval',
            name='decided_by',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='purgeapproval',
            name='purge',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='approvals', to='moderation.purge'),
        ),
        migrations.AddField(
            model_name='purgeapproval',
            name='requested_by',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='purgelimits',
            name='guild',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='purge_limits', to='chatstore.guild'),
        ),
        migrations.AddIndex(
            model_name='purgeapproval',
            index=models.Index(fields=['purge', 'id'], name='approval_by_purge'),
        ),
        migrations.AddIndex(
            model_name='purgeapproval',
            index=models.Index(condition=models.Q(('decision', '')), fields=['requested_at'], name='approval_undecided'),
        ),
        migrations.AddConstraint(
            model_name='purgeapproval',
            constraint=models.UniqueConstraint(condition=models.Q(('decision', '')), fields=('purge',), name='one_undecided_approval'),
        ),
        migrations.AddConstraint(
            model_name='purgeapproval',
            constraint=models.CheckConstraint(condition=models.Q(('decided_by', None), models.Q(('decided_by', models.F('requested_by')), _negated=True), _connector='OR'), name='approved_by_another'),
        ),
        migrations.AddConstraint(
            model_name='purgeapproval',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('decision__in', ('approved', 'rejected')), _negated=True), ('decided_by__isnull', False), _connector='OR'), name='approval_decided_by_a_person'),
        ),
        migrations.AddConstraint(
            model_name='purgelimits',
            constraint=models.UniqueConstraint(fields=('guild', 'role'), name='limits_of_role_once', nulls_distinct=False),
        ),
    ]
