"""`manage.py audit_archive`: moves entries of the audit log beyond the retention period to signed archive files."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatstore.domain.errors import ChatstoreError, StoreUnavailable
from chatstore.management.inert import InertCommand
from moderation.management.commands.purge import BAD_INPUT, find_moderator
from moderation.operations.access.audit_archive import Archive, count_removable, delete_archived, write_archives


class Command(InertCommand):
    help = "Write the entries of the audit log beyond AUDIT_RETENTION_DAYS to archive files, and verify these."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--delete", action="store_true", help="then delete what is archived; takes the owner of the tables"
        )
        parser.add_argument("--as", dest="moderator", metavar="USER", help="acting account; default: 'command-line'")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            archive = Archive.from_settings()
            for written in write_archives(archive):
                self.stdout.write(f"archived   positions {written.first:,} to {written.last:,}")
            if options["delete"]:
                deleted = delete_archived(archive, actor=find_moderator(options["moderator"]))
                self.stdout.write(f"deleted    {deleted:,} entries")
            else:
                self.stdout.write(f"removable  {count_removable(archive):,} entries")
        except StoreUnavailable as error:
            raise CommandError(str(error)) from None
        except ChatstoreError as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from None
