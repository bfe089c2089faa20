"""The labels that scripts complete have a text for every plural form of every language."""

import json

import pytest
from django.utils.translation import override, trans_real

from moderation.templatetags.chat import PLURAL_SAMPLES, plural_forms
from tests.pages.pseudo_locale import LANGUAGE, PseudoTranslations, pseudo_locale


class FourForms(PseudoTranslations):
    """A language with four plural forms, as Welsh has."""

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        form = {1: "one", 2: "two", 8: "eight", 11: "eight"}.get(n, "other")
        return f"{form}: {msgid2}"


def test_a_label_is_given_for_each_sample() -> None:
    forms = json.loads(plural_forms("selected"))
    assert list(map(int, forms)) == list(PLURAL_SAMPLES)
    assert (forms["1"], forms["2"]) == ("# message selected", "# messages selected")


@pytest.mark.parametrize("label", ["delete", "exclude", "restore", "selected"])
def test_each_form_of_a_language_is_among_them(label: str) -> None:
    with pseudo_locale():
        trans_real._translations[LANGUAGE] = FourForms()  # type: ignore[attr-defined]
        with override(LANGUAGE):
            forms = json.loads(plural_forms(label))
    assert {text.partition(":")[0] for text in forms.values()} == {"one", "two", "eight", "other"}
