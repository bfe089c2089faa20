// The search box: "/" and Ctrl-K focus it, the arrow keys move through what it suggests while one types, and Enter opens
// the first of that.
"use strict";

const searchInput = document.querySelector(".search input[type=search]");
const suggestions = document.querySelector(".search .suggestions");

function isTyping(element) {
  return element.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]") !== null;
}

function closeSuggestions() {
  suggestions.replaceChildren();
}

document.addEventListener("keydown", (event) => {
  if (!searchInput || event.altKey || document.querySelector("dialog[open]")) return;
  const withControl = event.ctrlKey || event.metaKey;
  if ((withControl && event.key.toLowerCase() === "k") || (event.key === "/" && !withControl && !isTyping(event.target))) {
    event.preventDefault();
    searchInput.focus();
    searchInput.select();
    searchInput.scrollIntoView({ block: "nearest" });
  }
});

searchInput?.form.addEventListener("keydown", (event) => {
  const links = [...suggestions.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "Escape" && suggestions.firstElementChild) {
    event.preventDefault();
    closeSuggestions();
    searchInput.focus();
  } else if (event.key === "ArrowDown" && links.length) {
    event.preventDefault();
    links[Math.min(at + 1, links.length - 1)].focus();
  } else if (event.key === "ArrowUp" && at >= 0) {
    event.preventDefault();
    (links[at - 1] ?? searchInput).focus();
  }
});

document.addEventListener("click", (event) => {
  if (searchInput && !searchInput.form.contains(event.target)) closeSuggestions();
});
searchInput?.form.addEventListener("focusout", (event) => {
  if (event.relatedTarget && !searchInput.form.contains(event.relatedTarget)) closeSuggestions();
});

// Enter may come before the suggestions of what was typed: then it waits for them.
let isAsked = false;
let opensFirst = false;

searchInput?.addEventListener("input", () => { isAsked = true; opensFirst = false; });
searchInput?.form.addEventListener("submit", (event) => {
  const listed = suggestions.querySelector("ul");
  if (listed?.dataset.query === searchInput.value.trim()) {
    const first = listed.querySelector("a");
    if (!first) return;
    event.preventDefault();
    first.click();
  } else if (isAsked) {
    event.preventDefault();
    opensFirst = true;
  }
});
suggestions?.addEventListener("htmx:afterSwap", () => {
  isAsked = false;
  if (!opensFirst) return;
  opensFirst = false;
  searchInput.form.requestSubmit();
});
for (const failed of ["htmx:responseError", "htmx:sendError"]) {
  searchInput?.addEventListener(failed, () => { if (opensFirst) searchInput.form.submit(); });
}
