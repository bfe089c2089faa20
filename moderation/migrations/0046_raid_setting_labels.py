"""Labels of the raid settings. Changes no table."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("moderation", "0045_permission_labels"),
    ]

    operations = [
        migrations.AlterField(
            model_name="raidsettings",
            name="account_messages",
            field=models.IntegerField(
                db_default=6,
                default=6,
                help_text="This many messages by one account within one minute are a sign of a raid.",
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1000),
                ],
                verbose_name="messages per minute by one account",
            ),
        ),
        migrations.AlterField(
            model_name="raidsettings",
            name="links",
            field=models.IntegerField(
                db_default=3,
                default=3,
                help_text="This many are a sign of a raid. One is enough if other accounts post the same text.",
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1000),
                ],
                verbose_name="messages with links by one account",
            ),
        ),
        migrations.AlterField(
            model_name="raidsettings",
            name="mentions",
            field=models.IntegerField(
                db_default=5,
                default=5,
                help_text="Mentions of this many users by one account, or of everyone, are a sign of a raid.",
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1000),
                ],
                verbose_name="users mentioned by one account",
            ),
        ),
    ]
