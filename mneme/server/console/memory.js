// One memory: what it says, where it comes from, its versions, and what can be done with it.

import { useEffect, useRef, useState } from "preact/hooks";
import { change, part, read } from "./api.js";
import { Button, Confirm, Diff, Facts, Failure, Loaded, Time, focusHeading, html, leave, plural, useAction, useLoaded }
  from "./parts.js";

function saved(now) {
  const beside = now.beside.map((each) => each.memory.content).join(" ");
  const said = `Saved as version ${now.version}.`;
  return beside ? `${said} It may contradict, or repeat in other words: ${beside}` : said;
}

function Edit({ record, action, close }) {
  const [text, setText] = useState(record.memory.content);
  const [reason, setReason] = useState("");
  const box = useRef();
  useEffect(() => box.current.focus(), []);
  const body = { content: text, reason, expected_version: record.version };
  const save = (event) => {
    event.preventDefault();
    action.run(() => change(`memories/${part(record.key)}/update`, body), saved);
  };
  const pressed = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(event);
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  };
  return html`<form onSubmit=${save} onKeyDown=${pressed} aria-label="Edit the memory">
    <label for="content">What is remembered</label>
    <textarea id="content" ref=${box} rows="4" required maxlength="8000" value=${text}
      onInput=${(event) => setText(event.target.value)}></textarea>
    <label for="reason">Why (kept in the history)</label>
    <input id="reason" maxlength="2000" value=${reason} onInput=${(event) => setReason(event.target.value)} />
    ${text === record.memory.content ? "" : html`<${Diff} older=${record.memory.content} newer=${text} />`}
    <p class="buttons"><button disabled=${action.busy || text === record.memory.content}>Save</button>
    <button type="button" onClick=${close}>Cancel</button></p></form>`;
}

const REACH = `It erases the memory with all its versions, the waiting messages that tell it, and each turn of your
conversations that told or repeats it. It does not reach backups and exports, traces that were sent to LangSmith, the
logs of a model server, or what another message says in other words.`;

function Forget({ record, action, close }) {
  const [whole, setWhole] = useState(false);
  const said = (gone) => [
    `Forgotten: ${plural(gone.versions, "version")}, ${plural(gone.turns, "turn")} in ${plural(gone.threads.length, "thread")}.`,
    ...gone.left.map((each) => `Not cleaned: ${each}.`),
    ...gone.backups.map((each) => `A backup may still hold it: ${each}.`),
  ].join(" ");
  const yes = () => action.run(() => change(`memories/${part(record.key)}/forget`, { whole }), said).then(close);
  return html`<${Confirm} title="Forget this memory?" yes="Forget it" onYes=${yes} onNo=${close}>
    <p><strong>It cannot be undone.</strong> ${REACH}</p>
    <p><label><input type="checkbox" checked=${whole} onChange=${(event) => setWhole(event.target.checked)} />
      Also delete the conversations in which it was said</label></p><//>`;
}

const EVENTS = { insert: "remembered", update: "changed", retire: "retired", restore: "brought back" };

function Source({ of }) {
  const parts = [of.thread && `conversation ${of.thread}`, ...of.messages.map((each) => `message ${each}`)];
  return parts.filter(Boolean).join(", ");
}

function VersionOf({ version, before, isLatest, roll }) {
  const { value, change: made } = version;
  return html`<li><article aria-label="Version ${version.version}">
    <h3>Version ${version.version}: ${EVENTS[version.event]}</h3>
    <p class="quiet"><${Time} at=${version.at} /> by ${made.actor}${made.model && ` (${made.model})`}</p>
    <${Diff} older=${before ? before.value.content : value.content} newer=${value.content} />
    <${Facts} of=${[
      ["Why", made.reason],
      ["Quote", value.quote && (!before || before.value.quote !== value.quote) && html`<q>${value.quote}</q>`],
      ["Source", Source({ of: made.source })],
      ["Look at it", value.flag],
    ].filter(([, shown]) => shown)} />
    ${isLatest ? "" : html`<p class="buttons">${roll}</p>`}</article></li>`;
}

