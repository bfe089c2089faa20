// Counts the messages of the selected accounts of a raid, and how many of these accounts are old members.
"use strict";

const raid = document.getElementById("raid");
const language = document.documentElement.lang;
const plurals = new Intl.PluralRules(language);

function label(element, number) {
  // The label for some numbers, with # in their place: those of the same plural form as this one share its label.
  const forms = Object.entries(JSON.parse(element.dataset.forms));
  const [, pattern] = forms.find(([sample]) => plurals.select(Number(sample)) === plurals.select(number));
  element.textContent = pattern.replace("#", number.toLocaleString(language));
}

function count() {
  const selected = [...raid.querySelectorAll('input[name="account"]:checked')];
  const messages = selected.reduce((sum, box) => sum + Number(box.dataset.messages), 0);
  const established = selected.filter((box) => "established" in box.dataset).length;
  const warning = raid.querySelector("[data-established-count]");
  const submit = raid.querySelector("[data-submit]");
  label(raid.querySelector("[data-selected]"), messages);
  submit.disabled = selected.length === 0;
  if (!submit.disabled) label(submit, messages);
  warning.hidden = established === 0;
  label(warning, established);
}

raid.addEventListener("change", count);
window.addEventListener("pageshow", count);
count();
