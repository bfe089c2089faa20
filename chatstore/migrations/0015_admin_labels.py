"""Labels of the admin. Changes no table."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0014_shown_names'),
    ]

    operations = [
        migrations.AlterField(
            model_name='channel',
            name='id',
            field=models.BigIntegerField(primary_key=True, serialize=False, verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='chatuser',
            name='id',
            field=models.BigIntegerField(primary_key=True, serialize=False, verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='chatuser',
            name='is_bot',
            field=models.BooleanField(default=False, verbose_name='bot'),
        ),
        migrations.AlterField(
            model_name='guild',
            name='id',
            field=models.BigIntegerField(primary_key=True, serialize=False, verbose_name='ID'),
        ),
    ]
