// The memories of a user: the list, and search while typing.

import { useEffect, useState } from "preact/hooks";
import { change, part, read } from "./api.js";
import { Button, Failure, Loaded, Pages, Search, Time, go, html, note, plural, say, useAction, useCalm, useLoaded }
  from "./parts.js";

const SIZE = 50;
const FOUND = 20;
const MOST_THEN = 1000; // of another time, all at once
const last = { opened: "", query: "", offset: 0, retired: false, then: {} }; // where a reader was, to come back to it

function Row({ record }) {
  const { key, live, at, memory, similarity, version } = record;
  const opened = () => { last.opened = key; };
  return html`<li class="row"><a href="#/memories/${part(key)}" id="m-${key}" onClick=${opened}>${memory.content}</a>
    <p class="quiet"><code title=${key}>${key.slice(0, 8)}</code> <span>${memory.kind}</span>
    <span>${version > 1 ? "changed" : "since"} <${Time} at=${at} /></span>
    ${live ? "" : html`<span class="mark">retired</span>`}
    ${memory.since ? html`<span>from ${memory.since}</span>` : ""}
    ${memory.until ? html`<span>until ${memory.until}</span>` : ""}
    ${memory.flag || memory.unclear ? html`<span class="mark">look at it</span>` : ""}
    ${memory.may_contradict.length ? html`<span class="mark">may contradict another</span>` : ""}
    ${memory.read_by === "rules" ? html`<span>read by rules</span>` : ""}
    ${similarity ? html`<span>similarity ${similarity.toFixed(2)}</span>` : ""}</p></li>`;
}

function arrows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const links = [...event.currentTarget.querySelectorAll("li > a")];
  const next = links.indexOf(document.activeElement) + step;
  event.preventDefault();
  (links[next] ?? (next < 0 && document.getElementById("search")))?.focus?.();
}

function Rows({ records, label }) {
  useEffect(() => {
    const row = document.getElementById(`m-${last.opened}`);
    last.opened = "";
    if (row) requestAnimationFrame(() => row.focus());
  }, [records]);
  return html`<ol class="rows" aria-label=${label} onKeyDown=${arrows}>
    ${records.map((each) => html`<${Row} key=${each.key} record=${each} />`)}</ol>`;
}

async function page(offset, retired, signal) {
  const query = { limit: SIZE, offset, include_retired: retired, newest_first: true };
  const counted = read("memories/count", { include_retired: retired }, signal);
  const [count, records] = await Promise.all([counted, read("memories", query, signal)]);
  return { count, records };
}

function All({ offset, retired, goTo, turn }) {
  const loaded = useLoaded((signal) => page(offset, retired, signal), [offset, retired, turn]);
  return html`<${Loaded} of=${loaded}>${({ count, records }) => count === 0
    ? html`<p>Nothing is remembered yet. Talk to the chatbot, or add a memory below.</p>`
    : html`<p class="quiet">${plural(count, "memory", "memories")}, the last remembered first</p>
      <${Rows} records=${records} label="Memories" />
      <${Pages} offset=${offset} size=${SIZE} count=${count} go=${goTo} />`}<//>`;
}

function Then({ then, turn }) {
  const loaded = useLoaded((signal) => read("memories", { limit: MOST_THEN, ...then }, signal), [then, turn]);
  return html`<${Loaded} of=${loaded}>${(records) => html`
    <p class="quiet">${plural(records.length, "memory", "memories")} at that time, the oldest first</p>
    <${Rows} records=${records} label="Memories" />`}<//>`;
}

function Times({ then, set }) {
  const given = (name, value) => set(Object.fromEntries(Object.entries({ ...then, [name]: value }).filter(([, each]) => each)));
  return html`<details open=${Object.keys(then).length > 0}><summary>Another time</summary><p>
    <label>What holds on <input type="date" value=${then.at ?? ""} onChange=${(e) => given("at", e.target.value)} /></label>
    <label>What was remembered at the end of <input type="date" value=${then.as_of?.slice(0, 10) ?? ""}
      onChange=${(e) => given("as_of", e.target.value && `${e.target.value}T23:59:59`)} /></label></p></details>`;
}

function Results({ query, then, turn }) {
  const load = (signal) => read("memories/search", { query, limit: FOUND, ...then }, signal);
  const loaded = useLoaded(load, [query, then, turn]);
  useEffect(() => {
    if (loaded.value && !loaded.loading) say(`${plural(loaded.value.length, "result")} for ${query}`);
  }, [loaded.value, loaded.loading]);
  return html`<div aria-busy=${loaded.loading}><${Loaded} of=${loaded}>${(records) => records.length === 0
    ? html`<p>No memory fits.</p>`
    : html`<${Rows} records=${records} label="Results" />`}<//></div>`;
}

function written(now) {
  const beside = now.beside.map((each) => each.memory.content).join(" ");
  const said = now.is_new ? "Added." : "It was remembered already, word for word: nothing was written.";
  return beside ? `${said} It may contradict, or repeat in other words: ${beside}` : said;
}

function Add({ done }) {
  const [text, set] = useState("");
  const action = useAction(() => { set(""); done(); });
  const send = (event) => {
    event.preventDefault();
    action.run(() => change("memories", { content: text }), written);
  };
  return html`<details><summary>Add a memory</summary><form onSubmit=${send}>
    <label for="new">What is to be remembered</label>
    <textarea id="new" rows="3" required maxlength="8000" value=${text} onInput=${(e) => set(e.target.value)}></textarea>
    <p class="buttons"><button disabled=${action.busy}>Add</button></p>
    <${Failure} error=${action.error} /></form></details>`;
}

const undone = (record) => !record ? "There is no change to take back."
  : record.live ? `Taken back. It says again: ${record.memory.content}` : `Taken back, and retired: ${record.memory.content}`;

export function Memories({ query: given }) {
  const [query, setQuery] = useState(given.get("q") ?? last.query);
  const [offset, setOffset] = useState(last.offset);
  const [retired, setRetired] = useState(last.retired);
  const [then, setThen] = useState(last.then);
  const [turn, next] = useState(0);
  const again = () => next((before) => before + 1);
  const action = useAction(again);
  const calm = useCalm(query.trim());
  const isThen = Object.keys(then).length > 0;
  Object.assign(last, { query, offset, retired, then });
  useEffect(() => note(calm ? `memories?q=${part(calm)}` : "memories"), [calm]);
  const first = () => document.querySelector(".rows a");
  const turnTo = (where) => { setOffset(where); scrollTo(0, 0); };
  return html`<h1 tabindex="-1">Memories</h1>
    <${Search} label="Search memories" value=${query} onInput=${setQuery} onDown=${() => first()?.focus()}
      onEnter=${() => first()?.click()} />
    <${Times} then=${then} set=${setThen} />
    ${calm ? html`<${Results} query=${calm} then=${then} turn=${turn} />`
      : isThen ? html`<${Then} then=${then} turn=${turn} />`
      : html`<${All} offset=${offset} retired=${retired} goTo=${turnTo} turn=${turn} />`}
    <section aria-label="More"><p class="buttons">
      <${Button} action=${action} work=${() => change("memories/undo")} said=${undone}>Undo the latest change<//>
      <label><input type="checkbox" checked=${retired}
        onChange=${(e) => { setRetired(e.target.checked); setOffset(0); }} /> Also list retired ones</label></p>
      <${Failure} error=${action.error} />
      <${Add} done=${again} /></section>`;
}
