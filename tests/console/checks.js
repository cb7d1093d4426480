// What can be seen of a page without eyes and without a mouse: {lacking, faint}, both empty where all is well.
() => {
  const lacking = [], all = (selector) => [...document.querySelectorAll(selector)];
  for (const name of ["header", "main", "nav", "h1", "[role=status]"]) {
    if (!all(name).length) lacking.push(`no ${name}`);
  }
  if (all("h1").length > 1) lacking.push("several h1");
  if (!document.documentElement.lang || !document.title) lacking.push("no language or title");
  for (const field of all("input, textarea, select")) {
    if (!field.labels?.length && !field.getAttribute("aria-label")) lacking.push(`no label: ${field.outerHTML}`);
  }
  for (const each of all("a, button, summary, th")) {
    if (!each.textContent.trim() && !each.getAttribute("aria-label")) lacking.push(`no name: ${each.outerHTML}`);
  }
  for (const each of all("svg[role=img]")) {
    if (!each.getAttribute("aria-label")) lacking.push("a picture without a name");
  }
  const ids = all("[id]").map((each) => each.id);
  if (new Set(ids).size < ids.length) lacking.push(`an id twice: ${ids}`);
  all("h1, h2, h3").reduce((before, each) => {
    const level = Number(each.tagName[1]);
    if (level > before + 1) lacking.push(`a level is left out before: ${each.textContent}`);
    return level;
  }, 0);

  const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const linear = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const behind = (each) => {
    for (; each; each = each.parentElement) {
      const found = numbers(getComputedStyle(each).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const says = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const contrast = (each) => {
    const two = [light(numbers(getComputedStyle(each).color)), light(behind(each))];
    return (Math.max(...two) + 0.05) / (Math.min(...two) + 0.05);
  };
  const texts = all("p, a, button:enabled, label, dt, dd, h1, h2, h3, span, td, th, ins, del")
    .filter((each) => each.checkVisibility() && says(each) && !each.closest(":disabled"));
  const faint = texts.filter((each) => contrast(each) < 4.5).map((each) => each.outerHTML); // WCAG 2, AA
  return { lacking, faint };
}
