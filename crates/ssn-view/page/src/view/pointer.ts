// Mouse and touch on the views: click and cross-hair, pan, zoom, window, and scrolling through slices.

import type { Axis } from "../geometry";
import type { Triple } from "../package";
import type { Store } from "../state";
import type { Pane } from "./pane";
import type { Stage } from "./stage";

/** Pixels that the mouse may move in a click. */
const STILL = 4;
const ZOOM_RANGE = [0.2, 40] as const;

type Gesture = "click" | "pan" | "cross" | "window" | "pinch";

interface Point { readonly x: number; readonly y: number }

export interface PointerEvents {
  /** The voxel under the mouse, or none. */
  hover(voxel: Triple | null, pane: Pane | null): void;
}

export function listenToPointer(stage: Stage, store: Store, events: PointerEvents): void {
  const { element } = stage;
  let gesture: Gesture | null = null;
  let pane: Pane | null = null;
  let start: Point = { x: 0, y: 0 };
  let last: Point = { x: 0, y: 0 };
  let scrolled = 0;
  /** Fingers on the views, by their pointers. */
  const fingers = new Map<number, Point>();

  const paneAt = (target: EventTarget | null) => stage.panes.find((one) => one.canvas === target) ?? null;

  element.addEventListener("contextmenu", (event) => event.preventDefault());
  element.addEventListener("pointerdown", (event) => {
    pane = paneAt(event.target);
    if (!pane || !stage.subject) return;
    pane.canvas.setPointerCapture(event.pointerId);
    if (event.pointerType === "touch") fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (fingers.size === 2) {
      gesture = "pinch";
      return;
    }
    start = last = { x: event.clientX, y: event.clientY };
    gesture = event.button === 2 ? "window" : event.button === 1 ? "pan" : event.shiftKey ? "cross" : "click";
    if (store.state.compare && pane.slot !== store.state.active) store.update({ active: pane.slot });
    if (gesture === "cross") moveCross(pane, event);
    event.preventDefault();
  });
  element.addEventListener("pointermove", (event) => {
    if (!gesture || !pane) {
      const over = paneAt(event.target);
      events.hover(over && stage.subject ? over.voxel(stage.subject, event.clientX, event.clientY, true) : null, over);
      return;
    }
    if (gesture === "pinch") {
      pinch(pane, event);
      return;
    }
    const [dx, dy] = [event.clientX - last.x, event.clientY - last.y];
    if (gesture === "click" && Math.hypot(event.clientX - start.x, event.clientY - start.y) > STILL) gesture = "pan";
    if (gesture === "click") return;
    last = { x: event.clientX, y: event.clientY };
    if (gesture === "pan") pan(pane, dx, dy);
    if (gesture === "cross") moveCross(pane, event);
    if (gesture === "window") moveWindow(dx, dy);
  });
  element.addEventListener("pointerup", (event) => {
    if (lift(event)) return;
    if (gesture === "click" && pane) moveCross(pane, event, true);
    [gesture, pane] = [null, null];
  });
  element.addEventListener("pointercancel", (event) => { if (!lift(event)) [gesture, pane] = [null, null]; });
  element.addEventListener("pointerleave", () => events.hover(null, null));
  element.addEventListener("dblclick", () => store.update({ zoom: 1, center: null }));
  element.addEventListener("wheel", (event) => {
    const over = paneAt(event.target);
    if (!over || !stage.subject) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey || !stage.subject.volume) {
      zoomAt(stage, store, over, Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.002)), event);
      return;
    }
    // Wheels of mice step by about 100, pads by little: a slice for each step, or for each bit of way.
    scrolled += event.deltaMode === 1 ? event.deltaY * 40 : event.deltaY;
    const steps = Math.trunc(scrolled / 40);
    if (steps === 0) return;
    scrolled = 0;
    scroll(stage, store, over.axis, Math.abs(event.deltaY) >= 100 ? Math.sign(steps) : steps);
  }, { passive: false });

  /** A finger leaves; true where others of a pinch stay, which does nothing more until all have left. */
  function lift({ pointerId }: PointerEvent): boolean {
    fingers.delete(pointerId);
    return gesture === "pinch" && fingers.size > 0;
  }

  /** Two fingers: what was between them stays there, and grows with their distance. */
  function pinch(over: Pane, { pointerId, clientX, clientY }: PointerEvent): void {
    const from = fingers.get(pointerId);
    const other = [...fingers].find(([id]) => id !== pointerId)?.[1];
    if (!from || !other || fingers.size !== 2) return;
    const to = { x: clientX, y: clientY };
    fingers.set(pointerId, to);
    const apart = (a: Point) => Math.max(Math.hypot(a.x - other.x, a.y - other.y), 1);
    pan(over, (to.x - from.x) / 2, (to.y - from.y) / 2);
    zoomAt(stage, store, over, apart(to) / apart(from), { clientX: (to.x + other.x) / 2, clientY: (to.y + other.y) / 2 }, false);
  }

  function moveCross(over: Pane, event: PointerEvent, inside = false): void {
    const voxel = over.voxel(stage.subject!, event.clientX, event.clientY, inside);
    if (voxel) store.update({ cross: voxel });
  }

  function pan(over: Pane, dx: number, dy: number): void {
    const { subject } = stage;
    if (!subject || !over.transform) return;
    const { across, down, flipAcross, flipDown } = over.orientation(subject);
    const ratio = (window.devicePixelRatio || 1) / over.transform.scale;
    const { start: from, size } = subject.header.shown;
    const center = [0, 1, 2].map((axis) => store.state.center?.[axis] ?? from[axis] + (size[axis] - 1) / 2);
    const { spacing } = subject.header;
    const move = (axis: Axis, by: number, flip: boolean) => {
      const place = center[axis] - (flip ? -1 : 1) * by * ratio / spacing[axis];
      center[axis] = Math.min(Math.max(place, from[axis]), from[axis] + size[axis] - 1);
    };
    move(across, dx, flipAcross);
    move(down, dy, flipDown);
    store.update({ center: center as unknown as Triple });
  }

  function moveWindow(dx: number, dy: number): void {
    const { subject } = stage;
    if (!subject?.hasImage) return;
    const { low, high } = subject.header.channels[store.state.channel];
    const [black, white] = store.state.window;
    const step = (high - low) / 500;
    const level = (black + white) / 2 + dy * step;
    const width = Math.max(white - black + dx * step, step);
    store.update({ window: [level - width / 2, level + width / 2] });
  }
}

