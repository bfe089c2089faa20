// Opens a chat user beside the page when their name is clicked. Without this script the name leads to the user's page.
"use strict";

const panel = document.getElementById("panel");
let panelOpener = null;
let panelOpening = 0;

async function openPanel(link) {
  const opening = ++panelOpening;
  const url = new URL("panel/", link.href);
  if (panel.dataset.channel) url.searchParams.set("channel", panel.dataset.channel);
  panel.setAttribute("aria-busy", "true");
  await window.htmx.ajax("GET", url.pathname + url.search, { target: panel, swap: "innerHTML" });
  if (opening !== panelOpening) return;
  panel.removeAttribute("aria-busy");
  if (!panel.querySelector("h2")) return; // The request failed; app.js says so.
  panel.hidden = false;
  panel.scrollTop = 0;
  panelOpener = link;
  panel.querySelector("h2").focus({ preventScroll: true });
}

function closePanel() {
  panel.hidden = true;
  panel.replaceChildren();
  panelOpener?.focus({ preventScroll: true });
  panelOpener = null;
}

if (panel) {
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("#panel [data-close]")) closePanel();
    const link = event.target.closest("main a.author");
    if (!link) return;
    event.preventDefault();
    openPanel(link);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && !panel.hidden) closePanel();
  });
}
