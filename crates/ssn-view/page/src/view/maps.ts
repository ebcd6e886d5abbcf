// Maps of the panes: asked of the worker, or made of the raters, and kept together with all that they are of. A map of other settings, of another
// class or of another voxel is never shown: while the right one is on its way, there is none.

import type { Engine } from "../engine";
import type { Plane } from "../geometry";
import type { Settings, Summary } from "../messages";
import type { State, Store } from "../state";
import type { Subject } from "../subject";
import { entropy } from "./entropy";
import type { Pane } from "./pane";

/** What is known about the slice of a pane, and of what it is. */
interface Known {
  /** What samples say together. */
  summary: { of: string; summary: Summary } | null;
  /** What moves with a voxel; null where nothing does. */
  correlation: { of: string; values: Float32Array | null } | null;
  /** The entropy that was made last of a summary. */
  entropy: { of: Summary; values: Float32Array } | null;
  /** The map of raters that was made last. */
  raters: { of: string; values: Float32Array } | null;
  /** The newest questions. */
  asked: { summary: string; correlation: string };
}

export interface MapsEvents {
  /** A progress of samples behind the maps, 1 when all are drawn. */
  progress(share: number): void;
  /** Whether the cross-hair's voxel moves at all, where a correlation map is shown. */
  correlated(known: boolean): void;
}

/** All that a summary depends on. */
function summaryKey(plane: Plane, { seed, temperature, classScales, modeWeights, diagonalNoise }: Settings, samples: number): string {
  return [plane.axis, plane.index, seed, temperature, ...classScales, "|", ...modeWeights, diagonalNoise, samples].join(" ");
}

/** All that a correlation depends on. */
function correlationKey(plane: Plane, { modeWeights, diagonalNoise }: Settings, voxel: number, logit: number): string {
  return [plane.axis, plane.index, voxel, logit, ...modeWeights, diagonalNoise].join(" ");
}

export class Maps {
  private subject: Subject | null = null;
  private known = new Map<Pane, Known>();

  constructor(
    private readonly engine: Engine, private readonly store: Store, private readonly events: MapsEvents, private readonly changed: () => void,
  ) {}

  /** Follows the state, and the panes that there are: they have what is known already. */
  follow(subject: Subject, panes: readonly Pane[]): void {
    this.subject = subject;
    const before = this.known;
    this.known = new Map(panes.map((pane) => [pane, before.get(pane) ?? { summary: null, correlation: null, entropy: null, raters: null, asked: { summary: "", correlation: "" } }]));
    for (const pane of before.keys()) if (!this.known.has(pane)) this.engine.cancel(`summary ${pane.slot} ${pane.axis}`);
    for (const pane of panes) this.apply(pane);
    this.tellCorrelated();
  }

  /** Asks for what is shown and not known. */
  ask(): void {
    const { state } = this.store;
    const summaries = state.map === "entropy" || state.map === "probability" || state.quantiles;
    for (const [pane, known] of this.known) {
      if (summaries) this.askSummary(pane, known, state);
      else this.giveUpSummary(pane, known);
      if (state.map === "correlation") this.askCorrelation(pane, known, state);
    }
    if (!summaries) this.events.progress(1);
  }

  /** The fewest samples behind what panes show; all that are asked for where nothing is shown of samples. */
  get drawn(): number {
    const counts = [...this.known.values()].flatMap(({ summary }) => (summary ? [summary.summary.samples] : []));
    return Math.min(this.store.state.samples, ...counts);
  }

