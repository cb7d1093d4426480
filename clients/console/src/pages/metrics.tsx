// What a team's learning is watched by: figures with what they mean, and alerts first.

import { Alert, Paper, Progress } from "@mantine/core";
import { type Schemas, read } from "../api";
import { useLoaded } from "../hooks";
import { Empty, Loaded, Title, percent, plural } from "../parts";

type Metrics = Schemas["Metrics"];
interface Figure {
  name: string;
  value?: number | null;
  says: string;
  unit?: "share" | "s" | "ms" | "days";
}

const figures = (of: Metrics): Figure[] => [
  {
    name: "First attempt succeeds",
    value: of.first_attempt_success,
    unit: "share",
    says: "of the tasks, the first draft was right",
  },
  { name: "Iterations a task", value: of.iterations_per_task, says: "drafts until a task is solved or given up" },
  {
    name: "Retrieval is to the point",
    value: of.retrieval_precision,
    unit: "share",
    says: "of the cards shown, served the task",
  },
  {
    name: "Duplicate mistakes",
    value: of.duplicate_mistake_rate,
    unit: "share",
    says: "of the mistakes were made before",
  },
  {
    name: "Provisional cards",
    value: of.verified ? of.provisional_to_verified : null,
    says: "for each verified one",
  },
  { name: "Deprecations", value: of.deprecated_rate, unit: "share", says: "of the cards are deprecated" },
  { name: "Satisfaction", value: of.satisfaction, unit: "share", says: "of people's ratings are good" },
  { name: "Seconds a task", value: of.seconds_p50, unit: "s", says: "half of the solved tasks took less" },
  { name: "Retrieval takes", value: of.retrieval_p95_ms, unit: "ms", says: "19 of 20 take less" },
  { name: "Disputes last", value: of.dispute_days_p50, unit: "days", says: "half of them less, open ones until now" },
];

const shown = (value: number, unit?: Figure["unit"]) =>
  unit === "share"
    ? percent(value)
    : `${value.toLocaleString(undefined, { maximumFractionDigits: value < 10 ? 2 : 0 })}${unit ? ` ${unit}` : ""}`;

function Tile({ name, value, says, unit }: Figure) {
  if (value === null || value === undefined) return null;
  return (
    <Paper component="li" withBorder p="sm" aria-label={name}>
      <strong>{name}</strong>
      <p className="figure">{shown(value, unit)}</p>
      {unit === "share" && <Progress value={100 * value} aria-hidden />}
      <p className="quiet">{says}</p>
    </Paper>
  );
}

export function MetricsPage() {
  const loaded = useLoaded((signal) => read<Metrics>("cards/metrics", {}, signal), []);
  return (
    <>
      <Title>Metrics of cards</Title>
      <Loaded of={loaded}>
        {(metrics) => (
          <>
            {metrics.alerts.map((each) => (
              <Alert key={each.metric} variant="outline" color="red" title={each.level} mb="sm">
                {each.message}
              </Alert>
            ))}
            {metrics.tasks === 0 && (
              <Empty command="mneme learn --suite story">
                No task was solved yet. Here is how often a first draft is right, which mistakes are made again, and what
                the cards are good for. To see some:
              </Empty>
            )}
            <p>
              {plural(metrics.tasks, "task")} so far. Cards:{" "}
              {Object.entries(metrics.cards)
                .map(([status, count]) => `${count} ${status}`)
                .join(", ") || "none"}
              . {plural(metrics.disputes_open, "dispute")} open. {metrics.verified_growth >= 0 ? "+" : ""}
              {metrics.verified_growth} verified in a month.
            </p>
            <ul className="tiles">
              {figures(metrics).map((each) => (
                <Tile key={each.name} {...each} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </>
  );
}
