"""The digest of each bucket's ids, of which Postgres makes the manifest's."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("moderation", "0010_rung_and_kept_again")]
    operations = [
        migrations.AddField(model_name="manifestbucket", name="digest", field=models.BinaryField(null=True)),
    ]