/** Zooms by a factor; the place under the mouse stays. An image that is whole again goes to the middle, unless fingers hold it. */
export function zoomAt(stage: Stage, store: Store, pane: Pane, factor: number, point: { clientX: number; clientY: number } | null, snaps = true): void {
  const { subject } = stage;
  if (!subject || !pane.transform) return;
  const zoom = Math.min(Math.max(store.state.zoom * factor, ZOOM_RANGE[0]), ZOOM_RANGE[1]);
  const { start, size } = subject.header.shown;
  const { across, down, flipAcross, flipDown } = pane.orientation(subject);
  const center = [0, 1, 2].map((axis) => store.state.center?.[axis] ?? start[axis] + (size[axis] - 1) / 2);
  if (point) {
    const box = pane.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    const scale = pane.transform.scale;
    const grow = zoom / store.state.zoom;
    const keep = (axis: Axis, offset: number, flip: boolean) => {
      const millimeters = (offset * ratio) / scale;
      const moved = center[axis] + ((flip ? -1 : 1) * millimeters * (1 - 1 / grow)) / subject.header.spacing[axis];
      center[axis] = Math.min(Math.max(moved, start[axis]), start[axis] + size[axis] - 1);
    };
    keep(across, point.clientX - box.left - box.width / 2, flipAcross);
    keep(down, point.clientY - box.top - box.height / 2, flipDown);
  }
  store.update(snaps && Math.abs(zoom - 1) < 0.01 ? { zoom: 1, center: null } : { zoom, center: center as unknown as Triple });
}

/** Moves the cross-hair by so many voxels to the right and down in a view, and shows it. */
export function nudge(stage: Stage, store: Store, pane: Pane, right: number, down: number): boolean {
  const { subject } = stage;
  if (!subject) return false;
  const { start, size } = subject.header.shown;
  const { across, down: downward, flipAcross, flipDown } = pane.orientation(subject);
  const cross: [number, number, number] = [...store.state.cross];
  for (const [axis, by, flip] of [[across, right, flipAcross], [downward, down, flipDown]] as const) {
    cross[axis] = Math.min(Math.max(cross[axis] + (flip ? -by : by), start[axis]), start[axis] + size[axis] - 1);
  }
  store.update({ cross, crosshair: true });
  return true;
}

/** Moves through slices along an axis. */
export function scroll(stage: Stage, store: Store, axis: Axis, steps: number): void {
  const { subject } = stage;
  if (!subject?.volume) return;
  const { start, size } = subject.header.shown;
  const cross: [number, number, number] = [...store.state.cross];
  cross[axis] = Math.min(Math.max(cross[axis] + steps, start[axis]), start[axis] + size[axis] - 1);
  if (cross[axis] !== store.state.cross[axis]) store.update({ cross });
}
