// Names the list of a page by the page's title. Unfold makes it a region that scrolls, beside that of its menu, and
// SimpleBar, which reads this attribute when it starts, would give both the same name.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const list = document.querySelector("#changelist [data-simplebar]");
  if (list) list.setAttribute("data-simplebar-aria-label", document.title.split("|")[0].trim());
});
