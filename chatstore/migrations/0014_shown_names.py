"""An index of chat users by the name that is shown, to find those who share one."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.functions import Coalesce, NullIf


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('chatstore', '0013_server_names'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='chatuser',
            index=models.Index(
                Coalesce(NullIf(models.F('display_name'), models.Value('')), models.F('name')),
                models.F('name'),
                name='chat_user_by_shown_name',
            ),
        ),
    ]
