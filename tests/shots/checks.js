// Runs in the page. Returns low contrast, controls without an accessible name, and horizontal overflow.
() => {
  const MIN_CONTRAST = 4.5; // WCAG 2.2, 1.4.3, for text of any size
  const MIN_BOUNDARY = 3; // WCAG 2.2, 1.4.11, for controls and for marks that carry data
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  const parsed = new Map();

  // A canvas converts every color format into red, green, blue and alpha.
  const parse = (color) => {
    if (!parsed.has(color)) {
      brush.clearRect(0, 0, 1, 1);
      brush.fillStyle = "#000";
      brush.fillStyle = color;
      brush.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
      parsed.set(color, [r, g, b, a / 255]);
    }
    return parsed.get(color);
  };
  const over = (top, below) => {
    const a = top[3];
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(1);
  };
  const light = ([r, g, b]) => {
    const part = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ratio = (one, other) => {
    const [hi, lo] = [light(one), light(other)].sort((a, b) => b - a);
    return (hi + 0.05) / (lo + 0.05);
  };
  const groundOf = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return layers.reduceRight((below, top) => over(top, below), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };
  const opacityOf = (element) => {
    let product = 1;
    for (let at = element; at; at = at.parentElement) product *= Number(getComputedStyle(at).opacity);
    return product;
  };
  const isSeen = (element) =>
    element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
  const describe = (element) => {
    const text = (element.textContent || element.id || "").trim().replace(/\s+/g, " ").slice(0, 50);
    return `${element.tagName.toLowerCase()}.${element.getAttribute("class") || ""} “${text}”`;
  };

  const faults = new Set();
  const judge = (element, color, what) => {
    const opacity = opacityOf(element);
    if (opacity < 0.05) return; // shown on hover only; the same color is checked elsewhere
    const ground = groundOf(element);
    const [r, g, b, a] = parse(color);
    const found = ratio(over([r, g, b, a * opacity], ground), ground);
    if (found < MIN_CONTRAST) faults.add(`contrast ${found.toFixed(2)} of ${what} ${describe(element)}`);
  };

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !isSeen(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue; // for screen readers
    if (element.closest("script, style, noscript, title, option, progress, [disabled], .material-symbols-outlined")) continue;
    const style = getComputedStyle(element);
    judge(element, element instanceof SVGElement ? style.fill : style.color, "text of");
  }
  for (const field of document.querySelectorAll("input[placeholder], textarea[placeholder]")) {
    if (isSeen(field) && !field.value) judge(field, getComputedStyle(field, "::placeholder").color, "placeholder of");
  }

  // The best contrast of some colors with a ground. Each comes with what is below it, if that is not the ground.
  const best = (ground, opacity, ...colors) =>
    Math.max(...colors.map(([color, below = ground]) => {
      const [r, g, b, a] = parse(color);
      return ratio(over([r, g, b, a * opacity], below), ground);
    }));
  const judgeBoundary = (found, what) => {
    if (found < MIN_BOUNDARY) faults.add(`contrast ${found.toFixed(2)} of ${what}`);
  };
  const hasEdge = (element) => {
    const style = getComputedStyle(element);
    return parseFloat(style.borderBottomWidth) > 0 && parse(style.borderBottomColor)[3] > 0;
  };
  // A field of several parts has its edge around them.
  const boxOf = (control) => {
    let box = control;
    while (!hasEdge(box) && box.parentElement.offsetHeight < control.offsetHeight + 16) box = box.parentElement;
    return hasEdge(box) ? box : control;
  };
  const CONTROLS = "select, textarea, .button, input:not([type=hidden], [type=range], [type=submit])";
  for (const control of document.querySelectorAll(CONTROLS)) {
    const opacity = opacityOf(control);
    if (!isSeen(control) || opacity < 0.05 || control.matches(":disabled") || control.offsetWidth < 2) continue;
    const isButton = control.matches(".button");
    const box = isButton ? control : boxOf(control);
    const style = getComputedStyle(box);
    const ground = groundOf(box.parentElement);
    const fill = over(parse(style.backgroundColor), ground);
    const edge = hasEdge(box) ? [[style.borderBottomColor, fill]] : [];
    if (isButton && !edge.length && ratio(fill, ground) < 1.01) continue; // its text says what it is
    const found = best(ground, opacity, [style.backgroundColor], ...edge);
    judgeBoundary(found, `the edge of ${control.tagName.toLowerCase()}.${control.className} [${control.type || ""}]`);
  }
  // Lines that only guide the eye, and areas that only react to the pointer, carry no data.
  const GUIDES = ".slot, .hover, .grid, .axis, .cross, .track, .mark-line, rect.mark";
  const shapesOf = (mark) => {
    const pattern = /^url\("?#(.+?)"?\)/.exec(getComputedStyle(mark).fill);
    return pattern ? [mark, ...document.getElementById(pattern[1]).children] : [mark];
  };
  for (const mark of document.querySelectorAll(
    ":is(.strip, .chart svg, .key svg, .raid-plot svg, .spark, .gauge) :is(rect, path, circle, polyline, line)"
  )) {
    const box = mark.getBoundingClientRect();
    if (!isSeen(mark) || mark.matches(GUIDES) || mark.closest("pattern") || box.width + box.height < 2) continue;
    const ground = groundOf(mark.ownerSVGElement.parentElement);
    const colors = shapesOf(mark).flatMap((shape) => {
      const { fill, fillOpacity, stroke, strokeOpacity } = getComputedStyle(shape);
      const faded = (color, opacity) => {
        const [r, g, b, a] = parse(color);
        return [`rgb(${r} ${g} ${b} / ${a * opacity})`];
      };
      return [[fill, fillOpacity], [stroke, strokeOpacity]]
        .filter(([color]) => color !== "none" && !color.startsWith("url"))
        .map(([color, opacity]) => faded(color, opacity));
    });
    const parent = mark.parentElement.getAttribute("class") || "";
    const name = `${mark.tagName}.${mark.getAttribute("class") || ""} in .${parent}`;
    judgeBoundary(best(ground, opacityOf(mark), ["transparent"], ...colors), `the mark ${name}`);
  }

  const nameOf = (control) => {
    const labelled = (control.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean);
    const texts = [
      control.getAttribute("aria-label"),
      ...labelled.map((id) => document.getElementById(id)?.textContent),
      ...[...(control.labels || [])].map((label) => label.textContent),
      control.textContent,
      control.title,
      ["submit", "button", "reset"].includes(control.type) ? control.value : "",
      ...[...control.querySelectorAll("img, svg")].map((image) => image.alt || image.getAttribute("aria-label")),
    ];
    return texts.some((text) => text && text.trim());
  };
  for (const control of document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button], progress"
  )) {
    if (isSeen(control) && !control.closest("[aria-hidden=true]") && !nameOf(control)) {
      faults.add(`no accessible name: ${control.outerHTML.slice(0, 140)}`);
    }
  }

  const page = document.documentElement;
  if (page.scrollWidth > window.innerWidth) {
    faults.add(`horizontal overflow: ${page.scrollWidth} px of content in ${window.innerWidth}`);
  }
  return [...faults];
}
