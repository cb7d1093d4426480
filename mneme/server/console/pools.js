// Pools of shared pairs, and the versions of their retrievers.

import { useEffect } from "preact/hooks";
import { change, part, read } from "./api.js";
import { Button, Facts, Failure, Loaded, focusHeading, html, plural, useAction, useLoaded } from "./parts.js";

const percent = (share) => `${Math.round(100 * share)} %`;
const named = (number) => (number === 0 ? "the untrained embedder" : `version ${number}`);

export function PoolsPage() {
  const loaded = useLoaded((signal) => read("pools", {}, signal), []);
  return html`<h1 tabindex="-1">Pools</h1>
    <${Loaded} of=${loaded}>${(found) => found.length === 0 ? html`<p>There is no pool yet.</p>`
      : html`<ol class="rows" aria-label="Pools">${found.map((each) => html`<li class="row" key=${each.pool}>
        <a href="#/pools/${part(each.pool)}">${each.pool}</a>
        <p class="quiet"><span>${plural(each.memories, "pair")}</span> <span>retriever: ${named(each.serving)}</span>
          <span>${each.waiting.toLocaleString()} not learned yet</span></p></li>`)}</ol>`}<//>`;
}

function Retriever({ state, action }) {
  const back = (to) => () => change(`pools/${part(state.pool)}/retriever/rollback`, { to });
  const use = (number) => html`<${Button} action=${action} work=${back(number)}
    said=${(now) => `In use: ${named(now)}.`}>Use ${named(number)}<//>`;
  const rows = [...state.versions].reverse();
  return html`<section aria-labelledby="retriever"><h2 id="retriever">Retriever</h2>
    <p>In use: ${named(state.serving)}. ${plural(state.waiting, "pair")} not learned yet.</p>
    ${rows.length > 0 && html`<div class="scrolls" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th scope="col">Version</th>
      <th scope="col">Kept</th><th scope="col">Recall before, after</th><th scope="col">Why</th>
      <th scope="col">Use</th></tr></thead><tbody>${rows.map((each) => html`<tr key=${each.number}><td>${each.number}</td>
        <td>${each.kept ? "yes" : "no"}</td><td>${percent(each.before.recall)}, ${percent(each.after.recall)}</td>
        <td>${each.reason}</td><td>${each.number === state.serving ? "in use" : each.kept ? use(each.number) : "–"}</td>
        </tr>`)}</tbody></table></div>`}
    ${state.serving > 0 && html`<p class="buttons">${use(0)}</p>`}</section>`;
}

function One({ state, pairs, again }) {
  const action = useAction(again);
  return html`<h1 tabindex="-1">${state.pool}</h1><${Failure} error=${action.error} />
    <${Retriever} state=${state} action=${action} />
    <section aria-labelledby="pairs"><h2 id="pairs">Pairs</h2>
      <p class="quiet">The first ${pairs.length.toLocaleString()} of ${state.memories.toLocaleString()}</p>
      <ol class="versions">${pairs.map(({ key, pair }) => html`<li key=${key}><article aria-label="Pair ${key.slice(0, 8)}">
        <h3>${pair.prompt || "(no question)"}</h3><p class="diff">${pair.answer}</p>
        <${Facts} of=${[["Agent", pair.agent], ["Domain", pair.domain], ["Score", pair.score],
          ["Led up to by", pair.leading.join("\n")], ["Key", html`<code>${key}</code>`]]} /></article></li>`)}</ol></section>`;
}

export function PoolPage({ id }) {
  const load = async (signal) => {
    const path = `pools/${part(id)}`;
    const [state, pairs] = await Promise.all([read(`${path}/retriever`, {}, signal),
      read(`${path}/pairs`, { limit: 100 }, signal)]);
    return { state, pairs };
  };
  const loaded = useLoaded(load, [id]);
  const isThere = loaded.value !== undefined;
  useEffect(() => { if (isThere) focusHeading(); }, [isThere]);
  return html`<p><a href="#/pools">Back to the pools</a></p>
    <${Loaded} of=${loaded}>${(both) => html`<${One} ...${both} again=${loaded.again} />`}<//>`;
}
