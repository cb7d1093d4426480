// Draws the Mermaid sources of a page; the drawing program is loaded by pages that have one.
const sources = [...document.querySelectorAll("pre.diagram")];
const here = document.currentScript.src;

async function draw() {
  const dark = document.body.dataset.mdColorScheme === "slate";
  mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
  for (const [number, source] of sources.entries()) {
    const drawn = document.createElement("div");
    drawn.className = "diagram";
    drawn.innerHTML = (await mermaid.render(`diagram-${number}`, source.textContent)).svg;
    source.replaceWith(drawn);
  }
}

if (sources.length) {
  const program = document.createElement("script");
  program.src = new URL("../vendor/mermaid.tiny.js", here);
  program.onload = draw;
  document.head.append(program);
}
