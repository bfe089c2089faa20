"""When a guild's channel counts as raided."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from chatstore.models import Guild
from moderation.domain.raids import Limits

DEFAULTS = Limits()


def _limit(default: int, most: int, label: object, help_text: object) -> models.IntegerField[int, int]:
    return models.IntegerField(
        label,  # type: ignore[arg-type]
        default=default,
        db_default=default,
        validators=[MinValueValidator(1), MaxValueValidator(most)],
        help_text=help_text,  # type: ignore[arg-type]
    )


class RaidSettings(models.Model):
    """Settings of a guild for the detection of raids. No row: the defaults, which also apply to direct messages."""

    guild = models.OneToOneField(
        Guild, primary_key=True, on_delete=models.CASCADE, related_name="raid_settings", verbose_name=_("server")
    )
    is_enabled = models.BooleanField(_("detect raids"), default=True, db_default=True)
    messages_per_minute = _limit(
        DEFAULTS.messages_per_minute,
        10_000,
        _("messages per minute"),
        _("A raid has at least this many messages within one minute."),
    )
    times_usual = _limit(
        DEFAULTS.times_usual,
        1_000,
        _("multiple of the usual rate"),
        _("In busy channels, a raid also has at least this many times the channel’s average of the last 30 days."),
    )
    accounts = _limit(
        DEFAULTS.accounts,
        1_000,
        _("accounts taking part"),
        _("A raid has at least this many accounts that seem to take part."),
    )
    account_days = _limit(
        DEFAULTS.account_days,
        3_650,
        _("account younger than (days)"),
        _("Such accounts count as new."),
    )
    first_seen_hours = _limit(
        DEFAULTS.first_seen_hours,
        8_760,
        _("first seen within (hours)"),
        _("Authors whose first message, in any channel, is that recent count as new."),
    )
    same_text_accounts = _limit(
        DEFAULTS.same_text_accounts,
        1_000,
        _("accounts posting the same text"),
        _("The same, or nearly the same, text is a sign of a raid once this many accounts post it."),
    )
    account_messages = _limit(
        DEFAULTS.account_messages,
        1_000,
        _("messages per minute by one account"),
        _("This many messages by one account within one minute are a sign of a raid."),
    )
    mentions = _limit(
        DEFAULTS.mentions,
        1_000,
        _("users mentioned by one account"),
        _("Mentions of this many users by one account, or of everyone, are a sign of a raid."),
    )
    links = _limit(
        DEFAULTS.links,
        1_000,
        _("messages with links by one account"),
        _("This many are a sign of a raid. One is enough if other accounts post the same text."),
    )

    class Meta:
        default_permissions = ("add", "change", "view")
        verbose_name = _("raid settings")
        verbose_name_plural = _("raid settings")

    def __str__(self) -> str:
        return f"raid settings of server {self.guild_id}"

    @property
    def limits(self) -> Limits:
        """The settings as the detection takes them."""
        return Limits(
            messages_per_minute=self.messages_per_minute,
            times_usual=self.times_usual,
            accounts=self.accounts,
            account_days=self.account_days,
            first_seen_hours=self.first_seen_hours,
            same_text_accounts=self.same_text_accounts,
            account_messages=self.account_messages,
            mentions=self.mentions,
            links=self.links,
        )
