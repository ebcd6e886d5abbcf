// Surfaces in 3D, in a dialog: of the mean prediction, of the shown sample, of samples with a small, a middle and a large
// volume, and of raters. They are made by the worker, and drawn when something changes.

import { classColor, css } from "../color";
import { Dropped, type Engine } from "../engine";
import type { Request, Survey } from "../messages";
import { download, fileName } from "../save";
import type { Store } from "../state";
import type { Subject } from "../subject";
import { type Bounds, type Camera, Renderer, boundsOf, project } from "../surface/renderer";
import { START, turned } from "../surface/rotation";
import type { Surfaces } from "../surface/mesh";
import { DARK, paintScale, write } from "../view/annotations";
import { dot, select } from "./controls";
import { el, iconButton } from "./dom";
import { figure } from "./histogram";
import { SHARES, sampleAt } from "./shares";

const SHARE_NAMES: Readonly<Record<string, string>> = { "0.1": "small", "0.5": "median", "0.9": "large" };
const NO_WEBGL = "This browser gives the page no WebGL 2, which surfaces in 3D need. The slices show the same labels.";
const LOST = "The browser took the view back, for lack of memory or of time. Close it and open it again.";
/** Radians for a pixel of a drag and for a key, and the limits of the zoom. */
const [PER_PIXEL, PER_KEY, NEAREST, FARTHEST] = [0.008, 0.15, 20, 0.2];

export class SurfaceDialog {
  private canvas = el("canvas", {});
  private readonly notes = el("canvas", {
    tabindex: 0, role: "img", "data-control": "surface-view",
    "aria-label": "Surfaces in 3D. Arrow keys turn them, plus and minus zoom, 0 shows all from the front.",
  });
  private readonly view = el("div", { class: "surface-view" }, this.canvas, this.notes);
  private readonly message = el("p", { class: "surface-message", role: "status" });
  private readonly legend = el("div", { class: "chips", role: "group", "aria-label": "classes that are shown" });
  private readonly told = el("p", { class: "note", "aria-live": "polite" });
  private readonly what: ReturnType<typeof select>;
  readonly element: HTMLDialogElement;
  private renderer: Renderer | null = null;
  private survey: Survey | null = null;
  private shown: Surfaces | null = null;
  private readonly hidden = new Set<number>();
  private camera: Camera = { turn: START, middle: [0, 0, 0], scale: 1 };
  /** The box that is fitted into the view; kept when other surfaces are chosen, so that sizes can be compared. */
  private fitted: Bounds | null = null;
  private frame = 0;

  constructor(private readonly engine: Engine, private readonly store: Store, private readonly subject: Subject) {
    const { raters } = subject.header;
    this.what = select("surface-of", [
      ["prediction", "mean prediction"], ["sample", "this sample"],
      ...SHARES.map((share) => [String(share), `${SHARE_NAMES[share]} sample (${100 * share} % by volume)`] as const),
      ...raters.map((name, rater) => [`rater ${rater}`, name] as const),
    ], () => this.ask());
    this.what.element.setAttribute("aria-label", "surfaces of");
    this.element = el("dialog", { class: "surface", "aria-label": "Surfaces in 3D" },
      el("header", {}, el("strong", {}, "Surfaces"), this.what.element, el("span", { class: "filler" }),
        iconButton("camera", "Save this view as PNG", () => this.save()), iconButton("close", "Close", () => this.element.close())),
      el("div", { class: "surface-place" }, this.view, this.message), el("footer", {}, this.legend, this.told));
    this.element.addEventListener("close", () => this.end());
    this.listen();
    new ResizeObserver(() => this.repaint()).observe(this.view);
    this.show(null);
  }

  /** Shows the surfaces of what was chosen last, at first of the mean prediction. */
  open(): void {
    if (this.element.open) return;
    this.element.showModal();
    this.notes.focus();
    const { canvas } = this;
    this.renderer = Renderer.of(canvas);
    if (!this.renderer) return this.say(NO_WEBGL);
    canvas.addEventListener("webglcontextlost", () => { if (this.canvas === canvas) this.say(LOST); });
    this.ask();
  }

