// The graph of names: drawn and moved by React Flow, laid out by forces.

import { type Edge, type Node, Controls, ReactFlow, useEdgesState, useNodesState } from "@xyflow/react";
import { useComputedColorScheme } from "@mantine/core";
import "@xyflow/react/dist/style.css";
import { type Force, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { useEffect, useMemo } from "react";
import type { Names } from "./pages/names";

const TICKS = 300;
const ROUNDS = 100; // in which names that still lie upon another are parted
const LETTER = 8; // pixels
const MOST_THICK = 6;
const FAR = 300; // pixels from which names that nothing links push each other no further away
const TO_THE_MIDDLE = 0.06; // twice that downwards: the picture is wider than high

const HIGH = 56; // of a name, with what lies around it
const OFTEN = 3;

interface Point {
  x: number;
  y: number;
  width: number;
}

/** Push two names that lie upon another apart, along the side where less is in the way. */
function apart(points: Point[]) {
  points.forEach((one, at) =>
    points.slice(at + 1).forEach((other) => {
      const [x, y] = [other.x - one.x, other.y - one.y];
      const over = { x: (one.width + other.width) / 2 - Math.abs(x), y: HIGH - Math.abs(y) };
      if (over.x <= 0 || over.y <= 0) return;
      const side = over.x < over.y ? "x" : "y";
      const step = ((side === "x" ? x : y) < 0 ? -1 : 1) * (over[side] / 2);
      one[side] -= step;
      other[side] += step;
    }),
  );
}

/** Put linked names near to each other, and none upon another. */
function placed({ nodes, links }: Names): Point[] {
  const points = nodes.map(({ name }, at) => ({
    x: 200 * Math.cos(at),
    y: 100 * Math.sin(at),
    width: 70 + LETTER * name.length,
  }));
  const springs = links.map(({ one, other, memories }) => ({ source: one, target: other, weight: memories.length }));
  const rectangles: Force<Point, undefined> = () => apart(points);
  forceSimulation(points)
    .force("apart", forceManyBody().strength(-300).distanceMax(FAR))
    .force("together", forceLink(springs).distance(110))
    .force("middle", forceX().strength(TO_THE_MIDDLE))
    .force("line", forceY().strength(2 * TO_THE_MIDDLE))
    .force("none upon another", rectangles)
    .stop()
    .tick(TICKS);
  for (let round = 0; round < ROUNDS; round += 1) apart(points);
  return points;
}

function drawn(names: Names): { nodes: Node[]; edges: Edge[] } {
  const points = placed(names);
  const nodes = names.nodes.map(({ name, count }, at) => ({
    id: String(at),
    position: { x: points[at]?.x ?? 0, y: points[at]?.y ?? 0 },
    origin: [0.5, 0.5] as [number, number],
    data: { label: `${name} (${count})` },
    className: count >= OFTEN ? "name often" : "name",
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

interface Shown {
  names: Names;
  chosen: string[];
  choose: (names: string[]) => void;
}

export default function Graph({ names, chosen, choose }: Shown) {
  const { nodes: all, edges: lines } = useMemo(() => drawn(names), [names]);
  const [nodes, setNodes, onNodesChange] = useNodesState(all);
  const [edges, setEdges, onEdgesChange] = useEdgesState(lines);
  const called = (id: string) => names.nodes[Number(id)]?.name ?? "";
  // What is chosen stands out with what it is linked to, and says how; the rest is faint.
  useEffect(() => {
    const ends = ({ source, target }: Edge) => [called(source), called(target)];
    const isNear = (edge: Edge) => chosen.every((name) => ends(edge).includes(name));
    const near = new Set([...chosen, ...lines.filter(isNear).flatMap(ends)]);
    const isFar = (far: boolean) => (chosen.length > 0 && far ? "far" : "");
    setNodes((before) =>
      before.map((each, at) => {
        const name = called(each.id);
        const own = `${all[at]?.className} ${chosen.includes(name) ? "chosen" : ""}`;
        return { ...each, className: `${own} ${isFar(!near.has(name))}` };
      }),
    );
    setEdges((before) =>
      before.map((each, at) => ({
        ...each,
        className: isFar(!isNear(each)),
        label: chosen.length > 0 && isNear(each) ? lines[at]?.label : undefined,
      })),
    );
  }, [chosen, all, lines]);
  return (
    <div className="graph" role="group" aria-label="Names that memories have together">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        onNodesChange={onNodesChange}
        onEdgesChange={onEdgesChange}
        onNodeClick={(_, { id }) => choose([called(id)])}
        onEdgeClick={(_, { source, target }) => choose([called(source), called(target)])}
        onSelectionChange={({ nodes: [picked] }) => picked && choose([called(picked.id)])}
        onPaneClick={() => choose([])}
        nodesConnectable={false}
        colorMode={useComputedColorScheme()}
        fitView
        fitViewOptions={{ maxZoom: 1.1, minZoom: 0.6, padding: 0.05 }}
        minZoom={0.2}
      >
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}
