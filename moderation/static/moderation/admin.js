// Corrects labels and names that Unfold and Django's admin write.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  nameList();
  labelCells();
  // jQuery calls in order: Django's own call, which starts Select2, comes first.
  window.django?.jQuery?.(nameChoices);
});

// Unfold makes the list of a page a region that scrolls, beside that of its menu, and SimpleBar, which reads this
// attribute when it starts, would give both the same name.
function nameList() {
  const list = document.querySelector("#changelist [data-simplebar]");
  if (list) list.setAttribute("data-simplebar-aria-label", document.title.split("|")[0].trim());
}

// On phones the cells of a list have labels, of which Unfold capitalizes each word.
function labelCells() {
  for (const cell of document.querySelectorAll("#result_list [data-label]")) {
    const label = cell.dataset.label;
    cell.dataset.label = label.charAt(0).toUpperCase() + label.slice(1);
    cell.classList.remove("before:capitalize");
  }
}

// Select2 names a field after its value, so an empty field has no name.
function nameChoices() {
  for (const field of document.querySelectorAll("select.select2-hidden-accessible")) {
    const [label] = field.labels;
    const chosen = field.nextElementSibling?.querySelector(".select2-selection__rendered");
    if (!label || !chosen) continue;
    label.id ||= `label-${field.id}`;
    chosen.setAttribute("aria-labelledby", label.id);
    chosen.closest(".select2-selection").setAttribute("aria-labelledby", `${label.id} ${chosen.id}`);
  }
}
