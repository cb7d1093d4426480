// What a team's learning is watched by.

import { read } from "./api.js";
import { Loaded, html, useLoaded } from "./parts.js";

const shown = (value) => value === null ? "nothing to compute it from"
  : typeof value === "number" ? value.toLocaleString(undefined, { maximumFractionDigits: 2 })
  : typeof value === "object" ? Object.entries(value).map(([name, count]) => `${name}: ${count}`).join(", ") || "none"
  : String(value);
const words = (name) => name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());

export function MetricsPage() {
  const loaded = useLoaded((signal) => read("cards/metrics", {}, signal), []);
  return html`<h1 tabindex="-1">Metrics of cards</h1>
    <${Loaded} of=${loaded}>${({ alerts, ...metrics }) => html`
      ${alerts.map((each) => html`<p class="failure" key=${each.metric}><strong>${each.level}</strong> ${each.message}</p>`)}
      <div class="scrolls" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th scope="col">Metric</th><th scope="col">Now</th></tr></thead><tbody>
        ${Object.entries(metrics).map(([name, value]) => html`<tr key=${name}><th scope="row">${words(name)}</th>
          <td>${shown(value)}</td></tr>`)}</tbody></table></div>`}<//>`;
}
