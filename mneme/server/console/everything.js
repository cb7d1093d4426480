// All that is remembered, whichever workflow learned it: one search, and the way of a record back and forward.

import { useEffect, useState } from "preact/hooks";
import { change, part, read, session } from "./api.js";
import { Button, Failure, Loaded, Search, Time, focusHeading, html, note, useAction, useCalm, useLoaded } from "./parts.js";

const BUDGET = 2000;
const team = () => session.team || "local";

function Found({ question }) {
  const load = (signal) => read("recall", { question, teams: team(), budget: BUDGET, include_stale: true }, signal);
  const loaded = useLoaded(load, [question]);
  return html`<${Loaded} of=${loaded}>${(found) => found.length === 0 ? html`<p>Nothing that is known bears on it.</p>`
    : html`<ol class="rows" aria-label="Results">${found.map((each) => html`<li class="row" key=${each.reference + each.part}>
      <a href="#/recall/${part(each.key)}">${each.text}</a>
      <p class="quiet"><span>${each.kind}</span> <span>${each.origin}</span> <span>score ${each.score.toFixed(2)}</span>
        ${each.stale ? html`<span class="mark">out of date</span> <span>${each.stale}</span>` : ""}</p></li>`)}</ol>`}<//>`;
}

function Stale() {
  const loaded = useLoaded((signal) => read("stale", { team: team() }, signal), []);
  return html`<section aria-labelledby="stale"><h2 id="stale">Out of date</h2><${Loaded} of=${loaded}>${(found) => found.length === 0
    ? html`<p>Everything rests on what holds.</p>`
    : html`<ol class="rows" aria-label="Out of date">${found.map((each) => html`<li class="row" key=${each.key}>
      <a href="#/recall/${part(each.key)}">${each.text || each.key}</a>
      <p class="quiet"><span>${each.kind}</span> <span>${each.stale}</span></p></li>`)}</ol>`}<//></section>`;
}

export function Everything({ query: given }) {
  const [question, set] = useState(given.get("q") ?? "");
  const calm = useCalm(question.trim());
  useEffect(() => note(calm ? `recall?q=${part(calm)}` : "recall"), [calm]);
  return html`<h1 tabindex="-1">Everything</h1>
    <p>Your facts, and what the team <strong>${team()}</strong> found out: cards, agreements, episodes, pairs.</p>
    <${Search} label="Ask everything" value=${question} onInput=${set} />
    ${calm && html`<${Found} question=${calm} />`}
    <${Stale} />`;
}

function Steps({ label, steps }) {
  return html`<section aria-label=${label}><h2>${label}</h2>${steps.length === 0 ? html`<p>Nothing.</p>`
    : html`<ol class="versions">${steps.map((each, at) => html`<li key=${at}><article aria-label="${each.kind} ${each.key.slice(0, 8)}">
      <h3>${each.text || each.kind}</h3>
      <p class="quiet"><span>${each.kind}</span> ${each.key && html`<a href="#/recall/${part(each.key)}"><code>${each.key.slice(0, 8)}</code></a>`}
        <span>${each.owner}</span> <${Time} at=${each.at} /> <span>${each.made}</span>
        ${each.said_in.length > 0 && html`<span>said in ${each.said_in.join(", ")}</span>`}
        ${each.stale && html`<span class="mark">out of date</span> <span>${each.stale}</span>`}</p></article></li>`)}</ol>`}</section>`;
}

function Settle({ record, again }) {
  const action = useAction(again);
  const [reason, set] = useState("");
  const settle = (keep) => () => change(`stale/${part(record.key)}/settle`, { keep, team: team(), reason });
  return html`<section aria-label="Settle it"><p>${record.stale}</p>
    <label>Reason <input value=${reason} onInput=${(event) => set(event.target.value)} /></label>
    <p class="buttons"><${Button} action=${action} work=${settle(true)} said=${() => "It holds all the same."}>It still holds<//>
      <${Button} action=${action} work=${settle(false)} said=${() => "Taken back."}>Take it back<//></p>
    <${Failure} error=${action.error} /></section>`;
}

export function TracePage({ id }) {
  const load = async (signal) => {
    const [back, forward] = await Promise.all([false, true].map((forward) =>
      read(`trace/${part(id)}`, { forward, team: team() }, signal)));
    return { record: back[0], back: back.slice(1), forward: forward.slice(1) };
  };
  const loaded = useLoaded(load, [id]);
  const isThere = loaded.value !== undefined;
  useEffect(() => { if (isThere) focusHeading(); }, [isThere]);
  return html`<p><a href="#/recall">Back to everything</a></p><${Loaded} of=${loaded}>${({ record, back, forward }) => html`
    <h1 tabindex="-1">${record.text || record.key}</h1>
    <p class="quiet"><span>${record.kind}</span> <code>${record.key}</code> <span>${record.owner}</span> <span>${record.made}</span></p>
    ${record.stale && html`<${Settle} record=${record} again=${loaded.again} />`}
    <${Steps} label="What it was made from" steps=${back} />
    <${Steps} label="What was made of it" steps=${forward} />`}<//>`;
}