  /** Takes what is known of many samples; null while nothing is. */
  show(survey: Survey | null): void {
    this.survey = survey;
    for (const option of this.what.element.options) if (SHARES.some((share) => String(share) === option.value)) option.disabled = survey === null;
  }

  private end(): void {
    this.engine.cancel("surface");
    this.renderer?.end();
    this.renderer = null;
    this.shown = null;
    // A context that was given up does not come back: the next one needs a canvas of its own.
    const canvas = el("canvas", {});
    this.canvas.replaceWith(canvas);
    this.canvas = canvas;
  }

  /** Says something in the place of surfaces, or nothing. */
  private say(text: string): void {
    this.message.textContent = text;
    this.message.hidden = text === "";
  }

  /** What is chosen, as the worker takes it, and in words. */
  private chosen(): { request: Extract<Request, { kind: "surface" }>; name: string } {
    const { settings, state } = this.store;
    const value = this.what.element.value;
    const rater = /^rater (\d+)$/.exec(value);
    if (rater) return { request: { kind: "surface", settings, of: Number(rater[1]) }, name: this.subject.header.raters[Number(rater[1])] };
    if (value === "prediction") return { request: { kind: "surface", settings, of: "prediction" }, name: "The mean prediction" };
    const share = SHARES.find((one) => String(one) === value);
    if (share === undefined || !this.survey) return { request: { kind: "surface", settings, of: "sample" }, name: `Sample ${settings.sample}` };
    const { samples, total } = this.survey;
    const sample = sampleAt(this.survey, this.subject.header.classes.length, state.focus, share);
    const drawn = samples < total ? `the ${samples} samples drawn so far` : `${total} samples`;
    return {
      request: { kind: "surface", settings: { ...settings, sample }, of: "sample" },
      name: `Sample ${sample}, at ${100 * share} % of ${drawn} by the volume of ${this.subject.header.classes[state.focus]}`,
    };
  }

  private ask(): void {
    if (!this.renderer) return;
    const { request, name } = this.chosen();
    this.element.dataset.done = "false";
    this.say("The surfaces are being made.");
    this.engine.once("surface", request).then((surfaces) => this.take(surfaces, name)).catch((error: unknown) => {
      if (!(error instanceof Dropped)) this.say(error instanceof Error ? error.message : String(error));
    });
  }

  private take(surfaces: Surfaces, name: string): void {
    if (!this.renderer) return;
    this.shown = surfaces;
    this.say(surfaces.meshes.length === 0 ? `${name}: nothing is marked.` : "");
    const first = this.fitted === null;
    this.fitted ??= boundsOf(surfaces.meshes);
    this.renderer.show(surfaces.meshes, this.fitted);
    if (first) this.fit();
    this.fill(surfaces);
    this.told.textContent = `${name}.${surfaces.step > 1
      ? ` Drawn in blocks of ${surfaces.step} × ${surfaces.step} × ${surfaces.step} voxels, since it has too many faces for single ones: what is smaller than a block may be missing.` : ""}`;
    this.element.dataset.done = "true";
    this.element.dataset.triangles = String(surfaces.meshes.reduce((sum, { triangles }) => sum + triangles.length / 3, 0));
    this.element.dataset.step = String(surfaces.step);
    this.repaint();
  }

  /** The classes with their colors and volumes; each can be hidden. */
  private fill({ counts }: Surfaces): void {
    const { unit: { scale, name }, header: { classes } } = this.subject;
    this.legend.replaceChildren(...classes.slice(1).map((text, i) => {
      const label = i + 1;
      const button = el("button", { type: "button", class: "chip named", "aria-pressed": String(!this.hidden.has(label)), "data-control": `surface-class-${label}` },
        dot(css(classColor(label))), `${text} ${figure(counts[label] * scale)} ${name}`);
      button.disabled = counts[label] === 0;
      button.addEventListener("click", () => {
        if (!this.hidden.delete(label)) this.hidden.add(label);
        button.setAttribute("aria-pressed", String(!this.hidden.has(label)));
        this.repaint();
      });
      return button;
    }));
  }

