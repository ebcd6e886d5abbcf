// The views in the middle of the page: which there are, what they need of the worker, and when they are painted.

import type { Engine } from "../engine";
import type { Axis, Plane } from "../geometry";
import type { Settings } from "../messages";
import { type State, type Store, sameSettings } from "../state";
import type { Subject } from "../subject";
import { Maps, type MapsEvents } from "./maps";
import { Pane } from "./pane";

/** How long settings rest before maps are asked for, in milliseconds. */
const REST = 120;

/** What a pane waits for, and what it has. */
interface Needs {
  wanted: { plane: Plane; settings: Settings; since: number } | null;
  busy: boolean;
  has: { plane: Plane; settings: Settings } | null;
}

const samePlane = (a: Plane, b: Plane) => a.axis === b.axis && a.index === b.index;

export interface StageEvents extends MapsEvents {
  painted(): void;
  trouble(message: string): void;
}

export class Stage {
  panes: Pane[] = [];
  subject: Subject | null = null;
  /** The last frame: from the change of a control until it was painted, and the worker's part, in milliseconds. */
  frame = { total: 0, sampling: 0 };
  private needs = new Map<Pane, Needs>();
  private readonly maps: Maps;
  private painting = 0;
  private resting = 0;
  private since: number | null = null;
  /** Whether the case was painted before: its first frame is no answer to a control. */
  private answered = false;

  constructor(
    readonly element: HTMLElement, private readonly engine: Engine, private readonly store: Store, private readonly events: StageEvents,
  ) {
    this.maps = new Maps(engine, store, events, () => this.repaint());
    new ResizeObserver(() => this.repaint()).observe(element);
  }

  /** Shows a case, and nothing of the one before. */
  open(subject: Subject): void {
    this.subject = subject;
    this.panes = [];
    this.needs.clear();
    this.answered = false;
    this.layOut(this.store.state);
    this.update(this.store.state);
  }

  /** The samples behind the maps that are shown: while these grow, fewer than are asked for. */
  get samplesDrawn(): number {
    return this.maps.drawn;
  }

  /** The pane of the main view of settings A, or of those that are changed. */
  main(slot: 0 | 1 = 0): Pane {
    return this.panes.find((pane) => pane.slot === slot) ?? this.panes[0];
  }

  /** Makes the panes that the state asks for, keeping those that are there. */
  private layOut(state: State): void {
    const subject = this.subject!;
    const slots: (0 | 1)[] = state.compare ? [0, 1] : [0];
    const others = ([0, 1, 2] as Axis[]).filter((axis) => axis !== state.axis);
    const axes = subject.volume && state.layout === "three" ? [state.axis, ...others] : [state.axis];
    const wanted = slots.flatMap((slot) => axes.map((axis) => ({ slot, axis })));
    const before = this.panes;
    this.panes = wanted.map(({ slot, axis }) => before.find((pane) => pane.slot === slot && pane.axis === axis) ?? new Pane(slot, axis));
    for (const pane of before) if (!this.panes.includes(pane)) this.needs.delete(pane);
    const groups = slots.map((slot) => {
      const group = document.createElement("div");
      group.className = "views";
      group.dataset.count = String(axes.length);
      group.append(...this.panes.filter((pane) => pane.slot === slot).map((pane) => pane.element));
      return group;
    });
    this.element.dataset.compare = String(state.compare);
    this.element.replaceChildren(...groups);
    for (const [i, pane] of this.panes.entries()) {
      pane.element.dataset.main = String(i % axes.length === 0);
      const what = subject.volume ? `${subject.planes[pane.axis].name} view` : "picture";
      const keys = `Arrow keys move the cross-hair${subject.volume ? ", Page Up and Page Down change the slice" : ""}, plus and minus zoom.`;
      pane.canvas.setAttribute("aria-label", `${what}${state.compare ? ` of settings ${"AB"[pane.slot]}` : ""}. ${keys}`);
      // Not an image: it takes keys.
      pane.canvas.setAttribute("role", "application");
      pane.element.dataset.active = String(state.compare && pane.slot === state.active);
      if (!this.needs.has(pane)) {
        this.needs.set(pane, { wanted: null, busy: false, has: null });
      }
    }
  }

  /** Follows a change of the state. */
  update(state: State, before: State | null = null): void {
    if (!this.subject) return;
    if (before && (before.axis !== state.axis || before.layout !== state.layout || before.compare !== state.compare)) this.layOut(state);
    if (before && before.active !== state.active) {
      for (const pane of this.panes) pane.element.dataset.active = String(state.compare && pane.slot === state.active);
    }
    for (const pane of this.panes) this.want(pane, state);
    this.maps.follow(this.subject, this.panes);
    window.clearTimeout(this.resting);
    this.resting = window.setTimeout(() => { if (this.subject) this.maps.ask(); }, REST);
    this.since ??= performance.now();
    // What waits for labels is painted when they are there, once.
    if ([...this.needs.values()].every((needs) => !needs.wanted)) this.repaint();
  }

  /** Asks for the labels of a pane, one question at a time and always the newest. */
  private want(pane: Pane, state: State): void {
    const needs = this.needs.get(pane)!;
    const [plane, settings] = [this.subject!.plane(pane.axis, state.cross), state.settings[pane.slot]];
    const known = needs.wanted ?? needs.has;
    if (known && samePlane(known.plane, plane) && sameSettings(known.settings, settings)) return;
    needs.wanted = { plane, settings, since: performance.now() };
    this.fetch(pane, needs);
  }

  private fetch(pane: Pane, needs: Needs): void {
    if (needs.busy || !needs.wanted) return;
    const { plane, settings, since } = needs.wanted;
    needs.busy = true;
    const failed = (message: string) => {
      needs.busy = false;
      needs.wanted = null;
      this.events.trouble(message);
    };
    this.engine.ask(`slice ${pane.slot} ${pane.axis}`, { kind: "slice", slot: pane.slot, plane, settings }, ({ labels, milliseconds }) => {
      needs.busy = false;
      if (!this.subject || this.needs.get(pane) !== needs) return;
      needs.has = { plane, settings };
      if (needs.wanted && samePlane(needs.wanted.plane, plane) && sameSettings(needs.wanted.settings, settings)) needs.wanted = null;
      pane.shown = { plane, labels, map: null, shares: null };
      this.maps.apply(pane);
      this.frame.sampling = milliseconds;
      this.since = Math.min(this.since ?? since, since);
      this.fetch(pane, needs);
      this.repaint();
    }, failed);
  }

  /** Whether nothing that was asked for is missing. */
  get settled(): boolean {
    if (!this.subject) return false;
    return [...this.needs.values()].every((needs) => !needs.busy && !needs.wanted) && this.painting === 0;
  }

  /** Paints all panes with the next frame. */
  repaint(): void {
    if (this.painting !== 0) return;
    this.painting = requestAnimationFrame(() => {
      this.painting = 0;
      if (!this.subject) return;
      for (const pane of this.panes) {
        pane.fit();
        pane.paint(this.subject, this.store.state);
      }
      if (this.since !== null && [...this.needs.values()].every((needs) => !needs.busy && !needs.wanted)) {
        if (this.answered) this.frame.total = performance.now() - this.since;
        this.answered = true;
        this.since = null;
      }
      this.events.painted();
    });
  }
}
