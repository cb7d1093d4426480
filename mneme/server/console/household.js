// Household runs, played again step by step: who is where, holds what, does what, and what was decided.

import { useEffect, useState } from "preact/hooks";
import { part, read, session } from "./api.js";
import { Facts, Failure, Loaded, focusHeading, html, plural, useLoaded } from "./parts.js";

const PACE = 700; // milliseconds that each step is shown

export function Runs() {
  const loaded = useLoaded((signal) => read("household/runs", {}, signal), []);
  return html`<h1 tabindex="-1">Household</h1>
    <${Loaded} of=${loaded}>${(found) => found.length === 0
      ? html`<p>${session.key ? "You have played nothing yet" : "Nothing has been played yet"}.
        Play one on the server's machine: <code>mneme household run</code></p>
        ${session.key && html`<p>Set <code>MNEME_KEY</code> to your key there, so that the run is yours. Runs that were
          played without a key are nobody's: <code>mneme household list</code> shows them on that machine.</p>`}`
      : html`<ol class="rows" aria-label="Runs">${found.map((each) => html`<li class="row" key=${each.run}>
        <a href="#/household/${part(each.run)}">${each.run}</a><p class="quiet"><span class="mark">${each.outcome}</span>
        <span>${each.task}</span> <span>${each.agents && plural(each.agents, "agent")}</span>
        <span>${each.steps !== null && plural(each.steps, "step")}</span></p></li>`)}</ol>`}<//>`;
}

function Rooms({ rooms, members }) {
  return html`<ul class="rooms" aria-label="Rooms">${rooms.map((room) => {
    const here = members.filter((each) => each.room === room);
    return html`<li key=${room} class=${here.length ? "taken" : ""}><strong>${room}</strong>
      <span>${here.map(({ name }) => name).join(", ") || "nobody"}</span></li>`;
  })}</ul>`;
}

function Members({ members, decision }) {
  return html`<div class="scrolls" tabindex="0" role="group" aria-label="Table"><table><caption class="unseen">The team after this step</caption><thead><tr>
    <th scope="col">Who</th><th scope="col">Is in</th><th scope="col">Holds</th><th scope="col">Does</th>
    <th scope="col">Proposed</th><th scope="col">Is to do</th></tr></thead><tbody>${members.map((each, at) => html`
      <tr key=${each.name}><th scope="row">${each.name}</th><td>${each.room}</td>
      <td>${each.holds.join(", ") || "nothing"}</td><td>${each.does}</td><td>${decision?.proposals[at]}</td>
      <td>${decision?.allocation[at] ?? decision?.proposals[at]}</td></tr>`)}</tbody></table></div>`;
}

function Moment({ replay, step }) {
  const before = replay.decisions.filter((each) => each.at <= step);
  const decision = before.findLast((each) => each.proposals.length > 0);
  const synopsis = before.findLast((each) => each.synopsis)?.synopsis;
  return html`<${Rooms} rooms=${replay.rooms} members=${replay.steps[step].members} />
    <${Members} members=${replay.steps[step].members} decision=${decision} />
    <${Facts} of=${[...replay.steps[step].goals.map(({ what, done, count }) => [what, `${done} of ${count}`]),
      ["Open", replay.steps[step].opened.join(", ")], ["The manager's reason", decision?.reason],
      ["The manager's synopsis", synopsis]]} />`;
}

// What each member had before its eyes: asked of the server step by step, so that none waits for all.
function Eyes({ run, step }) {
  const loaded = useLoaded((signal) => read(`household/runs/${part(run)}/sights/${step}`, {}, signal), [run, step]);
  return html`<${Loaded} of=${loaded}>${(sights) => html`<div class="sights">${sights.map(({ name, picture }) => html`
    <figure key=${name}><img src=${picture} width="384" height="128" alt="What ${name} sees: colours, depth and segments" />
      <figcaption>${name} sees</figcaption></figure>`)}</div>`}<//>`;
}

function One({ replay }) {
  const last = replay.steps.length - 1;
  const [at, go] = useState(0);
  const [playing, play] = useState(false);
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setTimeout(() => (at < last ? go(at + 1) : play(false)), PACE);
    return () => clearTimeout(timer);
  }, [playing, at]);
  const jump = (where) => { play(false); go(Math.max(0, Math.min(last, where))); };
  const begin = () => { if (at === last) go(0); play(!playing); };
  const { task, outcome, at_least: least, answered_by: who } = replay.played;
  const gap = replay.missing.length > 0 && { message: `${plural(replay.missing.length, "step")} of this run are lost.` };
  return html`<h1 tabindex="-1">${task}</h1>
    <${Facts} of=${[["Run", replay.played.run], ["Outcome", outcome], ["No team needs fewer steps than", least],
      ["Answered by", who]]} /><${Failure} error=${gap} />
    <section aria-label="Replay"><p class="buttons">
      <button type="button" disabled=${at === 0} onClick=${() => jump(at - 1)}>Previous step</button>
      <button type="button" disabled=${last === 0} onClick=${begin}>${playing ? "Pause" : "Play"}</button>
      <button type="button" disabled=${at === last} onClick=${() => jump(at + 1)}>Next step</button></p>
      <p><label for="step">Step</label> <input id="step" type="range" min="0" max=${last} value=${at}
        aria-valuetext="Step ${replay.steps[at].step} of ${replay.steps[last].step}"
        onInput=${(event) => jump(Number(event.target.value))} />
        <output for="step">${replay.steps[at].step} of ${replay.steps[last].step}</output></p>
      ${replay.has_eyes && html`<${Eyes} run=${replay.played.run} step=${replay.steps[at].step} />`}
      <${Moment} replay=${replay} step=${at} /></section>`;
}

export function RunPage({ id }) {
  const loaded = useLoaded((signal) => read(`household/runs/${part(id)}`, {}, signal), [id]);
  const isThere = loaded.value !== undefined;
  useEffect(() => { if (isThere) focusHeading(); }, [isThere]);
  return html`<p><a href="#/household">Back to the runs</a></p>
    <${Loaded} of=${loaded}>${(replay) => html`<${One} replay=${replay} />`}<//>`;
}
