// A team's knowledge cards, with what they rest on, and what a person decides about them.

import { useEffect, useState } from "preact/hooks";
import { change, part, read } from "./api.js";
import { Button, Diff, Facts, Failure, Loaded, Pages, Search, Time, focusHeading, html, note, plural, say, useAction,
  useCalm, useLoaded } from "./parts.js";

const SIZE = 50;
const STATUSES = ["provisional", "verified", "disputed", "deprecated", "archived"];
const percent = (share) => `${Math.round(100 * share)} %`;

function Row({ card, score }) {
  const { success_count: good, failure_count: bad } = card.evidence;
  return html`<li class="row"><a href="#/cards/${part(card.id)}">${card.claim}</a>
    <p class="quiet"><span class="mark">${card.status}</span> <code>${card.id}</code>
      <span>confidence ${percent(card.confidence)}</span> <span>${good} of ${good + bad} tasks succeeded</span>
      ${card.scope && html`<span>${card.scope}</span>`} ${score && html`<span>score ${score.toFixed(2)}</span>`}</p></li>`;
}

function Rows({ found, label }) {
  if (found.length === 0) return html`<p>No card is here.</p>`;
  return html`<ol class="rows" aria-label=${label}>${found.map(({ card, score }) =>
    html`<${Row} key=${card.id} card=${card} score=${score} />`)}</ol>`;
}

async function page(status, offset, signal) {
  const some = await read("cards", { status, offset, limit: SIZE + 1 }, signal);
  return some.map((card) => ({ card }));
}

function All({ status, offset, goTo }) {
  const loaded = useLoaded((signal) => page(status, offset, signal), [status, offset]);
  return html`<${Loaded} of=${loaded}>${(found) => html`<${Rows} found=${found.slice(0, SIZE)} label="Cards" />
    <${Pages} offset=${offset} size=${SIZE} count=${offset + found.length} go=${goTo} />`}<//>`;
}

function Results({ task }) {
  const loaded = useLoaded((signal) => read("cards/search", { task, limit: 20 }, signal), [task]);
  useEffect(() => {
    if (loaded.value && !loaded.loading) say(`${plural(loaded.value.length, "result")} for ${task}`);
  }, [loaded.value, loaded.loading]);
  return html`<${Loaded} of=${loaded}>${(found) => html`<${Rows} found=${found} label="Results" />`}<//>`;
}