  /** All surfaces in the view. */
  private fit(): void {
    if (!this.fitted) return;
    const { low, high } = this.fitted;
    const ratio = window.devicePixelRatio || 1;
    const radius = Math.hypot(...low.map((value, axis) => high[axis] - value)) / 2 || 1;
    const room = Math.min(this.view.clientWidth, this.view.clientHeight) * ratio;
    this.camera = { turn: this.camera.turn, middle: low.map((value, axis) => (value + high[axis]) / 2), scale: (0.46 * room) / radius };
  }

  private turn(right: number, down: number): void {
    this.camera = { ...this.camera, turn: turned(this.camera.turn, right, down) };
    this.repaint();
  }

  private zoom(factor: number): void {
    const before = this.camera;
    this.fit();
    const usual = this.camera.scale;
    this.camera = { ...before, scale: Math.min(Math.max(before.scale * factor, usual * FARTHEST), usual * NEAREST) };
    this.repaint();
  }

  private listen(): void {
    const { notes } = this;
    /** Fingers and mouse that are down. */
    const down = new Map<number, { x: number; y: number }>();
    const spread = () => {
      const [a, b] = [...down.values()];
      return Math.hypot(a.x - b.x, a.y - b.y);
    };
    notes.addEventListener("pointerdown", (event) => {
      notes.setPointerCapture(event.pointerId);
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    });
    notes.addEventListener("pointermove", (event) => {
      const last = down.get(event.pointerId);
      if (!last) return;
      const before = down.size === 2 ? spread() : 0;
      const [dx, dy] = [event.clientX - last.x, event.clientY - last.y];
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (down.size === 1) this.turn(PER_PIXEL * dx, PER_PIXEL * dy);
      else if (down.size === 2 && before > 0) this.zoom(spread() / before);
    });
    for (const kind of ["pointerup", "pointercancel"] as const) notes.addEventListener(kind, (event) => down.delete(event.pointerId));
    notes.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.002)));
    }, { passive: false });
    const keys: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => this.turn(-PER_KEY, 0), ArrowRight: () => this.turn(PER_KEY, 0), ArrowUp: () => this.turn(0, -PER_KEY), ArrowDown: () => this.turn(0, PER_KEY),
      "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8),
      "0": () => {
        this.camera = { ...this.camera, turn: START };
        this.fitted = this.shown && boundsOf(this.shown.meshes);
        this.renderer?.show(this.shown?.meshes ?? [], this.fitted);
        this.fit();
        this.repaint();
      },
    };
    notes.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  private repaint(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private paint(): void {
    const { renderer, canvas, notes, view, camera } = this;
    if (!renderer || !this.shown) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [view.clientWidth, view.clientHeight].map((length) => Math.max(1, Math.round(length * ratio)));
    if (canvas.width !== width || canvas.height !== height) {
      for (const one of [canvas, notes]) [one.width, one.height] = [width, height];
    }
    renderer.draw(camera, (label) => !this.hidden.has(label));
    const context = notes.getContext("2d")!;
    context.clearRect(0, 0, width, height);
    const { fitted } = this;
    if (!fitted) return;
    const target = { context, ratio, ...DARK };
    // The sides of the patient, a little beyond the faces of the box.
    const { low, high } = fitted;
    const middle = low.map((value, axis) => (value + high[axis]) / 2);
    if (this.subject.header.has_spacing) {
      [["R", "L"], ["A", "P"], ["S", "I"]].forEach((letters, axis) => letters.forEach((letter, side) => {
        const reach = (high[axis] - low[axis]) / 2 + (16 * ratio) / camera.scale;
        const { x, y } = project(camera, middle.map((value, i) => (i === axis ? value + (side === 0 ? reach : -reach) : value)), width, height);
        write(target, letter, x, y, "center", "middle", 13, 600);
      }));
      paintScale(target, camera);
    }
  }

  private save(): void {
    const { canvas, notes } = this;
    if (!this.renderer || !this.shown) return;
    this.paint();
    const both = el("canvas", { width: canvas.width, height: canvas.height });
    const context = both.getContext("2d")!;
    context.drawImage(canvas, 0, 0);
    context.drawImage(notes, 0, 0);
    both.toBlob((blob) => { if (blob) download(`${fileName(this.subject, this.store.settings)}_surfaces.png`, blob); }, "image/png");
  }
}
