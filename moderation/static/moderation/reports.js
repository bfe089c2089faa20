// Keys of the reports page: an element with `data-key` is clicked when its key is pressed, and its <kbd> shows the key.
"use strict";

let chosen = false;

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable], .search, #panel, dialog");
  if (isTyping || event.repeat || event.ctrlKey || event.metaKey || event.altKey || chosen) return;
  const control = /^[a-z]$/i.test(event.key) && document.querySelector(`[data-key="${event.key.toLowerCase()}"]`);
  if (!control) return;
  event.preventDefault();
  // One press is one action, however long the next page takes.
  chosen = true;
  control.click();
});

// A page that the browser shows again from its cache takes keys again.
window.addEventListener("pageshow", () => { chosen = false; });

// The list scrolls on its own beside the report; the page stays at its heading.
const current = document.querySelector(".case-link[aria-current]");
const list = current?.closest("ul");
if (list) {
  const [here, all] = [current.getBoundingClientRect(), list.getBoundingClientRect()];
  // In the middle: at the edges the list fades.
  list.scrollTop += (here.top + here.bottom - all.top - all.bottom) / 2;
}

// The decision stays at the bottom of the window. What is decided on is not left below it. On phones, where this would
// scroll past the result of the decision before and its undo, that result is shown instead.
const decision = document.querySelector(".case-decision");
const subject = document.querySelector(".case .subject");
const hasResult = document.getElementById("decision-done") !== null;
if (decision && subject && !(hasResult && matchMedia("(max-width: 720px)").matches)) {
  const covered = subject.getBoundingClientRect().bottom + 12 - decision.getBoundingClientRect().top;
  if (covered > 0 && getComputedStyle(decision).position === "sticky") window.scrollBy(0, covered);
}
