// The apartment from above: rooms, containers and surfaces, what has been seen, and where everybody is.

import type { Schemas } from "./api";

type Fixture = Schemas["Fixture"];
const MARGIN = 0.3; // metres
const BODY = 0.42;
const THING = 0.16;

/** An apartment that is longer than wide is turned, since a screen is not. */
const turned = <Placed extends { x: number; z: number }>(of: Placed): Placed => ({ ...of, x: of.z, z: of.x });
const lying = (of: Fixture): Fixture => ({ ...turned(of), width: of.depth, depth: of.width });
const box = ({ x, z, width, depth }: Fixture) => ({ x: x - width / 2, y: z - depth / 2, width, height: depth });

function sides(rooms: Fixture[]) {
  const boxes = rooms.map(box);
  const left = Math.min(...boxes.map(({ x }) => x)) - MARGIN;
  const top = Math.min(...boxes.map(({ y }) => y)) - MARGIN;
  const width = Math.max(...boxes.map(({ x, width: each }) => x + each)) + MARGIN - left;
  const height = Math.max(...boxes.map(({ y, height: each }) => y + each)) + MARGIN - top;
  return { left, top, width, height };
}

export function FloorPlan({ plan: given, now }: { plan: Fixture[]; now: Schemas["Moment"] }) {
  const isLong = ((of) => of.height > of.width)(sides(given.filter(({ kind }) => kind === "room")));
  const plan = isLong ? given.map(lying) : given;
  const members = isLong ? now.members.map(turned) : now.members;
  const things = isLong ? now.things.map(turned) : now.things;
  const rooms = plan.filter(({ kind }) => kind === "room");
  const { left, top, width, height } = sides(rooms);
  const where = members.map(({ name, room }) => `${name} is in the ${room}`).join(", ");
  return (
    <svg className="plan" viewBox={`${left} ${top} ${width} ${height}`} role="img" aria-label={`Floor plan: ${where}.`}>
      {rooms.map((each) => (
        <rect key={each.id} className="room" {...box(each)} />
      ))}
      {plan
        .filter(({ kind }) => kind !== "room")
        .map((each) => (
          <rect key={each.id} className={now.open.includes(each.id) ? "open" : each.kind} {...box(each)}>
            <title>{`${each.name} (${each.id})${now.open.includes(each.id) ? ", open" : ""}`}</title>
          </rect>
        ))}
      {rooms.map((each) => (
        <text key={each.id} x={each.x} y={box(each).y + 0.6} textAnchor="middle">
          {each.name}
        </text>
      ))}
      {things.map(({ name, x, z }, at) => (
        <circle key={at} className="thing" cx={x + THING * (at % 3)} cy={z + THING * ((at % 2) - 0.5)} r={THING}>
          <title>{name}</title>
        </circle>
      ))}
      {members.map(({ name, x, z, holds }, at) => (
        <g key={name} className={`member member-${at}`}>
          <circle cx={x} cy={z} r={BODY} />
          <text x={x} y={z + 0.19} textAnchor="middle">
            {name[0]}
          </text>
          {holds.length > 0 && (
            <text x={x} y={z - BODY - 0.1} textAnchor="middle">
              {holds.join(", ")}
            </text>
          )}
          <title>{name}</title>
        </g>
      ))}
    </svg>
  );
}
