// Selecting messages: by their boxes, by clicking on rows or dragging over them, and a bar that counts the selected ones.
"use strict";

const bar = document.getElementById("selection");
const language = document.documentElement.lang;
const plurals = new Intl.PluralRules(language);
let last = null;

function boxes() {
  return [...document.querySelectorAll('input.select-input[form="selection"]:not(:disabled)')];
}

// The label for some numbers, with # in their place: those of the same plural form as this one share its label.
function labelFor(number, forms) {
  const [, pattern] = Object.entries(JSON.parse(forms))
    .find(([sample]) => plurals.select(Number(sample)) === plurals.select(number));
  return pattern.replace("#", number.toLocaleString(language));
}

function count() {
  if (!bar) return;
  // The first and the last samples of a purge may show one message twice.
  const selected = new Set(boxes().filter((box) => box.checked).map((box) => box.value)).size;
  bar.hidden = selected === 0;
  document.documentElement.classList.toggle("has-selection", selected > 0);
  document.documentElement.classList.toggle("one-selected", selected === 1);
  if (selected === 0) return;
  const isOver = selected > Number(bar.dataset.max ?? Infinity);
  for (const label of bar.querySelectorAll("[data-count]")) {
    const isButton = label.matches("button");
    const text = labelFor(selected, label.dataset.forms) + (isOver && !isButton ? `. ${bar.dataset.over}` : "");
    if (isButton) label.disabled = isOver;
    // Every change is read out, of the same text too.
    if (label.textContent !== text) label.textContent = text;
  }
}

function selectWhere(condition) {
  for (const box of boxes()) if (condition(box)) box.checked = true;
  count();
}

function between(from, to) {
  const all = boxes();
  // Its row was removed, or deleted.
  if (!all.includes(from)) return [to];
  const [first, end] = [all.indexOf(from), all.indexOf(to)].sort((a, b) => a - b);
  return all.slice(first, end + 1);
}

function extendTo(box) {
  for (const other of between(last, box)) other.checked = box.checked;
}

// --- rows of a timeline: a click selects, unless it means something else --------------------

const USED = 'a, button, input, label, summary, dialog, [tabindex="0"]';
const TEXT = `${USED}, .text, .author, time, .embed, .files`;
let drag = null; // {from, on, before: the boxes that were checked}
let ignoreClick = false;

function rowBox(target) {
  return target.closest?.(".msg")?.querySelector(":scope > .select-box > .select-input:not(:disabled)");
}

document.addEventListener("pointerdown", (event) => {
  const box = event.button === 0 && rowBox(event.target);
  ignoreClick = !getSelection().isCollapsed;
  drag = null;
  if (!box || event.pointerType !== "mouse" || event.shiftKey || event.target.closest(TEXT)) return;
  drag = { from: box, on: !box.checked, before: null };
});

document.addEventListener("pointerover", (event) => {
  if (!drag) return;
  if (!(event.buttons & 1)) { drag = null; return; }
  const box = rowBox(event.target);
  if (!box || (box === drag.from && !drag.before)) return;
  drag.before ??= new Set(boxes().filter((each) => each.checked));
  const dragged = new Set(between(drag.from, box));
  for (const each of boxes()) each.checked = dragged.has(each) ? drag.on : drag.before.has(each);
  last = box;
  count();
});

// Dragging beside the text selects messages, and a shift-click all between two of them: no text.
document.addEventListener("mousedown", (event) => {
  if (drag || (event.shiftKey && (event.target.closest(".select-box") || rowBox(event.target)))) event.preventDefault();
});

document.addEventListener("click", (event) => {
  const box = event.target;
  if (box instanceof HTMLInputElement && box.classList.contains("select-input")) {
    if (event.shiftKey && last?.isConnected) extendTo(box);
    last = box;
    count();
    return;
  }
  const author = event.target.closest("[data-select-author]")?.closest(".msg").dataset.author;
  if (author) selectWhere((each) => each.closest(".msg")?.dataset.author === author);
  const row = rowBox(event.target);
  const wasDragged = drag?.before;
  drag = null;
  if (!row || wasDragged || ignoreClick || !getSelection().isCollapsed || event.target.closest(USED)) return;
  row.checked = !row.checked;
  if (event.shiftKey && last?.isConnected) extendTo(row);
  last = row;
  count();
});

document.addEventListener("keydown", (event) => {
  if (!bar || document.querySelector("dialog[open]") || event.target.closest("input:not(.select-input), textarea, select")) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "a" && document.querySelector(".msg .select-input")) {
    event.preventDefault();
    selectWhere(() => true);
  }
  // The panel comes first.
  if (event.key === "Escape" && !bar.hidden && !event.defaultPrevented) {
    for (const box of boxes()) box.checked = false;
    count();
  }
});

if (bar) {
  bar.addEventListener("reset", () => setTimeout(count, 0));
  window.addEventListener("pageshow", count);
  document.addEventListener("htmx:afterSwap", count);
  count();
}
