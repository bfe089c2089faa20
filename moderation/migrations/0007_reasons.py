from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("moderation", "0006_fill_sums")]

    operations = [
        migrations.AddField(
            model_name="undo",
            name="reason",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="hold",
            name="lift_reason",
            field=models.TextField(db_default="", default=""),
        ),
    ]
