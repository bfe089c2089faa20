// Ticking messages of a purge: ranges with the shift key, and a button that says how many.
"use strict";

const bar = document.getElementById("ticks");
let last = null;

function boxes() {
  return [...document.querySelectorAll('input.tick[form="ticks"]')];
}

function count() {
  if (!bar) return;
  // The oldest and the newest samples may show one message twice.
  const ticked = new Set(boxes().filter((box) => box.checked).map((box) => box.value)).size;
  bar.hidden = ticked === 0;
  const number = ticked.toLocaleString("en-GB");
  bar.querySelector("[data-ticked-words]").textContent = `${number} message${ticked === 1 ? "" : "s"} ticked`;
  bar.querySelector("[data-ticked-go]").textContent =
    ticked === 1 ? bar.dataset.one : bar.dataset.many.replace("{}", number);
}

document.addEventListener("click", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || !box.classList.contains("tick")) return;
  if (event.shiftKey && last?.isConnected) {
    const all = boxes();
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
    for (const other of all.slice(Math.max(from, 0), to + 1)) other.checked = box.checked;
  }
  last = box;
  count();
});

if (bar) {
  bar.addEventListener("reset", () => setTimeout(count, 0));
  window.addEventListener("pageshow", count);
  count();
}
