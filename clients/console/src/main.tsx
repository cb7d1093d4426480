// The page: whose data is shown, its parts, and the keys that work everywhere.

import "@mantine/core/styles.css";
import "./console.css";
import {
  Autocomplete,
  Burger,
  Button,
  MantineProvider,
  NavLink,
  PasswordInput,
  createTheme,
} from "@mantine/core";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { type Owner, Problem, keep, read, session } from "./api";
import { useCounts } from "./counts";
import { type Route, focusHeading, go, useNotice, useRoute } from "./hooks";
import { GROUPS } from "./pages";
import { Failure, Title } from "./parts";
import { ThemeSwitch, kept } from "./theme";

const theme = createTheme({
  primaryColor: "indigo",
  primaryShade: { light: 7, dark: 8 },
  fontFamily: "system-ui, sans-serif",
  components: { InputWrapper: { defaultProps: { withAsterisk: false } } },
});
const PAGES = GROUPS.flatMap(({ pages }) => pages);

function NoticeLine() {
  const { text, undo, isHeardAlone } = useNotice();
  return (
    <div className={isHeardAlone ? "unseen" : "notice"}>
      <p role="status" aria-live="polite">
        {text}
      </p>
      {text && undo && (
        <Button size="compact-sm" variant="default" onClick={() => undo()}>
          Undo
        </Button>
      )}
    </div>
  );
}

const isTyping = (element: Element | null) => /^(INPUT|TEXTAREA|SELECT)$/.test(element?.tagName ?? "");

function useKeys({ name, id }: Route) {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/" && !isTyping(document.activeElement)) {
        event.preventDefault();
        const field = document.getElementById("search");
        if (field) field.focus();
        else go("memories");
      }
      if (event.key === "Escape" && id) go(name);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [name, id]);
}

function OwnerField({
  name,
  label,
  changed,
}: {
  name: Exclude<Owner, "key">;
  label: string;
  changed: () => Promise<void>;
}) {
  const [value, set] = useState(session[name] || "local");
  const [known, know] = useState<string[]>([]);
  const typed = useRef(value);
  typed.current = value;
  useEffect(() => {
    read<string[]>(`${name}s`).then(know, () => know([]));
  }, [name]);
  const take = (chosen: string, isSubmitted = false) => {
    const now = chosen.trim() || "local";
    if (now === (session[name] || "local") && !isSubmitted) return;
    keep({ [name]: now });
    // Not where somebody types on already: the field would lose the focus.
    changed().then(() => isSubmitted && typed.current === value && focusHeading());
  };
  const send = (event: FormEvent) => {
    event.preventDefault();
    take(value, true);
  };
  return (
    <form onSubmit={send}>
      <Autocomplete
        label={label}
        data={known}
        value={value}
        onChange={set}
        onOptionSubmit={(chosen) => take(chosen)}
        onBlur={() => take(value)}
        maxLength={200}
        comboboxProps={{ transitionProps: { duration: 0 } }}
      />
    </form>
  );
}

function AskKey({ error, found }: { error: Problem | null; found: () => void }) {
  const [key, set] = useState("");
  const use = (event: FormEvent) => {
    event.preventDefault();
    keep({ key: key.trim() });
    found();
  };
  return (
    <main id="main" className="alone">
      <Title>Your key</Title>
      <p>
        This server has several users. Type the key that <code>mneme users add</code> printed for you. It is kept in
        this tab until you close it.
      </p>
      <form onSubmit={use}>
        <PasswordInput
          label="Key"
          autoComplete="off"
          required
          value={key}
          visibilityToggleButtonProps={{ "aria-label": "Show what is typed" }}
          onChange={(event) => set(event.currentTarget.value)}
        />
        <Button type="submit" mt="sm">
          Open
        </Button>
      </form>
      <Failure error={error} />
    </main>
  );
}

const MOST_COUNTED = 99;

