// Messages that wait to be remembered, and those that were set aside.

import { useState } from "preact/hooks";
import { change, part, read } from "./api.js";
import { Button, Confirm, Facts, Failure, Loaded, Time, html, plural, useAction, useLoaded } from "./parts.js";

function Letter({ letter, action, drop }) {
  const path = `inbox/${part(letter.message_id)}`;
  return html`<li class="row"><article aria-label="Message">
    <p>${letter.message}</p>
    <p class="quiet"><span class="mark">${letter.status}</span> <${Time} at=${letter.time} />
      <code>${letter.message_id}</code></p>
    <${Facts} of=${[["Tried", letter.tries ? plural(letter.tries, "time") : ""], ["Went wrong", letter.error],
      ["The model's last reply", letter.reply && html`<pre>${letter.reply}</pre>`]]} />
    <p class="buttons">${letter.tries > 0 && html`<${Button} action=${action} work=${() => change(`${path}/retry`)}
      said=${() => "It waits again."}>Retry<//>`}
      <button type="button" class="danger" onClick=${() => drop(letter)}>Drop…</button></p></article></li>`;
}

export function InboxPage() {
  const loaded = useLoaded((signal) => read("inbox", {}, signal), []);
  const [dropped, drop] = useState(null);
  const action = useAction(loaded.again);
  const yes = () => action.run(() => change(`inbox/${part(dropped.message_id)}/drop`),
    () => "Dropped: it is not remembered.").then(() => drop(null));
  return html`<h1 tabindex="-1">Inbox</h1>
    <p class="quiet">Messages that wait to be remembered. One that failed five times is set aside until you decide.</p>
    <${Failure} error=${action.error} />
    ${dropped && html`<${Confirm} title="Drop this message?" yes="Drop it" onYes=${yes} onNo=${() => drop(null)}>
      <p>It will not be remembered: “${dropped.message}”</p><//>`}
    <${Loaded} of=${loaded}>${(letters) => letters.length === 0 ? html`<p>Nothing waits.</p>`
      : html`<ol class="rows" aria-label="Messages">${letters.map((each) =>
        html`<${Letter} key=${each.message_id} letter=${each} action=${action} drop=${drop} />`)}</ol>`}<//>`;
}
