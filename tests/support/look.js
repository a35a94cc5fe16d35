// What is wrong with a page as it is shown now, as a list of sentences.
(() => {
  const faults = new Set();
  const wide = document.documentElement.clientWidth;
  const name = (one) => {
    const said = (one.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${one.tagName.toLowerCase()} class="${one.getAttribute("class") || ""}"> ${said}`;
  };

  // Scripts
  for (const one of document.querySelectorAll("script, iframe, object, embed")) faults.add(`active: ${name(one)}`);
  for (const one of document.querySelectorAll("*")) {
    for (const attribute of one.attributes) if (/^on/i.test(attribute.name)) faults.add(`handler: ${name(one)}`);
  }

  // Overflow
  const root = document.scrollingElement || document.documentElement;
  if (root.scrollWidth > wide) faults.add(`the page is ${root.scrollWidth} wide in a window of ${wide}`);
  const seen = (one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const scrolls = (one) => {
    for (let at = one.parentElement; at; at = at.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(at).overflowX)) return true;
    }
    return false;
  };
  for (const one of document.body ? document.body.querySelectorAll("*") : []) {
    const box = one.getBoundingClientRect();
    if (!seen(one) || box.width === 0 || box.right <= 0 || one.closest("svg svg, defs")) continue;
    if (box.right > wide + 1 && !scrolls(one)) faults.add(`beyond the right edge by ${Math.round(box.right - wide)}: ${name(one)}`);
    const style = getComputedStyle(one);
    const cuts = ["hidden", "clip"].includes(style.overflowX) && one.scrollWidth > one.clientWidth + 1;
    if (cuts && !(one instanceof SVGElement) && one.innerText) faults.add(`cut off: ${name(one)}`);
  }

  // Words for those who do not see pictures, and the order of headings
  for (const one of document.querySelectorAll("svg, img")) {
    const outer = one.parentElement && one.parentElement.closest("svg");
    if (outer || one.closest('[aria-hidden="true"]')) continue;
    const said = one.getAttribute("aria-label") || one.getAttribute("alt");
    if (!said && !one.querySelector("title")) faults.add(`picture without words: ${name(one)}`);
  }
  let before = 0;
  for (const one of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const level = Number(one.tagName[1]);
    if (level > before + 1) faults.add(`heading leaves a level out: ${name(one)}`);
    before = level;
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const one of ids) if (ids.indexOf(one) !== ids.lastIndexOf(one)) faults.add(`two elements with id ${one}`);

  // Contrast: the colour of each text against all that is painted below it, at three points of each line
  const parse = (colour) => {
    const found = colour.match(/^rgba?\(([^)]+)\)$/);
    if (found) {
      const parts = found[1].split(/[ ,/]+/).map(Number);
      return { r: parts[0], g: parts[1], b: parts[2], a: parts.length > 3 ? parts[3] : 1 };
    }
    const other = colour.match(/^color\(srgb ([^)]+)\)$/);
    if (!other) return { r: 0, g: 0, b: 0, a: 0 };
    const parts = other[1].split(/[ /]+/).map(Number);
    return { r: 255 * parts[0], g: 255 * parts[1], b: 255 * parts[2], a: parts.length > 3 ? parts[3] : 1 };
  };
  const over = (top, ground) => ({
    r: top.r * top.a + ground.r * (1 - top.a),
    g: top.g * top.a + ground.g * (1 - top.a),
    b: top.b * top.a + ground.b * (1 - top.a),
    a: 1,
  });
  const light = (colour) => {
    const part = (value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(colour.r) + 0.7152 * part(colour.g) + 0.0722 * part(colour.b);
  };
  const ratio = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const kept = (find) => {
    const known = new Map();
    return (one) => {
      if (!known.has(one)) known.set(one, find(one));
      return known.get(one);
    };
  };
  const faded = kept((one) => Number(getComputedStyle(one).opacity) * (one.parentElement ? faded(one.parentElement) : 1));
  const shapes = new Set(["path", "rect", "circle", "ellipse", "polygon"]);
  const painted = kept((one) => {
    const style = getComputedStyle(one);
    let colour = parse(style.backgroundColor);
    if (one instanceof SVGElement && one.tagName !== "svg") {
      colour = shapes.has(one.tagName) ? parse(style.fill) : { r: 0, g: 0, b: 0, a: 0 };
      colour.a *= Number(style.fillOpacity);
    }
    return { ...colour, a: colour.a * faded(one) };
  });
  const dark = matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
  const canvas = dark && getComputedStyle(document.documentElement).colorScheme.includes("dark")
    ? { r: 18, g: 18, b: 18, a: 1 } : { r: 255, g: 255, b: 255, a: 1 };
  const ground = (stack) => stack.reverse().reduce((below, one) => over(painted(one), below), canvas);

  let texts = 0;
  const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const one = node.parentElement;
    if (!node.data.trim() || !one || one.closest("style, title, head, defs") || !seen(one)) continue;
    const style = getComputedStyle(one);
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1 || box.right <= 0 || box.bottom <= 0) continue;
      texts += 1;
      for (const part of [0.1, 0.5, 0.9]) {
        const stack = document.elementsFromPoint(box.left + part * box.width, box.top + box.height / 2);
        const at = stack.indexOf(one);
        if (at < 0) continue;
        const above = stack.slice(0, at).filter((other) => !one.contains(other) && painted(other).a > 0.1);
        if (above.length) faults.add(`covered by ${name(above[0])}: ${name(one)}`);
        const below = ground(stack.slice(at));
        const own = parse(one instanceof SVGElement ? style.fill : style.color);
        const colour = over({ ...own, a: own.a * faded(one) }, below);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        const found = ratio(colour, below);
        if (found < (large ? 3 : 4.5)) faults.add(`contrast ${found.toFixed(2)}: ${name(one)}`);
      }
    }
  }
  if (texts === 0) faults.add("no text is shown");

  // Lines, bars and dots that carry a meaning: 3 to 1 against what lies below them
  for (const one of document.querySelectorAll("svg .bar, svg .line, svg .dot, svg .edge, svg .dim, svg .axis, svg .real, "
      + "svg .one, svg .two, svg .three, svg .four, svg .first, svg .second, svg .l, svg .d, svg .e, svg .s")) {
    if (!seen(one) || one.closest("defs")) continue;
    const style = getComputedStyle(one);
    const filled = style.fill !== "none";
    const own = parse(filled ? style.fill : style.stroke);
    const edge = parse(style.stroke);
    const stack = [];
    const drawing = one.closest("svg");
    for (let at = drawing.parentElement || drawing.querySelector("rect"); at; at = at.parentElement) stack.push(at);
    const below = ground(stack);
    const opacity = faded(one) * Number(filled ? style.fillOpacity : style.strokeOpacity);
    const outlined = style.stroke !== "none" && ratio(over(edge, below), below) >= 3;
    const found = ratio(over({ ...own, a: own.a * opacity }, below), below);
    if (found < 3 && !outlined) faults.add(`contrast ${found.toFixed(2)} of a picture's part: ${name(one)}`);
  }
  return [...faults];
})()
