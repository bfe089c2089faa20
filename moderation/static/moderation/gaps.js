// Lines for the gaps of a purge: a button shows each gap in its place.
"use strict";

function toggleGaps(purge, isShown) {
  for (const gap of document.querySelectorAll(`.gap.part[data-purge="${purge}"]`)) gap.classList.toggle("shown", isShown);
  for (const button of document.querySelectorAll(`button[data-gaps="${purge}"]`)) {
    if ((button.getAttribute("aria-expanded") === "true") === isShown) continue;
    button.setAttribute("aria-expanded", isShown);
    [button.textContent, button.dataset.hide] = [button.dataset.hide, button.textContent];
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-gaps]");
  if (button) toggleGaps(button.dataset.gaps, button.getAttribute("aria-expanded") !== "true");
});
