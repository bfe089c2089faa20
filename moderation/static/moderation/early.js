// Runs before the page is drawn: a class of the root that is set later computes the style of every element again.
"use strict";

document.documentElement.classList.add("js");