export function Cards({ query: given }) {
  const [query, setQuery] = useState(given.get("q") ?? "");
  const [status, setStatus] = useState(given.get("status") ?? "");
  const [offset, setOffset] = useState(0);
  const calm = useCalm(query.trim());
  useEffect(() => note(`cards?${new URLSearchParams({ q: calm, status })}`), [calm, status]);
  const first = () => document.querySelector(".rows a");
  return html`<h1 tabindex="-1">Cards</h1>
    <${Search} label="Search for a task" value=${query} onInput=${setQuery} onDown=${() => first()?.focus()}
      onEnter=${() => first()?.click()} />
    ${calm ? html`<${Results} task=${calm} />` : html`
      <p><label for="status">Status</label> <select id="status" value=${status}
        onChange=${(event) => { setStatus(event.target.value); setOffset(0); }}><option value="">all</option>
        ${STATUSES.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></p>
      <${All} status=${status} offset=${offset} goTo=${setOffset} />`}`;
}

const QUESTIONS = [["solved", "It solved the task"], ["faster_or_novel", "It is faster, or new"],
  ["no_new_failures", "It brings no new failures"], ["reusable", "It can be used again"]];

function Promote({ card, action, close }) {
  const [rubric, set] = useState(Object.fromEntries(QUESTIONS.map(([name]) => [name, false])));
  const [by, setBy] = useState("");
  const [reason, setReason] = useState("");
  const send = (event) => {
    event.preventDefault();
    const body = { approval: { by, approved: true, rubric, reason }, reason };
    action.run(() => change(`cards/${part(card.id)}/promote`, body), () => "Promoted: it is verified.");
  };
  return html`<form onSubmit=${send} aria-label="Promote the card">
    <fieldset><legend>What it rests on</legend>${QUESTIONS.map(([name, label]) => html`<p key=${name}><label>
      <input type="checkbox" checked=${rubric[name]} onChange=${(e) => set({ ...rubric, [name]: e.target.checked })} />
      ${" "}${label}</label></p>`)}</fieldset>
    <label for="by">Who approves</label>
    <input id="by" required maxlength="100" value=${by} onInput=${(e) => setBy(e.target.value)} />
    <label for="reason">Why</label>
    <input id="reason" maxlength="2000" value=${reason} onInput=${(e) => setReason(e.target.value)} />
    <p class="buttons"><button disabled=${action.busy}>Promote</button>
      <button type="button" onClick=${close}>Cancel</button></p></form>`;
}

// What a person reads of a card, as one text, so that versions can be compared by word.
function told(card) {
  const lines = [card.claim, card.rationale, `status: ${card.status}`, `confidence: ${percent(card.confidence)}`,
    ...card.rules.map((each) => `when ${each.condition}: ${each.pattern}`),
    ...card.failure_modes.map((each) => `fails when ${each.condition}: ${each.impact} ${each.mitigation}`)];
  return lines.filter(Boolean).join("\n");
}

function Versions({ card, history, action }) {
  const newest = [...history].reverse();
  const back = (number) => () => change(`cards/${part(card.id)}/rollback`, { to_version: number });
  return html`<section aria-labelledby="versions"><h2 id="versions">Versions</h2><ol class="versions" reversed>
    ${newest.map((each, at) => {
      const before = newest[at + 1] ?? each, number = each.card.version;
      return html`<li key=${number}><article aria-label="Version ${number}"><h3>Version ${number}</h3>
        <p class="quiet"><${Time} at=${each.at} /> by ${each.actor}${each.model && ` (${each.model})`}</p>
        <${Diff} older=${told(before.card)} newer=${told(each.card)} />
        <${Facts} of=${[["Why", each.reason], ["Tasks", each.tasks.join(", ")]]} />
        ${at > 0 && html`<p class="buttons"><${Button} action=${action} work=${back(number)}
          said=${(now) => `Version ${now.version} is as version ${number} was.`}>Roll back to version ${number}<//></p>`}
        </article></li>`;
    })}</ol></section>`;
}

function Evidence({ of }) {
  return html`<section aria-labelledby="evidence"><h2 id="evidence">Evidence</h2>
    <p>${plural(of.success_count, "success", "successes")}, ${plural(of.failure_count, "failure")}.</p>
    ${of.recent.length > 0 && html`<div class="scrolls" tabindex="0" role="group" aria-label="Table"><table><caption class="unseen">The latest tasks</caption>
      <thead><tr><th scope="col">Task</th><th scope="col">Outcome</th><th scope="col">Confidence</th></tr></thead>
      <tbody>${of.recent.map((each) => html`<tr key=${each.task}><td>${each.task}</td>
        <td>${each.success ? "success" : "failure"}</td><td>${percent(each.confidence)}</td></tr>`)}</tbody></table></div>`}
  </section>`;
}

function Actions({ card, action, promote }) {
  const path = `cards/${part(card.id)}`;
  const gone = ["deprecated", "archived"].includes(card.status);
  const [reason, setReason] = useState("");
  const act = (name, label, said) => html`<${Button} action=${action} work=${() => change(`${path}/${name}`, { reason })}
    said=${() => said}>${label}<//>`;
  return html`<p><label for="act-reason">Reason for what you do</label>
      <input id="act-reason" maxlength="2000" value=${reason} onInput=${(e) => setReason(e.target.value)} /></p>
    <p class="buttons">
    ${card.status === "provisional" && html`<button type="button" onClick=${promote}>Promote…</button>`}
    ${gone ? act("restore", "Restore", "Restored.") : act("deprecate", "Deprecate", "Deprecated: it is not shown any more.")}
    ${card.flags.length > 0 && act("clear-flag", "It may be shown", "The flag is cleared.")}</p>`;
}

function One({ card, history, disputes, again }) {
  const [promoting, promote] = useState(false);
  const close = () => { promote(false); focusHeading(); };
  const action = useAction(() => { close(); again(); });
  const list = (items) => items.length > 0 && html`<ul>${items.map((each, at) => html`<li key=${at}>${each}</li>`)}</ul>`;
  return html`<h1 tabindex="-1" class="content">${card.claim}</h1>
    <p><span class="mark">${card.status}</span></p>
    <${Actions} card=${card} action=${action} promote=${() => promote(true)} /><${Failure} error=${action.error} />
    ${promoting && html`<${Promote} card=${card} action=${action} close=${close} />`}
    <${Facts} of=${[["Id", html`<code>${card.id}</code>`], ["Why", card.rationale], ["Scope", card.scope],
      ["Tags", card.tags.join(", ")], ["Confidence", percent(card.confidence)],
      ["Rules", list(card.rules.map((each) => `When ${each.condition}: ${each.pattern}`))],
      ["Fails", list(card.failure_modes.map((each) => `When ${each.condition}: ${each.impact} ${each.mitigation}`))],
      ["Tried before", list(card.deprecated_approaches.map((each) => `${each.approach}${each.condition ? ` (when ${each.condition})` : ""}: ${each.reason}`))],
      ["Owner", card.owner], ["Valid for", card.valid_for],
      ["Expires", card.expires_at && html`<${Time} at=${card.expires_at} />`],
      ["Ratings", list(card.ratings.map((each) => `${each.by}: ${each.good ? "it served" : "it did not serve"} ${each.comment}`))],
      ["Made by", card.provenance.created_by], ["Deprecated", card.deprecated_because],
      ["Superseded by", card.superseded_by], ["Flags", list(card.flags)],
      ["Disputes", list(disputes.map((each) => html`<a href="#/disputes/${part(each.id)}">${each.status}:
        ${" "}${each.new.claim}</a>`))],
    ].filter(([, shown]) => shown)} />
    <${Evidence} of=${card.evidence} />
    <${Versions} card=${card} history=${history} action=${action} />`;
}

export function CardPage({ id }) {
  const load = async (signal) => {
    const path = `cards/${part(id)}`;
    const [card, history] = await Promise.all([read(path, {}, signal), read(`${path}/history`, {}, signal)]);
    return { card, history, disputes: await read("disputes", { card_id: card.id }, signal) };
  };
  const loaded = useLoaded(load, [id]);
  const isThere = loaded.value !== undefined;
  useEffect(() => { if (isThere) focusHeading(); }, [isThere]);
  return html`<p><a href="#/cards">Back to the cards</a></p>
    <${Loaded} of=${loaded}>${(all) => html`<${One} ...${all} again=${loaded.again} />`}<//>`;
}
