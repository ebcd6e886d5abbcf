// What is at a voxel, in a line.

import { COLUMNS, ROWS, millimeters } from "../geometry";
import type { Triple } from "../package";
import type { MapKind, State } from "../state";
import type { Subject } from "../subject";
import type { Pane } from "../view/pane";
import { figure } from "./histogram";

/** How the number of a map is called; the agreement of raters is told by their labels. */
const MAP_NAMES: Readonly<Record<MapKind, string | null>> = {
  none: null, entropy: "entropy", probability: "probability", correlation: "correlation", agreement: null, disagreement: "entropy of raters",
};

/** Says what is at the voxel under the mouse, or at that of the cross-hair, in a pane: in a line, and with each rater by name. */
export function describe(subject: Subject, state: State, voxel: Triple | null, pane: Pane | null): { line: string; full: string } {
  const { header } = subject;
  const at = voxel ?? state.cross;
  const parts = [subject.volume ? `voxel ${at[2]}, ${at[1]}, ${at[0]}` : `pixel ${at[2]}, ${at[1]}`];
  if (subject.volume && header.has_spacing) parts.push(`${millimeters(header, at).map((length) => length.toFixed(1)).join(", ")} mm`);
  if (subject.hasImage) {
    const channels = header.color ? header.channels.map((_, i) => i) : [state.channel];
    parts.push(`value ${channels.map((channel) => figure(subject.value(channel, at))).join(", ")}`);
  }
  // What the pane shows may still be another slice than that of the cross-hair.
  if (pane?.shown && pane.shown.plane.index === at[pane.shown.plane.axis] - header.shown.start[pane.shown.plane.axis]) {
    const { plane: { axis }, labels, map } = pane.shown;
    const [row, column] = [ROWS[axis], COLUMNS[axis]].map((along) => at[along] - header.shown.start[along]);
    const index = row * subject.size[COLUMNS[axis]] + column;
    parts.push(`sample: ${header.classes[labels[index]]}`);
    if (map && MAP_NAMES[state.map]) parts.push(`${MAP_NAMES[state.map]} ${map[index].toFixed(2)}`);
  }
  const labels = subject.labelAt(at);
  parts.push(`prediction: ${header.classes[labels.prediction]}`);
  const marked = labels.raters.map((label) => header.classes[label] ?? String(label));
  return {
    line: [...parts, ...(marked.length > 0 ? [`${marked.length > 1 ? "raters" : "rater"}: ${tally(marked)}`] : [])].join("  ·  "),
    full: [...parts, ...marked.map((name, rater) => `${header.raters[rater]}: ${name}`)].join("\n"),
  };
}

/** Names with how often each is there, the most frequent first. */
function tally(names: readonly string[]): string {
  if (names.length === 1) return names[0];
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name} ×${count}`).join(", ");
}
