// The graph of names: drawn and moved by React Flow, laid out by forces.

import { type Edge, type Node, Controls, ReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { useMemo } from "react";
import type { Names } from "./pages/names";

const TICKS = 300;
const LETTER = 8; // pixels
const MOST_THICK = 6;
const FAR = 300; // pixels from which names that nothing links push each other no further away
const TO_THE_MIDDLE = 0.06; // twice that downwards: the picture is wider than high

interface Point {
  x?: number;
  y?: number;
  radius: number;
}

/** Put linked names near to each other, and none upon another. */
function placed({ nodes, links }: Names): Point[] {
  const points: Point[] = nodes.map(({ name }) => ({ radius: 20 + (LETTER * name.length) / 2 }));
  const springs = links.map(({ one, other, memories }) => ({ source: one, target: other, weight: memories.length }));
  forceSimulation(points)
    .force("apart", forceManyBody().strength(-300).distanceMax(FAR))
    .force("together", forceLink(springs).distance(110))
    .force(
      "none upon another",
      forceCollide<Point>(({ radius }) => radius),
    )
    .force("middle", forceX().strength(TO_THE_MIDDLE))
    .force("line", forceY().strength(2 * TO_THE_MIDDLE))
    .stop()
    .tick(TICKS);
  return points;
}

function drawn(names: Names): { nodes: Node[]; edges: Edge[] } {
  const points = placed(names);
  const nodes = names.nodes.map(({ name, count }, at) => ({
    id: String(at),
    position: { x: points[at]?.x ?? 0, y: points[at]?.y ?? 0 },
    data: { label: `${name} (${count})` },
    className: "name",
    ariaLabel: `${name}, in ${count} memories`,
  }));
  const edges = names.links.map(({ one, other, memories }) => ({
    id: `${one}-${other}`,
    source: String(one),
    target: String(other),
    type: "straight",
    style: { strokeWidth: Math.min(MOST_THICK, memories.length) },
    interactionWidth: 16,
    ariaLabel: `${names.nodes[one]?.name} and ${names.nodes[other]?.name}: ${memories[0]?.memory.content}`,
    label: memories[0]?.memory.relations
      .find((each) => each.includes("|"))
      ?.split("|")[1]
      ?.trim(),
  }));
  return { nodes, edges };
}

export default function Graph({ names, choose }: { names: Names; choose: (names: string[]) => void }) {
  const { nodes, edges } = useMemo(() => drawn(names), [names]);
  const called = (id: string) => names.nodes[Number(id)]?.name ?? "";
  return (
    <div className="graph" role="group" aria-label="Names that memories have together">
      <ReactFlow
        defaultNodes={nodes}
        defaultEdges={edges}
        onNodeClick={(_, { id }) => choose([called(id)])}
        onEdgeClick={(_, { source, target }) => choose([called(source), called(target)])}
        onSelectionChange={({ nodes: chosen }) => chosen[0] && choose([called(chosen[0].id)])}
        nodesConnectable={false}
        colorMode="system"
        fitView
        fitViewOptions={{ maxZoom: 1.1, padding: 0.05 }}
        minZoom={0.2}
      >
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}
