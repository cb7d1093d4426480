// Disputes against cards: both approaches, how they were tested, and a person's decision.

import { useEffect, useState } from "preact/hooks";
import { change, part, read } from "./api.js";
import { Facts, Failure, Loaded, Time, focusHeading, html, useAction, useLoaded } from "./parts.js";

export function Disputes() {
  const loaded = useLoaded((signal) => read("disputes", {}, signal), []);
  return html`<h1 tabindex="-1">Disputes</h1>
    <${Loaded} of=${loaded}>${(found) => found.length === 0 ? html`<p>Nothing is disputed.</p>`
      : html`<ol class="rows" aria-label="Disputes">${[...found].reverse().map((each) => html`<li class="row" key=${each.id}>
        <a href="#/disputes/${part(each.id)}">${each.old.claim} ↔ ${each.new.claim}</a>
        <p class="quiet"><span class="mark">${each.status}</span> <${Time} at=${each.opened_at} />
          <span>by ${each.opened_by}</span></p></li>`)}</ol>`}<//>`;
}

function Side({ title, of, id }) {
  return html`<section aria-labelledby=${id}><h2 id=${id}>${title}</h2><p>${of.claim}</p>
    ${of.solution && html`<pre>${of.solution}</pre>`}${of.task && html`<p class="quiet">from ${of.task}</p>`}</section>`;
}

function Round({ of, number }) {
  return html`<section aria-labelledby="round-${number}"><h2 id="round-${number}">Round ${number}</h2>
    <p>${of.recommendation}: ${of.rationale}</p>
    <div class="scrolls" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th scope="col">Task</th><th scope="col">Card right</th>
      <th scope="col">Finding right</th><th scope="col">Better</th></tr></thead><tbody>
      ${of.trials.map((each) => html`<tr key=${each.task}><td>${each.task}</td><td>${each.old_correct ? "yes" : "no"}</td>
        <td>${each.new_correct ? "yes" : "no"}</td><td>${each.winner}</td></tr>`)}</tbody></table></div></section>`;
}

const CHOICES = [["keep_old", "Keep the card"], ["deprecate_old", "The finding replaces the card"],
  ["merge", "Both are right, each under its condition"]];

function Decide({ dispute, again }) {
  const [given, set] = useState({ decision: "keep_old", reason: "", by: "", claim: "", condition: "", pattern: "" });
  const action = useAction(again);
  const field = (name, label, required = false) => html`<label for=${name}>${label}</label>
    <input id=${name} required=${required} maxlength="2000" value=${given[name]}
      onInput=${(event) => set({ ...given, [name]: event.target.value })} />`;
  const send = (event) => {
    event.preventDefault();
    const { condition, pattern, ...plain } = given;
    const verdict = { ...plain, rules: condition ? [{ condition, pattern }] : [] };
    action.run(() => change(`disputes/${part(dispute.id)}/decide`, { verdict }), () => "Decided.").then(focusHeading);
  };
  return html`<form onSubmit=${send} aria-label="Decide"><fieldset><legend>Your decision</legend>
    ${CHOICES.map(([name, label]) => html`<p key=${name}><label><input type="radio" name="decision"
      checked=${given.decision === name} onChange=${() => set({ ...given, decision: name })} /> ${label}</label></p>`)}
    </fieldset>
    ${field("reason", "Why", true)}${field("by", "Who decides", true)}
    ${given.decision === "merge" && html`${field("claim", "What the card then claims", true)}
      ${field("condition", "When the finding holds", true)}${field("pattern", "What to do then", true)}`}
    <p class="buttons"><button disabled=${action.busy}>Decide</button></p><${Failure} error=${action.error} /></form>`;
}

function One({ dispute, again }) {
  const { resolution } = dispute;
  return html`<h1 tabindex="-1">Dispute: ${dispute.status}</h1>
    <${Facts} of=${[["Card", html`<a href="#/cards/${part(dispute.card_id)}">${dispute.card_id}</a>`],
      ["Opened", html`<${Time} at=${dispute.opened_at} />`], ["By", dispute.opened_by],
      ["Conflict", dispute.conflict_type],
      ["Decided", resolution && `${resolution.decision} by ${resolution.by}: ${resolution.reason}`]]} />
    <div class="sides"><${Side} id="old" title="The card" of=${dispute.old} />
      <${Side} id="new" title="The finding" of=${dispute.new} /></div>
    ${dispute.rounds.map((each, at) => html`<${Round} key=${at} of=${each} number=${at + 1} />`)}
    ${dispute.status !== "resolved" && html`<${Decide} dispute=${dispute} again=${again} />`}`;
}

export function DisputePage({ id }) {
  const loaded = useLoaded((signal) => read(`disputes/${part(id)}`, {}, signal), [id]);
  const isThere = loaded.value !== undefined;
  useEffect(() => { if (isThere) focusHeading(); }, [isThere]);
  return html`<p><a href="#/disputes">Back to the disputes</a></p>
    <${Loaded} of=${loaded}>${(dispute) => html`<${One} dispute=${dispute} again=${loaded.again} />`}<//>`;
}
