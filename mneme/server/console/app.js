// The page: whose data is shown, its parts, and the keys that work everywhere.

import { h, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem, keep, read, session } from "./api.js";
import { Failure, focusHeading, go, html, notice, say } from "./parts.js";
import { PAGES } from "./pages.js";

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  return { name: name || "memories", id: id ? decodeURIComponent(id) : "", query: new URLSearchParams(query) };
}

function useRoute() {
  const [at, set] = useState(route());
  useEffect(() => {
    const changed = () => {
      if (!notice.stays) say("");
      notice.stays = false;
      set(route());
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return at;
}

function Notice() {
  const [text, set] = useState(notice.text);
  useEffect(() => { notice.heard = set; set(notice.text); });
  return html`<p id="notice" role="status" aria-live="polite">${text}</p>`;
}

const isTyping = (element) => /^(INPUT|TEXTAREA|SELECT)$/.test(element?.tagName ?? "");

function useKeys({ name, id }) {
  useEffect(() => {
    const pressed = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/" && !isTyping(event.target)) {
        event.preventDefault();
        if (document.getElementById("search")) document.getElementById("search").focus();
        else go("memories");
      }
      if (event.key === "Escape" && id && !document.querySelector("dialog[open]")) go(name);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [name, id]);
}

function Owner({ name, label, changed }) {
  const [value, set] = useState(session[name] || "local");
  const [known, know] = useState([]);
  useEffect(() => { read(`${name}s`).then(know, () => know([])); }, []);
  const use = (event) => {
    event.preventDefault();
    keep({ [name]: value.trim() || "local" });
    changed().then(() => event.type === "submit" && focusHeading());
  };
  return html`<form class="owner" onSubmit=${use}><label for=${name}>${label}</label>
    <datalist id="${name}s">${known.map((each) => html`<option key=${each} value=${each} />`)}</datalist>
    <input id=${name} list="${name}s" value=${value} size="10" maxlength="200" autocomplete="off" onInput=${(e) => set(e.target.value)}
      onBlur=${(e) => e.target.value.trim() !== (session[name] || "local") && use(e)} /></form>`;
}

function AskKey({ error, found }) {
  const [key, set] = useState("");
  const use = (event) => {
    event.preventDefault();
    keep({ key: key.trim() });
    found();
  };
  return html`<main id="main"><h1 tabindex="-1">Your key</h1>
    <p>This server has several users. Type the key that <code>mneme users add</code> printed for you. It is kept in this
      tab until you close it.</p>
    <form onSubmit=${use}><label for="key">Key</label>
      <input id="key" type="password" autocomplete="off" required value=${key} onInput=${(e) => set(e.target.value)} />
      <p class="buttons"><button>Open</button></p></form>
    <${Failure} error=${error} /></main>`;
}

function Top({ who, at, changed }) {
  const out = () => { keep({ key: "", user: "", team: "" }); location.reload(); };
  return html`<header><a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); focusHeading(); }}>
      Skip to the content</a>
    <p class="name">Mneme</p>
    <nav aria-label="Pages of the console"><ul>${PAGES.map(({ name, title }) => html`<li key=${name}>
      <a href="#/${name}" aria-current=${name === at.name ? "page" : undefined}>${title}</a></li>`)}</ul></nav>
    <div class="owners">${session.key ? html`<span>User <strong>${who}</strong></span>
        <button type="button" onClick=${out}>Forget the key</button>`
      : html`<${Owner} name="user" label="User" changed=${changed} />`}
    ${PAGES.some((each) => each.team) && html`<${Owner} name="team" label="Team" changed=${changed} />`}</div></header>`;
}

function Page({ at }) {
  const page = PAGES.find(({ name }) => name === at.name);
  useEffect(() => {
    document.title = `${page?.title ?? "Not there"} – Mneme`;
    if (Page.was && Page.was !== at.name + at.id) focusHeading();
    Page.was = at.name + at.id;
  }, [at.name, at.id]);
  if (!page) return html`<h1 tabindex="-1">Not there</h1><p>There is no such page. <a href="#/memories">Memories</a></p>`;
  const shown = at.id && page.one ? page.one : page.all;
  return h(shown, { ...at, key: at.id });
}

function App() {
  const [who, setWho] = useState(undefined);
  const [error, setError] = useState(null);
  const [turn, next] = useState(0);
  const at = useRoute();
  useKeys(at);
  const enter = () => read("me").then((name) => { setError(null); setWho(name); next((n) => n + 1); },
    (failed) => { setWho(""); setError(failed); });
  useEffect(() => { enter(); }, []);
  if (who === undefined) return html`<main><p class="quiet">Loading…</p></main>`;
  if (error?.status === 401) return html`<${AskKey} error=${session.key ? error : null} found=${enter} />`;
  if (error) return html`<main id="main"><h1 tabindex="-1">Mneme</h1><${Failure} error=${error} />
    <p class="buttons"><button type="button" onClick=${enter}>Try again</button></p></main>`;
  return html`<${Top} who=${who} at=${at} changed=${enter} /><main id="main"><${Notice} key="notice" />
    <${Page} key=${turn} at=${at} /></main>`;
}

render(html`<${App} />`, document.body);
