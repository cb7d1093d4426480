// What waits for a person: runs that were interrupted with a question, and disputes that no run waits for.

import { useEffect, useState } from "preact/hooks";
import { part, read, runs } from "./api.js";
import { Failure, Loaded, Time, focusHeading, html, leave, useAction, useLoaded } from "./parts.js";

const MOST = 100;
const words = (name) => name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
const asked = (thread) => Object.values(thread.interrupts ?? {}).flat()[0]?.value ?? {};
const about = (question) => question.action_requests?.[0]?.description ?? "";
const first = (text) => text.split("\n")[0];

async function waiting(signal) {
  const search = { status: "interrupted", limit: MOST, sort_by: "updated_at", sort_order: "desc" };
  const without = (error) => { if (error.status === 404 || error.status === 405) return null; throw error; };
  const [threads, disputes] = await Promise.all([runs("POST", "threads/search", search, signal).catch(without),
    read("disputes", { status: "escalated" }, signal)]);
  if (threads === null) return { threads: [], disputes, isWithoutRuns: true };
  const held = new Set(threads.map((each) => asked(each).dispute?.id));
  return { threads, disputes: disputes.filter(({ id }) => !held.has(id)) };
}

function Row({ href, title, text, at }) {
  return html`<li class="row"><a href=${href}>${title}</a>
    <p class="quiet"><span>${text}</span> <${Time} at=${at} /></p></li>`;
}

export function Reviews() {
  const loaded = useLoaded(waiting, []);
  return html`<h1 tabindex="-1">Reviews</h1>
    <p class="quiet">Runs that stopped to ask a person, and disputes that the tests did not decide. A run goes on with
      your answer.</p>
    <${Loaded} of=${loaded}>${({ threads, disputes, isWithoutRuns }) => threads.length + disputes.length === 0
      ? html`<p>${isWithoutRuns ? "No dispute waits for you. Runs that ask a person are on the LangGraph server (make dev)."
          : "Nothing waits for you."}</p>`
      : html`<ol class="rows" aria-label="What waits">${threads.map((each) => html`<${Row} key=${each.thread_id}
          href="#/reviews/${part(each.thread_id)}" title=${first(about(asked(each))) || "A question"}
          text=${words(each.metadata?.graph_id ?? "run")} at=${each.updated_at} />`)}
        ${disputes.map((each) => html`<${Row} key=${each.id} href="#/disputes/${part(each.id)}" title=${each.new.claim}
          text="Dispute" at=${each.opened_at} />`)}</ol>`}<//>`;
}

const LABELS = { approve: "Approve it", edit: "Change it", reject: "Reject it", respond: "Say something" };
const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

// What was typed, as JSON where the question's own value was no text.
function typed(text, before) {
  if (typeof before === "string") return text;
  try { return JSON.parse(text); } catch { return text; }
}

function Fields({ args, schema, texts, set }) {
  return Object.entries(texts).map(([name, text]) => {
    const { description = "", enum: choices } = schema?.properties?.[name] ?? {};
    const id = `arg-${name}`, changed = (event) => set({ ...texts, [name]: event.target.value });
    return html`<div key=${name}><label for=${id}>${words(name)}</label>
      ${choices ? html`<select id=${id} value=${text} onChange=${changed}>${choices.map((each) =>
          html`<option key=${each} value=${each}>${each}</option>`)}</select>`
        : html`<textarea id=${id} rows=${Math.min(14, 1 + text.split("\n").length)} value=${text}
          aria-describedby="${id}-about" onInput=${changed}></textarea>`}
      <p class="quiet" id="${id}-about">${description}${typeof args[name] !== "string" && !choices && " (JSON)"}</p></div>`;
  });
}

async function answer(thread, decision) {
  const [latest] = await runs("GET", `threads/${thread}/runs?limit=1`);
  const body = { assistant_id: latest.assistant_id, context: latest.kwargs?.context, on_disconnect: "continue",
    command: { resume: { decisions: [decision] } } };
  const said = await runs("POST", `threads/${thread}/runs/wait`, body);
  if (said?.__error__) throw new Error(said.__error__.message ?? "The run failed.");
  return said?.__interrupt__?.[0]?.value;
}

function Answer({ thread, question, again }) {
  const [request] = question.action_requests ?? [{ name: "", args: {} }];
  const { allowed_decisions: allowed = ["respond"], args_schema: schema } = question.review_configs?.[0] ?? {};
  const properties = Object.keys(schema?.properties ?? request.args);
  const empty = Object.fromEntries(properties.map((name) => [name, ""]));
  const args = { ...empty, ...request.args };
  const [kind, choose] = useState(allowed[0]);
  const [texts, set] = useState(Object.fromEntries(Object.entries(args).map(([name, value]) => [name, shown(value)])));
  const [message, say] = useState("");
  const action = useAction((next) => (next ? again() : leave("reviews")));
  const send = (event) => {
    event.preventDefault();
    const given = Object.fromEntries(Object.entries(texts).filter(([name, text]) => text !== "" || request.args[name])
      .map(([name, text]) => [name, typed(text, request.args[name] ?? "")]));
    const decision = kind === "edit" ? { type: kind, edited_action: { name: request.name, args: given }, message }
      : { type: kind, message };
    action.run(() => answer(thread, decision), (next) => (next ? "There is a question again." : "Answered."));
  };
  return html`<form onSubmit=${send} aria-label="Your answer">
    <fieldset><legend>Your answer</legend>${allowed.map((each) => html`<p key=${each}><label><input type="radio"
      name="kind" checked=${kind === each} onChange=${() => choose(each)} /> ${LABELS[each] ?? words(each)}</label></p>`)}
    </fieldset>
    ${kind === "edit" && html`<${Fields} args=${args} schema=${schema} texts=${texts} set=${set} />`}
    <label for="message">Why, or what you want to say</label>
    <textarea id="message" rows="2" maxlength="2000" required=${kind === "respond"} value=${message}
      onInput=${(event) => say(event.target.value)}></textarea>
    <p class="buttons"><button disabled=${action.busy}>Answer</button>
      ${action.busy && html`<span class="quiet">The run goes on…</span>`}</p><${Failure} error=${action.error} /></form>`;
}

export function ReviewPage({ id }) {
  const loaded = useLoaded((signal) => runs("GET", `threads/${part(id)}`, null, signal), [id]);
  const isThere = loaded.value !== undefined;
  useEffect(() => { if (isThere) focusHeading(); }, [isThere]);
  return html`<p><a href="#/reviews">Back to the reviews</a></p>
    <${Loaded} of=${loaded}>${(thread) => {
      const question = asked(thread), text = about(question);
      if (thread.status !== "interrupted") return html`<h1 tabindex="-1">Answered</h1><p>This run waits for nobody.</p>`;
      return html`<h1 tabindex="-1">${first(text) || "A question"}</h1>
        <p class="quiet"><span>${words(thread.metadata?.graph_id ?? "run")}</span> <${Time} at=${thread.updated_at} />
          <code>${thread.thread_id}</code></p>
        <p class="diff">${text.split("\n").slice(1).join("\n").trim()}</p>
        ${question.wrong && html`<${Failure} error=${{ message: question.wrong }} />`}
        <${Answer} key=${thread.updated_at} thread=${part(id)} question=${question} again=${loaded.again} />`;
    }}<//>`;
}
