// Marks the fields of a schedule that the preview of what is typed calls wrong, as the server does in the whole page.
"use strict";

const ERROR = "schedule-error";

document.addEventListener("htmx:afterSwap", () => {
  const wrong = document.getElementById("preview").dataset.wrong.split(" ");
  for (const input of document.querySelectorAll(".schedule [aria-describedby]")) {
    const described = input.getAttribute("aria-describedby").split(" ").filter((id) => id !== ERROR);
    const isWrong = wrong.includes(input.name);
    if (isWrong) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    input.setAttribute("aria-describedby", (isWrong ? [ERROR, ...described] : described).join(" "));
  }
});