function Menu({ at, turn }: { at: Route; turn: number }) {
  const counts = useCounts(turn, at.name);
  const badge = (name: string) => {
    const of = counts[name];
    if (!of?.count) return undefined;
    return (
      <span className="count" title={`${of.count} ${of.says}`}>
        {of.count > MOST_COUNTED ? `${MOST_COUNTED}+` : of.count}
        <span className="unseen"> {of.says}</span>
      </span>
    );
  };
  return (
    <nav aria-label="Pages of the console" id="menu">
      {GROUPS.map(({ title, pages }) => (
        <section key={title} aria-label={title}>
          <p className="group">{title}</p>
          <ul>
            {pages.map(({ name, title: label, icon: Icon }) => (
              <li key={name}>
                <NavLink
                  href={`#/${name}`}
                  label={label}
                  leftSection={<Icon size={18} aria-hidden />}
                  rightSection={badge(name)}
                  active={name === at.name}
                  variant="filled"
                  aria-current={name === at.name ? "page" : undefined}
                />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

interface OfTop {
  who: string;
  at: Route;
  turn: number;
  changed: () => Promise<void>;
}

function Top({ who, at, turn, changed }: OfTop) {
  const [opened, open] = useState(false);
  useEffect(() => open(false), [at.name, at.id]);
  const out = () => {
    keep({ key: "", user: "", team: "" });
    location.reload();
  };
  return (
    <header className={opened ? "opened" : ""}>
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          focusHeading();
        }}
      >
        Skip to the content
      </a>
      <div className="brand">
        <p className="name">Mneme</p>
        <Burger
          size="sm"
          opened={opened}
          onClick={() => open(!opened)}
          aria-label={opened ? "Close the menu" : "Open the menu"}
          aria-expanded={opened}
          aria-controls="menu"
        />
      </div>
      <div className="menu">
        <div className="owners">
          {session.key ? (
            <>
              <span>
                User <strong>{who}</strong>
              </span>
              <Button variant="default" size="compact-sm" onClick={out}>
                Forget the key
              </Button>
            </>
          ) : (
            <OwnerField name="user" label="User" changed={changed} />
          )}
          <OwnerField name="team" label="Team" changed={changed} />
        </div>
        <Menu at={at} turn={turn} />
        <ThemeSwitch />
      </div>
    </header>
  );
}

let shownBefore = "";

function Shown({ at }: { at: Route }) {
  const page = PAGES.find(({ name }) => name === at.name);
  const place = at.name + at.id;
  useEffect(() => {
    document.title = `${page?.title ?? "Not there"} – Mneme`;
    if (shownBefore && shownBefore !== place) focusHeading();
    shownBefore = place;
  }, [place, page?.title]);
  if (!page) {
    return (
      <>
        <Title>Not there</Title>
        <p>
          There is no such page. <a href="#/memories">Memories</a>
        </p>
      </>
    );
  }
  const { all: All, one: One } = page;
  const asked = `${place}?${at.query}`;
  return at.id && One ? <One key={asked} id={at.id} query={at.query} /> : <All key={asked} query={at.query} />;
}

function App() {
  const [who, setWho] = useState<string | undefined>();
  const [error, setError] = useState<Problem | null>(null);
  const [turn, next] = useState(0);
  const at = useRoute();
  useKeys(at);
  const enter = async () => {
    try {
      setWho(await read<string>("me"));
      setError(null);
      next((before) => before + 1);
    } catch (failed) {
      setWho("");
      setError(failed as Problem);
    }
  };
  useEffect(() => {
    enter();
  }, []);
  if (who === undefined) {
    return (
      <main>
        <p>Loading…</p>
      </main>
    );
  }
  if (error?.status === 401) return <AskKey error={session.key ? error : null} found={enter} />;
  if (error) {
    return (
      <main id="main" className="alone">
        <Title>Mneme</Title>
        <Failure error={error} />
        <Button onClick={enter}>Try again</Button>
      </main>
    );
  }
  return (
    <div className="shell">
      <Top who={who} at={at} turn={turn} changed={enter} />
      <main id="main">
        <NoticeLine />
        <Shown key={turn} at={at} />
      </main>
    </div>
  );
}

// The strict policy of the page lets no script write styles into it: all of them are in files.
createRoot(document.getElementById("root") as HTMLElement).render(
  <MantineProvider
    theme={theme}
    defaultColorScheme="auto"
    colorSchemeManager={kept}
    withCssVariables={false}
    withGlobalClasses={false}
    deduplicateCssVariables={false}
  >
    <App />
  </MantineProvider>,
);
