// What helps where nothing is remembered yet.

import { Button, Paper } from "@mantine/core";
import { Copied } from "../parts";

const here = (path: string) => new URL(path, location.href).href;

export function Welcome({ write }: { write: () => void }) {
  return (
    <section aria-labelledby="welcome">
      <h2 id="welcome">Nothing is remembered yet</h2>
      <p>
        What you, your editor or your agents tell Mneme appears here by itself. Each memory keeps its versions and where
        it comes from; every change can be undone, but for what you have it forget. Begin with one of these:
      </p>
      <ul className="ways">
        <Paper component="li" withBorder p="md">
          <h3>Tell it something</h3>
          <p>Write a sentence, or talk to the chatbot in a terminal.</p>
          <Button onClick={write} mb="xs">
            Write the first memory
          </Button>
          <Copied of="mneme chat" />
        </Paper>
        <Paper component="li" withBorder p="md">
          <h3>Give your editor a memory</h3>
          <p>It recalls before each prompt, and keeps what was done.</p>
          <Copied of="mneme connect claude-code" />
          <Copied of="mneme connect codex" />
          <Copied of="mneme connect cursor" />
          <p>Anything else that speaks MCP:</p>
          <Copied of={here("../mneme/mcp")} />
        </Paper>
        <Paper component="li" withBorder p="md">
          <h3>Give your chat client or program a memory</h3>
          <p>As the base URL of anything that speaks OpenAI&apos;s protocol:</p>
          <Copied of={here("../v1")} />
          <p>Or over REST:</p>
          <Copied of={`curl -X POST ${here("../mneme/v1/memories")} --json '{"content": "Ann has a dog."}'`} />
        </Paper>
        <Paper component="li" withBorder p="md">
          <h3>Bring what others know</h3>
          <p>Exports of ChatGPT, Claude or Mem0, or your notes:</p>
          <Copied of="mneme import FILE" />
        </Paper>
      </ul>
    </section>
  );
}
