// Selecting messages: ranges with the shift key, and a bar that counts the selected ones.
"use strict";

const bar = document.getElementById("selection");
const language = document.documentElement.lang;
const plurals = new Intl.PluralRules(language);
let last = null;

function boxes() {
  return [...document.querySelectorAll('input.select-input[form="selection"]')];
}

function count() {
  if (!bar) return;
  // The first and the last samples of a purge may show one message twice.
  const selected = new Set(boxes().filter((box) => box.checked).map((box) => box.value)).size;
  bar.hidden = selected === 0;
  document.documentElement.classList.toggle("has-selection", selected > 0);
  if (selected === 0) return;
  for (const label of bar.querySelectorAll("[data-count]")) {
    // The label for some numbers, with # in their place: those of the same plural form as this one share its label.
    const forms = Object.entries(JSON.parse(label.dataset.forms));
    const [, pattern] = forms.find(([number]) => plurals.select(Number(number)) === plurals.select(selected));
    label.textContent = pattern.replace("#", selected.toLocaleString(language));
  }
}

document.addEventListener("click", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || !box.classList.contains("select-input")) return;
  if (event.shiftKey && last?.isConnected) {
    const all = boxes();
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
    for (const other of all.slice(Math.max(from, 0), to + 1)) other.checked = box.checked;
  }
  last = box;
  count();
});

// A shift-click on a label would select the text in between.
document.addEventListener("mousedown", (event) => {
  if (event.shiftKey && event.target.closest(".select-box")) event.preventDefault();
});

if (bar) {
  bar.addEventListener("reset", () => setTimeout(count, 0));
  window.addEventListener("pageshow", count);
  document.addEventListener("htmx:afterSwap", count);
  count();
}
