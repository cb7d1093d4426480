// What all pages are made of.

import { h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import htm from "htm";
import { compare } from "./diff.js";

export const html = htm.bind(h);

// What was done, for the line at the top, which a screen reader reads out.
export const notice = { text: "", stays: false, heard: () => {} };
export function say(text) {
  notice.text = text;
  notice.heard(text);
}

export function focusHeading() {
  requestAnimationFrame(() => document.querySelector("main h1")?.focus());
}

const SHORT = { dateStyle: "medium", timeStyle: "short" };
export function Time({ at }) {
  if (!at) return null;
  const moment = new Date(at);
  const shown = Number.isNaN(moment.valueOf()) ? at : moment.toLocaleString(undefined, SHORT);
  return html`<time datetime=${at}>${shown}</time>`;
}

export function Failure({ error }) {
  if (!error) return null;
  return html`<p class="failure" role="alert"><strong>${error.message}</strong> ${error.hint}</p>`;
}

// Load something again whenever one of the inputs is another; the older answer stays until the newer is there.
export function useLoaded(load, inputs) {
  const [state, set] = useState({ loading: true });
  const [turn, next] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    const done = (found) => control.signal.aborted || set(found);
    set((before) => ({ ...before, loading: true }));
    load(control.signal).then((value) => done({ value }), (error) => done({ error }));
    return () => control.abort();
  }, [...inputs, turn]);
  return { ...state, again: () => next((before) => before + 1) };
}

export function Loaded({ of, children }) {
  if (of.error) return html`<${Failure} error=${of.error} />`;
  if (of.value === undefined) return html`<p class="quiet">Loading…</p>`;
  return children(of.value);
}

// Do something, once at a time; its failure stays to be shown until the next is done.
export function useAction(after = () => {}) {
  const [state, set] = useState({ busy: false, error: null });
  const run = async (work, said) => {
    if (state.busy) return;
    set({ busy: true, error: null });
    try {
      const result = await work();
      set({ busy: false, error: null });
      say(said(result));
      after(result);
    } catch (error) {
      set({ busy: false, error });
    }
  };
  return { ...state, run };
}

export function Button({ action, work, said, children, ...rest }) {
  return html`<button type="button" disabled=${action.busy} onClick=${() => action.run(work, said)}
    ...${rest}>${children}</button>`;
}

const SAID = { ins: "inserted", del: "deleted" };
export function Diff({ older, newer }) {
  const runs = compare(older, newer);
  return html`<p class="diff">${runs.map(([kind, text]) => kind === "same" ? text
    : h(kind, {}, html`<span class="unseen">[${SAID[kind]}: </span>${text}<span class="unseen">]</span>`))}</p>`;
}

// A question before something that cannot be undone; Escape says no.
export function Confirm({ title, yes, onYes, onNo, children }) {
  const box = useRef();
  useEffect(() => box.current.showModal(), []);
  return html`<dialog ref=${box} aria-labelledby="asked" onClose=${onNo}>
    <h2 id="asked">${title}</h2>
    ${children}
    <p class="buttons"><button type="button" onClick=${() => box.current.close()}>Cancel</button>
    <button type="button" class="danger" onClick=${onYes}>${yes}</button></p>
  </dialog>`;
}

export function Facts({ of }) {
  const shown = of.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<dl class="facts">${shown.map(([name, value]) =>
    html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export function Pages({ offset, size, count, go }) {
  if (count <= size) return null;
  const last = Math.min(count, offset + size);
  return html`<nav class="pages" aria-label="Pages">
    <button type="button" disabled=${offset === 0} onClick=${() => go(Math.max(0, offset - size))}>Previous</button>
    <span>${(offset + 1).toLocaleString()} to ${last.toLocaleString()} of ${count.toLocaleString()}</span>
    <button type="button" disabled=${last >= count} onClick=${() => go(offset + size)}>Next</button>
  </nav>`;
}

export function Search({ label, value, onInput, onDown, onEnter }) {
  const pressed = (event) => {
    if (event.key === "ArrowDown" && onDown) {
      event.preventDefault();
      onDown();
    } else if (event.key === "Escape" && value) {
      event.stopPropagation();
      onInput("");
    } else if (event.key === "Enter") onEnter?.();
  };
  return html`<p class="search" role="search"><label for="search">${label}</label>
    <input id="search" type="search" autocomplete="off" value=${value} aria-describedby="search-help"
      onInput=${(event) => onInput(event.target.value)} onKeyDown=${pressed} />
    <span id="search-help" class="quiet">Press / to come here, ↓ to go to the results, Enter to open the first.</span>
  </p>`;
}

// The value as it was when it had not changed for so long.
export function useCalm(value, milliseconds = 60) {
  const [calm, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return calm;
}

export const go = (path) => { location.hash = `#/${path}`; };
// Go to another page and still say there what was done.
export function leave(path) {
  notice.stays = true;
  go(path);
}
// Put what is searched for into the address, without a new step of the browser's history; not where the reader has
// gone on to another page meanwhile.
export function note(path) {
  const page = (address) => address.split(/[?/]/)[0];
  const here = location.hash.replace(/^#\/?/, "");
  if (!here || page(here) === page(path)) history.replaceState(null, "", `#/${path}`);
}
export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString()} ${count === 1 ? one : many}`;
