// Discussions: their turns, and what each agent kept in its memory after each.

import { useEffect, useState } from "preact/hooks";
import { part, read } from "./api.js";
import { Diff, Facts, Loaded, Time, focusHeading, html, plural, useLoaded } from "./parts.js";

export function DiscussionsPage() {
  const loaded = useLoaded((signal) => read("discussions", { limit: 1000 }, signal), []);
  return html`<h1 tabindex="-1">Discussions</h1>
    <${Loaded} of=${loaded}>${(found) => found.length === 0 ? html`<p>Nothing has been discussed yet.</p>`
      : html`<ol class="rows" aria-label="Discussions">${[...found].reverse().map((each) => html`<li class="row"
        key=${each.id}><a href="#/discussions/${part(each.id)}">${each.task}</a>
        <p class="quiet"><span class="mark">${each.ended || "not ended"}</span> <code>${each.id}</code>
          <span>${plural(each.turns, "turn")}</span> <${Time} at=${each.at} /></p></li>`)}</ol>`}<//>`;
}

const shown = (memory) => JSON.stringify(memory, null, 2).replace(/[{}[\]",]/g, "").replace(/^\s*\n/gm, "");

function Memories({ discussion, agent }) {
  const path = `discussions/${part(discussion)}/memories/${part(agent)}/history`;
  const loaded = useLoaded((signal) => read(path, {}, signal), [path]);
  const [at, set] = useState(null);
  return html`<${Loaded} of=${loaded}>${(versions) => {
    const chosen = versions.findIndex((each) => each.version === (at ?? versions.at(-1).version));
    const now = versions[chosen], before = versions[chosen - 1] ?? now;
    return html`<p><label for="turn">After turn</label> <select id="turn" value=${now.version}
        onChange=${(event) => set(Number(event.target.value))}>${versions.map((each) =>
          html`<option key=${each.version} value=${each.version}>${each.turn}</option>`)}</select></p>
      <p class="quiet"><${Time} at=${now.at} /> ${now.reason}</p>
      <${Diff} older=${shown(before.memory)} newer=${shown(now.memory)} />`;
  }}<//>`;
}

function Agents({ discussion, speakers }) {
  const [agent, choose] = useState(speakers[0] ?? "");
  if (!agent) return null;
  return html`<section aria-labelledby="memories"><h2 id="memories">Memories by turn</h2>
    <p><label for="agent">Agent</label> <select id="agent" value=${agent}
      onChange=${(event) => choose(event.target.value)}>${speakers.map((each) =>
        html`<option key=${each} value=${each}>${each}</option>`)}</select></p>
    <${Memories} key=${agent} discussion=${discussion} agent=${agent} /></section>`;
}

function One({ discussion, turns }) {
  const speakers = [...new Set(turns.filter((each) => !each.person).map((each) => each.speaker))];
  return html`<h1 tabindex="-1" class="content">${discussion.task}</h1>
    <${Facts} of=${[["Id", html`<code>${discussion.id}</code>`], ["Begun", html`<${Time} at=${discussion.at} />`],
      ["Ended", discussion.ended], ["Lacks", discussion.lacks], ["Memory", discussion.memory]]} />
    <${Agents} discussion=${discussion.id} speakers=${speakers} />
    <section aria-labelledby="turns"><h2 id="turns">Turns</h2><ol class="versions">${turns.map((each) =>
      html`<li key=${each.number}><article aria-label="Turn ${each.number}"><h3>${each.number}. ${each.title}
        ${each.person && " (a person)"}${each.accept && " – accepts"}${each.finalize && " – finalizes"}</h3>
        <p class="diff">${each.message}</p></article></li>`)}</ol></section>`;
}

export function DiscussionPage({ id }) {
  const load = async (signal) => {
    const path = `discussions/${part(id)}`;
    const [discussion, turns] = await Promise.all([read(path, {}, signal), read(`${path}/turns`, {}, signal)]);
    return { discussion, turns };
  };
  const loaded = useLoaded(load, [id]);
  const isThere = loaded.value !== undefined;
  useEffect(() => { if (isThere) focusHeading(); }, [isThere]);
  return html`<p><a href="#/discussions">Back to the discussions</a></p>
    <${Loaded} of=${loaded}>${(both) => html`<${One} ...${both} />`}<//>`;
}
