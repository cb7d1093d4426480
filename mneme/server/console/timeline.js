// The latest changes of a user's memories.

import { useState } from "preact/hooks";
import { part, read } from "./api.js";
import { Loaded, Time, html, plural, useLoaded } from "./parts.js";

const STEP = 50, MOST = 1000;
const EVENTS = { insert: "remembered", update: "changed", retire: "retired", restore: "brought back" };

export function Timeline() {
  const [limit, setLimit] = useState(STEP);
  const loaded = useLoaded((signal) => read("memories/changes", { limit }, signal), [limit]);
  return html`<h1 tabindex="-1">Timeline</h1>
    <${Loaded} of=${loaded}>${(versions) => html`<p class="quiet">The latest ${plural(versions.length, "change")}</p>
      <ol class="rows" aria-label="Changes">${versions.map((each) => html`<li class="row" key=${each.key + each.version}>
        <a href="#/memories/${part(each.key)}">${each.value.content}</a>
        <p class="quiet"><${Time} at=${each.at} /> <span>${EVENTS[each.event]} by ${each.change.actor}</span>
          <span>version ${each.version}</span> <span>${each.change.reason}</span></p></li>`)}</ol>
      ${versions.length === limit && limit < MOST && html`<p class="buttons"><button type="button"
        onClick=${() => setLimit(Math.min(MOST, limit + 4 * STEP))}>Show more</button></p>`}`}<//>`;
}
