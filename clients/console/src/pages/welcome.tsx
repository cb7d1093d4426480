// What helps where nothing is remembered yet.

import { Code, List, Paper } from "@mantine/core";

export function Welcome() {
  return (
    <Paper withBorder p="md" mt="md">
      <h2>Nothing is remembered yet</h2>
      <p>Three ways to begin:</p>
      <List spacing="xs" type="ordered">
        <List.Item>
          Write one by hand: <em>Add a memory</em>, above. Or talk to the chatbot: <Code>mneme chat</Code>
        </List.Item>
        <List.Item>
          Give your editor or chat a memory: <Code>mneme connect claude-code</Code>, or this server as the base URL of
          any chat client: <Code>{new URL("../v1", location.href).href}</Code>
        </List.Item>
        <List.Item>
          Bring what ChatGPT, Claude, Mem0 or your notes know: <Code>mneme import FILE</Code>
        </List.Item>
      </List>
      <p>
        What is told then appears here by itself. Each memory keeps all its versions, and every change can be undone, but for what you have it forget.
      </p>
    </Paper>
  );
}
