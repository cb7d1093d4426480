// Whom and what memories name, and which are named together: a picture, and the same as a table.

import { useMemo } from "preact/hooks";
import { part, read } from "./api.js";
import { Loaded, html, plural, useLoaded } from "./parts.js";

const LATEST = 1000, SHOWN = 30;
const WIDTH = 800, HEIGHT = 560, STEPS = 150;

const load = (signal) => read("memories", { limit: LATEST, newest_first: true }, signal);

// Return the names that stand in most memories, and how many memories each two of them share.
function graphOf(records) {
  const counts = new Map(), together = new Map();
  const named = records.map(({ memory }) => [...new Set(memory.entities)]);
  for (const each of named.flat()) counts.set(each, (counts.get(each) ?? 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, SHOWN);
  const place = new Map(most.map(([name], at) => [name, at]));
  for (const each of named) {
    const here = each.filter((name) => place.has(name)).map((name) => place.get(name)).sort((a, b) => a - b);
    here.forEach((one, at) => here.slice(at + 1).forEach((other) => {
      const pair = `${one} ${other}`;
      together.set(pair, (together.get(pair) ?? 0) + 1);
    }));
  }
  const links = [...together].map(([pair, weight]) => [...pair.split(" ").map(Number), weight]);
  return { nodes: most.map(([name, count]) => ({ name, count })), links };
}

// Put the nodes where links pull them together and all push each other away (Fruchterman and Reingold 1991).
function placed({ nodes, links }) {
  const even = Math.sqrt((WIDTH * HEIGHT) / Math.max(1, nodes.length)) * 0.7;
  const at = nodes.map((_, n) => [WIDTH / 2 + 200 * Math.cos(2.4 * n) * Math.sqrt((n + 1) / nodes.length),
    HEIGHT / 2 + 200 * Math.sin(2.4 * n) * Math.sqrt((n + 1) / nodes.length)]);
  for (let step = 0; step < STEPS; step++) {
    const move = at.map(([x, y]) => [(WIDTH / 2 - x) * 0.05, (HEIGHT / 2 - y) * 0.05]);
    const push = (one, other, force) => {
      const dx = at[one][0] - at[other][0], dy = at[one][1] - at[other][1], far = Math.hypot(dx, dy) || 1;
      for (const [who, sign] of [[one, 1], [other, -1]]) {
        move[who][0] += sign * (dx / far) * force(far);
        move[who][1] += sign * (dy / far) * force(far);
      }
    };
    for (let one = 0; one < at.length; one++) {
      for (let other = 0; other < one; other++) push(one, other, (far) => even ** 2 / far);
    }
    for (const [one, other] of links) push(one, other, (far) => -(far ** 2) / even);
    const longest = 40 * (1 - step / STEPS);
    at.forEach((point, n) => {
      const far = Math.hypot(...move[n]) || 1, share = Math.min(far, longest) / far;
      point[0] = Math.min(WIDTH - 60, Math.max(60, point[0] + move[n][0] * share));
      point[1] = Math.min(HEIGHT - 20, Math.max(20, point[1] + move[n][1] * share));
    });
  }
  return at;
}

function Picture({ graph }) {
  const at = useMemo(() => placed(graph), [graph]);
  return html`<svg class="graph" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img"
    aria-label="Names that memories have together; the table below has the same">
    ${graph.links.map(([one, other, weight]) => html`<line key="${one}-${other}" x1=${at[one][0]} y1=${at[one][1]}
      x2=${at[other][0]} y2=${at[other][1]} stroke-width=${Math.min(6, weight)} />`)}
    ${graph.nodes.map(({ name, count }, n) => html`<g key=${name}><circle cx=${at[n][0]} cy=${at[n][1]}
      r=${Math.min(14, 4 + count)} /><text x=${at[n][0]} y=${at[n][1] - 16} text-anchor="middle">${name}</text></g>`)}
  </svg>`;
}

function Table({ graph }) {
  const beside = graph.nodes.map(() => []);
  for (const [one, other, weight] of graph.links) {
    beside[one].push([graph.nodes[other].name, weight]);
    beside[other].push([graph.nodes[one].name, weight]);
  }
  return html`<div class="scrolls" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th scope="col">Name</th><th scope="col">Memories</th>
    <th scope="col">Named together with</th></tr></thead><tbody>${graph.nodes.map(({ name, count }, n) => html`
      <tr key=${name}><th scope="row"><a href="#/memories?q=${part(name)}">${name}</a></th><td>${count}</td>
      <td>${beside[n].sort((a, b) => b[1] - a[1]).map(([each, weight]) => `${each} (${weight})`).join(", ")}</td></tr>`)}
    </tbody></table></div>`;
}

export function Entities() {
  const loaded = useLoaded(load, []);
  const graph = useMemo(() => loaded.value && graphOf(loaded.value), [loaded.value]);
  return html`<h1 tabindex="-1">Names</h1>
    <${Loaded} of=${loaded}>${(records) => !graph?.nodes.length ? html`<p>No memory names anybody.</p>`
      : html`<p class="quiet">Of the latest ${plural(records.length, "memory", "memories")}, the
          ${" "}${plural(graph.nodes.length, "name")} that most of them have</p>
        <${Picture} graph=${graph} /><${Table} graph=${graph} />`}<//>`;
}
