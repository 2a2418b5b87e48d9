// What can be measured on a page in the browser; test_pages.py says what has to come out. Of a part
// of a page only the contrast is measured.
(part) => {
  document.querySelectorAll("details").forEach((box) => { box.open = true; });
  const tabs = document.createElement("style");
  tabs.textContent = ".md-typeset .tabbed-block { display: block !important; }";
  document.head.append(tabs);
  const article = document.querySelector("article");
  const words = (element) => element.textContent.replace(/\s+/g, " ").trim().slice(0, 60);

  // [red, green, blue, alpha], whatever notation the style sheet used.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  };
  const over = (top, below) =>
    [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = (color) => {
    const [r, g, b] = color.slice(0, 3).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };

  const pageColor = () => over(rgba(getComputedStyle(document.body).backgroundColor), [255, 255, 255, 1]);
  const ground = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      const layer = rgba(getComputedStyle(each).backgroundColor);
      layers.push(layer);
      if (layer[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), pageColor());
  };
  // In a drawing: the last filled shape before the text that lies under the text's middle.
  const groundInDrawing = (text) => {
    const box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    let color = ground(text.closest("svg").parentElement);
    for (const shape of text.closest("svg").querySelectorAll("rect, circle, path, text")) {
      if (shape === text) break;
      if (shape.tagName === "text" || shape.closest("defs")) continue;
      const style = getComputedStyle(shape);
      const area = shape.getBoundingClientRect();
      const under = x > area.left && x < area.right && y > area.top && y < area.bottom;
      if (under && style.fill !== "none") color = over(rgba(style.fill), color);
    }
    return color;
  };

  const root = part ? document.querySelector(part) : document.body;
  const pale = [];
  const checkContrast = (element, color, below) => {
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(over(color, below), below);
    if (ratio < (large ? 3 : 4.5) - 0.005) {
      pale.push(`"${words(element)}" has contrast ${ratio.toFixed(2)}`);
    }
  };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || seen.has(element)) continue;
    seen.add(element);
    if (!element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    if (element.closest("svg")) continue;
    checkContrast(element, rgba(getComputedStyle(element).color), ground(element));
  }
  for (const text of root.querySelectorAll("svg text")) {
    checkContrast(text, rgba(getComputedStyle(text).fill), groundInDrawing(text));
  }
  if (part) return { pale };

  const width = document.documentElement.clientWidth;
  const inside = (element) => {
    for (let each = element.parentElement; each && each !== document.body; each = each.parentElement) {
      if (getComputedStyle(each).overflowX !== "visible") return true;
    }
    return false;
  };
  const wide = [...article.querySelectorAll("*")]
    .filter((each) => each.getBoundingClientRect().right > width + 0.5 && !inside(each))
    .filter((each) => each.checkVisibility())
    .map((each) => `<${each.tagName.toLowerCase()}> "${words(each)}"`);

  // What a program printed is not copied, nor a file that the clone has; all other code is.
  const copied = [...article.querySelectorAll(".highlight:not(.language-text, .source)")];
  const blocks = [...article.querySelectorAll(".highlight pre > code")];
  const paragraphs = [...article.querySelectorAll(":scope > p")].map((paragraph) => {
    const box = paragraph.getBoundingClientRect();
    const height = parseFloat(getComputedStyle(paragraph).lineHeight);
    const text = document.createRange();
    text.selectNodeContents(paragraph);
    const last = [...text.getClientRects()].filter((each) => each.bottom > box.bottom - height / 2);
    const filled = Math.max(...last.map((each) => each.right - box.left)) / box.width;
    const lines = Math.round(box.height / height);
    return { lines, full: lines - 1 + filled, characters: paragraph.textContent.length };
  });
  return {
    scheme: document.body.dataset.mdColorScheme,
    overflow: document.documentElement.scrollWidth - width,
    wide,
    pale,
    headings: [...article.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((heading) =>
      ({ level: Number(heading.tagName[1]), text: words(heading) })),
    nameless: [
      ...[...document.querySelectorAll("img:not([alt])")].map((image) => `<img src="${image.src}">`),
      ...[...article.querySelectorAll("svg:not([aria-hidden=true])")]
        .filter((svg) => !svg.querySelector("title")?.textContent.trim() ||
          !svg.querySelector("desc")?.textContent.trim())
        .map((svg) => `<svg> in "${words(svg.parentElement)}"`),
    ],
    smallest: Math.min(99, ...[...article.querySelectorAll("svg.fig text")].map((text) =>
      parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)),
    unclipped: blocks
      .filter((code) => code.getBoundingClientRect().right > width + 0.5)
      .map((code) => `"${words(code)}"`),
    scrolling: blocks
      .filter((code) => code.scrollWidth > code.clientWidth && code.closest(".language-cpp"))
      .map((code) => `"${words(code)}"`),
    uncopied: copied
      .filter((block) => !block.querySelector("[data-md-type=copy]")?.checkVisibility())
      .map((block) => `"${words(block)}"`),
    lineLength: Math.max(0, ...paragraphs.filter((each) => each.lines >= 4)
      .map((each) => each.characters / each.full)),
  };
}