function Versions({ history, record, action }) {
  const newest = [...history].reverse();
  const back = (number) => () => change(`memories/${part(record.key)}/rollback`,
    { to_version: number, expected_version: record.version });
  return html`<section aria-labelledby="versions"><h2 id="versions">Versions</h2><ol class="versions" reversed>
    ${newest.map((each, at) => html`<${VersionOf} key=${each.version} version=${each} before=${newest[at + 1]}
      isLatest=${at === 0} roll=${html`<${Button} action=${action} work=${back(each.version)}
        said=${(now) => `Version ${now.version} says what version ${each.version} said.`}>
        Roll back to version ${each.version}<//>`} />`)}</ol></section>`;
}

function Said({ memory }) {
  if (memory.statements.length < 2) return null;
  return html`<section aria-labelledby="said"><h2 id="said">Put together from</h2><ul>
    ${memory.statements.map((each, at) => html`<li key=${at}>${each.content} <q>${each.quote}</q>
      <span class="quiet"> <${Time} at=${each.time} /> ${each.message_id && `message ${each.message_id}`}</span></li>`)}
  </ul></section>`;
}

function Actions({ record, history, action, open }) {
  const path = `memories/${part(record.key)}`, newest = history.at(-1);
  const seen = { expected_version: record.version };
  const undone = (now) => !now ? "All changes are taken back already."
    : now.live ? `Undone. Version ${now.version} says: ${now.memory.content}` : "Undone: it is retired, not recalled any more.";
  return html`<p class="buttons">
    ${record.live ? html`<button type="button" onClick=${() => open("edit")}>Edit</button>` : ""}
    <${Button} action=${action} work=${() => change(`${path}/undo`, seen)} said=${undone}>Undo the latest change<//>
    ${record.live ? html`<${Button} action=${action} work=${() => change(`${path}/retire`)}
      said=${() => "Retired: it is not recalled any more. Undo brings it back."}>Retire<//>` : ""}
    ${record.memory.flag || record.memory.unclear || record.memory.may_contradict.length ? html`<${Button} action=${action}
      work=${() => change(`${path}/accept`)} said=${() => "Accepted as it stands."}>It is right<//>` : ""}
    <button type="button" class="danger" onClick=${() => open("forget")}>Forget…</button></p>`;
}

function One({ record, history, again }) {
  const [opened, open] = useState("");
  const close = () => { open(""); focusHeading(); };
  const action = useAction((result) => {
    if (result?.turns !== undefined) leave("memories");
    else { close(); again(); }
  });
  const { memory } = record;
  return html`<h1 tabindex="-1" class="content">${memory.content}</h1>
    ${record.live ? "" : html`<p class="mark">Retired: not recalled any more.</p>`}
    <${Actions} record=${record} history=${history} action=${action} open=${open} />
    <${Failure} error=${action.error} />
    ${opened === "edit" && html`<${Edit} record=${record} action=${action} close=${close} />`}
    ${opened === "forget" && html`<${Forget} record=${record} action=${action} close=${close} />`}
    <${Facts} of=${[
      ["Key", html`<code>${record.key}</code>`], ["Kind", memory.kind],
      ["Since", html`<${Time} at=${record.at} />`], ["Holds from", memory.since], ["Holds until", memory.until],
      ["Names", memory.entities.join(", ")],
      ["Quote", memory.quote && html`<q>${memory.quote}</q>`],
      ["Source", Source({ of: { thread: memory.thread, messages: [memory.message_id].filter(Boolean) } })],
      ["Look at it", memory.flag || memory.unclear],
      ["May contradict", memory.may_contradict.length ? memory.may_contradict.map((key) =>
        html`<a href="#/memories/${part(key)}"><code>${key.slice(0, 8)}</code></a> `) : ""],
      ["Read by", memory.read_by],
    ]} />
    <${Said} memory=${memory} />
    <${Versions} history=${history} record=${record} action=${action} />`;
}

export function Memory({ id }) {
  const load = async (signal) => {
    const path = `memories/${part(id)}`;
    const [record, history] = await Promise.all([read(path, {}, signal), read(`${path}/history`, {}, signal)]);
    return { record, history };
  };
  const loaded = useLoaded(load, [id]);
  const isThere = loaded.value !== undefined;
  // A page that loads within a frame has its heading focused already; by now somebody may be further on.
  useEffect(() => { if (isThere && !document.activeElement?.closest("main")) focusHeading(); }, [isThere]);
  return html`<p><a class="back" href="#/memories">Back to the memories</a></p>
    <${Loaded} of=${loaded}>${(both) => html`<${One} ...${both} again=${loaded.again} />`}<//>`;
}
