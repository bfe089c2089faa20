// Opens a chat user beside the page when their name or a mention of them is clicked, and a purge by its link in a
// timeline. Without this script the links lead to their pages.
"use strict";

const panel = document.getElementById("panel");
let panelOpener = null;
let isOpening = false;

// The numbers of a user who is no longer shown would replace those of another one, or find nothing to replace.
function abortCounting() {
  for (const part of panel.querySelectorAll("[hx-get]")) window.htmx.trigger(part, "htmx:abort");
}

function openPanel(link) {
  const url = new URL("panel/", link.href);
  const isUser = /\/users\/\d+\/panel\/$/.test(url.pathname);
  if (isUser && panel.dataset.channel) url.searchParams.set("channel", panel.dataset.channel);
  panelOpener = link;
  isOpening = true;
  // A second click replaces the first one's request; app.js says why a request failed.
  window.htmx.trigger(panel, "htmx:abort");
  abortCounting();
  window.htmx.ajax("GET", url.pathname + url.search, { source: panel, target: panel, swap: "innerHTML" }).catch(() => {});
}

function setOpen(isOpen) {
  panel.hidden = !isOpen;
  document.getElementById("main").classList.toggle("beside-panel", isOpen);
}

function showPanel() {
  if (!isOpening) return; // a purge that is shown again while it runs
  isOpening = false;
  setOpen(true);
  panel.scrollTop = 0;
  panel.querySelector("h2")?.focus({ preventScroll: true });
}

function closePanel() {
  setOpen(false);
  abortCounting();
  panel.replaceChildren();
  panelOpener?.focus({ preventScroll: true });
  panelOpener = null;
}

if (panel) {
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("#panel [data-close]")) closePanel();
    const link = event.target.closest("main a.author, main a.user-mention, main a[data-panel]");
    if (!link) return;
    event.preventDefault();
    openPanel(link);
  });
  panel.addEventListener("htmx:afterSwap", showPanel);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || panel.hidden) return;
    event.preventDefault();
    closePanel();
  });
}