  /** Puts into a pane the maps that the state asks for. */
  apply(pane: Pane): void {
    const { shown } = pane;
    const known = this.known.get(pane);
    if (!shown || !known) return;
    const { state } = this.store;
    const settings = state.settings[pane.slot];
    const summary = known.summary?.of === summaryKey(shown.plane, settings, state.samples) ? known.summary.summary : null;
    const size = shown.labels.length;
    const ofClass = (values: Float32Array) => values.subarray(state.focus * size, (state.focus + 1) * size);
    let map: Float32Array | null = null;
    if (state.map === "probability" && summary) map = ofClass(summary.probabilities);
    if (state.map === "entropy" && summary) {
      if (known.entropy?.of !== summary) known.entropy = { of: summary, values: entropy(summary.probabilities, this.subject!.header.classes.length, size) };
      map = known.entropy.values;
    }
    if (state.map === "correlation" && known.correlation?.of === this.correlationOf(pane, shown.plane, state)) map = known.correlation.values;
    if (state.map === "agreement" || state.map === "disagreement") map = this.ofRaters(known, shown.plane, state, size);
    pane.shown = { ...shown, map, shares: summary ? ofClass(summary.shares) : null };
  }

  /** How many of the raters have the class, or how unlike their labels are: known without the worker. */
  private ofRaters(known: Known, plane: Plane, { map, focus }: State, size: number): Float32Array {
    const of = [map, plane.axis, plane.index, map === "agreement" ? focus : ""].join(" ");
    if (known.raters?.of !== of) {
      const shares = this.subject!.raterShares(plane);
      known.raters = { of, values: map === "agreement" ? shares.slice(focus * size, (focus + 1) * size) : entropy(shares, this.subject!.header.classes.length, size) };
    }
    return known.raters.values;
  }

  private askSummary(pane: Pane, known: Known, state: State): void {
    const [plane, settings, samples] = [this.subject!.plane(pane.axis, state.cross), state.settings[pane.slot], state.samples];
    const of = summaryKey(plane, settings, samples);
    if (of === known.asked.summary) return;
    known.asked.summary = of;
    this.events.progress(0);
    this.engine.ask(`summary ${pane.slot} ${pane.axis}`, { kind: "summary", slot: pane.slot, plane, settings, samples }, (summary) => {
      if (this.known.get(pane) !== known) return;
      known.summary = { of, summary };
      this.apply(pane);
      this.events.progress(summary.samples / summary.total);
      this.changed();
    });
  }

  /** What was not drawn to its end begins anew when it is shown again. */
  private giveUpSummary(pane: Pane, known: Known): void {
    this.engine.cancel(`summary ${pane.slot} ${pane.axis}`);
    const { asked, summary } = known;
    if (summary && summary.of === asked.summary && summary.summary.samples >= summary.summary.total) return;
    asked.summary = "";
    known.summary = null;
  }

  private askCorrelation(pane: Pane, known: Known, state: State): void {
    const [plane, settings] = [this.subject!.plane(pane.axis, state.cross), state.settings[pane.slot]];
    const of = this.correlationOf(pane, plane, state);
    if (of === known.asked.correlation) return;
    known.asked.correlation = of;
    const [voxel, logit] = [this.subject!.index(state.cross), this.logit(state)];
    this.engine.ask(`correlation ${pane.slot} ${pane.axis}`, { kind: "correlation", plane, settings, logit, voxel }, ({ values, known: moves }) => {
      if (this.known.get(pane) !== known) return;
      known.correlation = { of, values: moves ? values : null };
      this.apply(pane);
      this.tellCorrelated();
      this.changed();
    });
  }

  /** The correlation that the state asks for on a plane. */
  private correlationOf(pane: Pane, plane: Plane, state: State): string {
    return correlationKey(plane, state.settings[pane.slot], this.subject!.index(state.cross), this.logit(state));
  }

  /** The row of logits of the class in focus. */
  private logit(state: State): number {
    return this.subject!.header.logits === 1 ? 0 : state.focus;
  }

  /** Says whether the voxel of the cross-hair moves, as far as it is known. */
  private tellCorrelated(): void {
    const { state } = this.store;
    const still = [...this.known].some(([pane, { correlation }]) => correlation !== null && correlation.values === null
      && correlation.of === this.correlationOf(pane, this.subject!.plane(pane.axis, state.cross), state));
    this.events.correlated(state.map !== "correlation" || !still);
  }
}
