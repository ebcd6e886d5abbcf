// The panel of controls at the side of the views.

import { classColour, css, raterColour } from "../colour";
import { LARGEST_SAMPLE, LARGEST_SEED } from "../sampling/address";
import { MAPS, type MapKind, SAMPLE_COUNTS, type State, type Store, type Style, defaultSettings, limits } from "../state";
import type { Subject } from "../subject";
import { type Slider, choice, dot, group, note, select, slider, toggle } from "./controls";
import { el, iconButton, setIcon } from "./dom";
import { Histogram } from "./histogram";
import { toast } from "./messages";
import type { Motion } from "./motion";

/** Modes that are shown before the rest is asked for. */
const FEW_MODES = 6;
/** Whether a screen has room for everything. */
const ROOMY = window.innerHeight >= 1150;

const STYLE_NAMES: readonly (readonly [Style, string, string])[] = [
  ["off", "off", "not shown"], ["fill", "fill", "coloured areas"], ["contour", "line", "outlines"], ["both", "both", "areas with outlines"],
];
const MAP_NAMES: Readonly<Record<MapKind, readonly [string, string]>> = {
  none: ["none", "no map"],
  entropy: ["entropy", "marginal entropy of the samples, 0 to 1"],
  probability: ["probability", "mean probability of the class over the samples"],
  correlation: ["moves with", "what moves with the voxel of the cross-hair: the correlation of the class's logits with its logit there"],
};

/** Why samples of a network cannot be steered, if they cannot. */
export function whyNot(kind: string): string {
  switch (kind) {
    case "deterministic":
      return "This network is deterministic: it has no noise that could be steered. Its samples draw every voxel by itself, which shows the grain that correlations take away.";
    case "sampled":
      return "This network drew its samples itself: those are shown, and neither seed nor steering has a part in them.";
    default:
      return "";
  }
}

export class Panel {
  readonly element = el("aside", { class: "panel", "aria-label": "Controls" });
  readonly histogram: Histogram;
  private syncs: ((state: State) => void)[] = [];
  private readonly slots = choice<"0" | "1">("settings", [["0", "Settings A"], ["1", "Settings B"]], (slot) => this.store.update({ active: slot === "0" ? 0 : 1 }));
  private readonly correlationNote = note("");

  constructor(private readonly store: Store, private readonly subject: Subject, private readonly motion: Motion) {
    const { header } = subject;
    this.histogram = new Histogram(subject, (sample) => store.steer({ sample }));
    const copy = el("button", { type: "button", class: "text-button", title: "Make these settings those of the other side too" }, "copy to other");
    copy.addEventListener("click", () => { const one = store.settings; store.update({ settings: [one, one] }); });
    const compared = el("div", { class: "slots" }, this.slots.element, copy);
    this.syncs.push((state) => {
      compared.hidden = !state.compare;
      this.slots.set(state.active === 0 ? "0" : "1");
    });
    const why = whyNot(header.kind);
    this.element.append(
      compared,
      el("div", { class: "column" }, this.sampleGroup(), this.steeringGroup(why), header.kind === "stochastic" && header.rank > 0 ? this.modesGroup() : null),
      el("div", { class: "column" }, this.overlaysGroup(), this.mapsGroup(), this.volumesGroup(), subject.hasImage ? this.imageGroup() : null, this.aboutGroup()),
    );
  }

  /** Follows the state. */
  sync(state: State): void {
    for (const sync of this.syncs) sync(state);
  }

  /** Says whether the voxel of the cross-hair moves. */
  correlated(known: boolean): void {
    this.correlationNote.textContent = known ? "" : "The voxel of the cross-hair is the same in all samples, so nothing moves with it. Click another.";
  }

  private sampleGroup(): HTMLElement {
    const { store, subject } = this;
    const last = subject.header.kind === "sampled" ? subject.stored - 1 : LARGEST_SAMPLE;
    const go = (sample: number) => store.steer({ sample: Math.min(Math.max(Math.round(sample), 0), last) });
    const number = el("input", { type: "number", min: 0, max: last, step: 1, class: "wide", "data-control": "sample", "aria-label": "number of the sample" });
    number.addEventListener("change", () => (Number.isFinite(number.valueAsNumber) ? go(number.valueAsNumber) : this.sync(store.state)));
    const seed = el("input", { type: "text", inputmode: "numeric", class: "wide", "data-control": "seed", "aria-label": "seed", spellcheck: "false" });
    seed.addEventListener("change", () => {
      const text = seed.value.trim();
      if (/^\d{1,20}$/.test(text) && BigInt(text) <= LARGEST_SEED) store.steer({ seed: BigInt(text) });
      else {
        seed.value = String(store.settings.seed);
        toast(`A seed is a whole number from 0 to ${LARGEST_SEED}.`);
      }
    });
    if (subject.header.kind === "sampled") {
      seed.disabled = true;
      seed.title = whyNot("sampled");
    }
    const play = iconButton("play", "Play through samples", () => this.motion.play(), "space");
    play.dataset.control = "play";
    const speed = select("speed", [["1", "1 / s"], ["3", "3 / s"], ["8", "8 / s"], ["20", "20 / s"]], (value) => { this.motion.speed = Number(value); });
    speed.set("3");
    speed.element.title = "samples in a second";
    this.syncs.push((state) => {
      const { sample, seed: now } = state.settings[state.active];
      if (document.activeElement !== number) number.value = String(sample);
      if (document.activeElement !== seed) seed.value = String(now);
      setIcon(play, this.motion.playing ? "pause" : "play");
    });
    return group("Sample", true, [],
      el("div", { class: "row" }, el("span", { class: "label" }, "number"),
        iconButton("left", "Previous sample", () => go(store.settings.sample - 1), "←"), number,
        iconButton("right", "Next sample", () => go(store.settings.sample + 1), "→"), play, speed.element),
      el("div", { class: "row" }, el("span", { class: "label" }, "seed"), seed,
        iconButton("reset", "The seed that the case came with", () => store.steer({ seed: BigInt(subject.header.seed) }))));
  }

  private steeringGroup(why: string): HTMLElement {
    const { store, subject: { header } } = this;
    const bound = limits(header);
    const sliders: Slider[] = [];
    const temperature = slider({
      name: "temperature", label: "temperature", title: "All noise times this: 0 gives the mean prediction, more than 1 exaggerates",
      low: 0, high: bound.temperature, step: 0.05, usual: 1, change: (value) => store.steer({ temperature: value }),
    });
    this.syncs.push((state) => temperature.set(state.settings[state.active].temperature));
    sliders.push(temperature);
    // A single class that is off or on has one row of logits, that of `on`.
    const names = header.classes.slice(header.classes.length - header.logits);
    const order = names.map((_, k) => k).sort((a, b) => Number(this.label(a) === 0) - Number(this.label(b) === 0));
    for (const k of order) {
      const label = this.label(k);
      const one = slider({
        name: `class-${k}`, label: el("span", { class: "named" }, dot(label === 0 ? "transparent" : css(classColour(label)), label === 0), names[k]),
        title: `The noise of ${names[k]} times this`,
        low: -bound.class, high: bound.class, step: 0.05, usual: 1,
        change: (value) => store.steer({ classScales: store.settings.classScales.map((now, i) => (i === k ? value : now)) }),
      });
      this.syncs.push((state) => one.set(state.settings[state.active].classScales[k]));
      sliders.push(one);
    }
    const diagonal = toggle("diagonal", "noise of single voxels", "The independent noise of the diagonal, beside that which voxels share", (on) => store.steer({ diagonalNoise: on }));
    this.syncs.push((state) => diagonal.set(state.settings[state.active].diagonalNoise));
    if (why) {
      sliders.forEach((one) => one.enable(false, why));
      diagonal.enable(false, why);
    }
    const reset = iconButton("reset", "Steer nothing", () => {
      const { seed, sample } = store.settings;
      store.steer({ ...defaultSettings(header), seed, sample });
    }, "r");
    reset.disabled = why !== "";
    return group("Steering", true, [reset], temperature.element, el("div", { class: "caption" }, "scale of the noise of"),
      ...sliders.slice(1).map((one) => one.element), diagonal.element, why ? note(why) : null);
  }

  /** The label of a row of logits. */
  private label(row: number): number {
    return this.subject.header.logits === 1 ? 1 : row;
  }

  private modesGroup(): HTMLElement {
    const { store, subject: { header }, motion } = this;
    const bound = limits(header).mode;
    const order = header.modes.map((_, q) => q).sort((a, b) => header.modes[b].share - header.modes[a].share);
    const rows = order.map((q, place) => {
      const { share } = header.modes[q];
      const bar = el("span", { class: "share" });
      bar.style.setProperty("--share", `${Math.round(100 * share)}%`);
      const sweep = iconButton("play", "Sweep this mode", () => motion.sweep(q));
      sweep.dataset.control = `sweep-${q}`;
      const one = slider({
        name: `mode-${q}`, label: el("span", { class: "mode" }, bar, el("span", { class: "percent" }, share >= 0.0995 ? `${Math.round(100 * share)} %` : `${(100 * share).toFixed(1)} %`)),
        title: `Mode ${place + 1}, column ${q} of the factor (--mode-weight ${q}=X): ${(100 * share).toFixed(1)} % of the variance that voxels share. Its noise times the weight`,
        low: -bound, high: bound, step: 0.05, usual: 1, after: sweep,
        change: (value) => store.steer({ modeWeights: store.settings.modeWeights.map((now, i) => (i === q ? value : now)) }),
      });
      this.syncs.push((state) => {
        one.set(state.settings[state.active].modeWeights[q]);
        setIcon(sweep, motion.swept === q ? "pause" : "play");
      });
      if (place >= FEW_MODES) one.element.classList.add("rest");
      return one.element;
    });
    const reset = iconButton("reset", "All modes as they are", () => store.steer({ modeWeights: header.modes.map(() => 1) }));
    const list = el("div", { class: "modes" }, ...rows);
    const only = el("button", { type: "button", class: "text-button", title: "Weight 1 for the largest mode and 0 for all others" }, "largest only");
    only.addEventListener("click", () => store.steer({ modeWeights: header.modes.map((_, q) => (q === order[0] ? 1 : 0)) }));
    const more = el("button", { type: "button", class: "text-button more-modes" }, `all ${rows.length} modes`);
    more.addEventListener("click", () => {
      const all = list.classList.toggle("all");
      more.textContent = all ? "fewer" : `all ${rows.length} modes`;
    });
    more.hidden = rows.length <= FEW_MODES;
    return group("Modes of variation", true, [reset], list, el("div", { class: "row" }, more, only));
  }

  private overlaysGroup(): HTMLElement {
    const { store, subject: { header } } = this;
    const one = header.classes.length === 2;
    const row = (name: string, label: Node, now: (state: State) => Style, change: (style: Style) => void) => {
      const styles = choice<Style>(name, STYLE_NAMES, change);
      this.syncs.push((state) => styles.set(now(state)));
      return el("div", { class: "row overlay" }, label, styles.element);
    };
    const label = (text: string, colour: string, hollow: boolean) => el("span", { class: "named label" }, one || hollow ? dot(colour, hollow) : null, text);
    const opacity = slider({
      name: "opacity", label: "opacity", title: "Opacity of coloured areas", low: 0, high: 1, step: 0.01, usual: 0.35,
      change: (value) => store.update({ opacity: value }),
    });
    this.syncs.push((state) => opacity.set(state.opacity));
    const classes = one ? null : el("div", { class: "classes" }, ...header.classes.slice(1).map((name, i) => el("span", { class: "named" }, dot(css(classColour(i + 1))), name)));
    return group("Overlays", true, [], classes,
      row("sample-style", label("sample", css(classColour(1)), false), (state) => state.sampleStyle, (style) => store.update({ sampleStyle: style })),
      row("prediction-style", label("mean prediction", one ? "var(--text)" : "var(--text)", true), (state) => state.predictionStyle, (style) => store.update({ predictionStyle: style })),
      ...header.raters.map((name, rater) => row(`rater-${rater}`, label(name, css(raterColour(rater)), false), (state) => state.raterStyles[rater],
        (style) => store.update({ raterStyles: store.state.raterStyles.map((now, i) => (i === rater ? style : now)) }))),
      opacity.element);
  }

  private mapsGroup(): HTMLElement {
    const { store, subject: { header, stored } } = this;
    const maps = choice<MapKind>("map", MAPS.map((map) => [map, ...MAP_NAMES[map]] as const), (map) => store.update({ map }));
    const opacity = slider({
      name: "map-opacity", label: "map opacity", low: 0, high: 1, step: 0.01, usual: 0.75, change: (value) => store.update({ mapOpacity: value }),
    });
    const focus = select("class", header.classes.slice(1).map((name, i) => [String(i + 1), name] as const), (value) => store.update({ focus: Number(value) }));
    const counts = header.kind === "sampled" ? [...SAMPLE_COUNTS.filter((count) => count < stored), stored] : SAMPLE_COUNTS;
    const samples = select("samples", counts.map((count) => [String(count), String(count)] as const), (value) => store.update({ samples: Number(value) }));
    const quantiles = toggle("quantiles", "quantile contours 10 · 50 · 90 %", "Outlines of the voxels that have the class in at least 10, 50 and 90 % of the samples", (on) => store.update({ quantiles: on }));
    this.syncs.push((state) => {
      maps.set(state.map);
      opacity.set(state.mapOpacity);
      focus.set(String(state.focus));
      samples.set(String(state.samples));
      quantiles.set(state.quantiles);
      opacity.element.hidden = state.map === "none";
    });
    if (header.kind !== "stochastic") {
      const why = `${whyNot(header.kind)} There are no correlations between voxels in its file.`;
      const button = maps.element.querySelector<HTMLButtonElement>('[data-control="map-correlation"]')!;
      button.disabled = true;
      button.title = why;
    }
    return group("Maps of many samples", true, [],
      maps.element,
      el("div", { class: "row" }, el("span", { class: "label" }, "class"), focus.element, el("span", { class: "label short" }, "samples"), samples.element),
      quantiles.element, opacity.element, this.correlationNote);
  }

  private volumesGroup(): HTMLElement {
    const gallery = iconButton("grid", "Gallery of samples that differ", () => this.store.update({ gallery: !this.store.state.gallery }), "g");
    this.syncs.push((state) => {
      this.histogram.sync(state);
      gallery.setAttribute("aria-pressed", String(state.gallery));
    });
    return group("Volumes", true, [gallery], this.histogram.element);
  }

  private imageGroup(): HTMLElement {
    const { store, subject } = this;
    const { header } = subject;
    const shown = toggle("image", "image", "Show the image", (on) => store.update({ image: on }));
    const smooth = toggle("smooth", "smooth", "Smooth the enlarged image; labels are never smoothed", (on) => store.update({ smooth: on }));
    const cross = toggle("crosshair", "cross-hair", "Show the cross-hair (h)", (on) => store.update({ crosshair: on }));
    const channel = select("channel", header.channels.map(({ name }, i) => [String(i), name] as const), (value) => {
      store.update({ channel: Number(value), window: subject.autoWindow(Number(value)) });
    });
    const { low, high } = header.channels[0];
    const span = high - low || 1;
    const step = 10 ** Math.floor(Math.log10(span / 200));
    const bound = (name: string, side: 0 | 1) => slider({
      name, label: name, low, high, step, usual: subject.autoWindow(0)[side],
      change: (value) => {
        const [black, white] = store.state.window;
        store.update({ window: side === 0 ? [Math.min(value, white - step), white] : [black, Math.max(value, black + step)] });
      },
    });
    const [black, white] = [bound("black", 0), bound("white", 1)];
    this.syncs.push((state) => {
      shown.set(state.image);
      smooth.set(state.smooth);
      cross.set(state.crosshair);
      channel.set(String(state.channel));
      black.set(state.window[0]);
      white.set(state.window[1]);
    });
    const several = header.channels.length > 1 && !header.colour;
    const reset = iconButton("reset", "Usual contrast", () => store.update({ window: subject.autoWindow(store.state.channel) }), "w");
    return group("Image", ROOMY, [reset],
      el("div", { class: "row toggles" }, shown.element, smooth.element, cross.element),
      several ? el("div", { class: "row" }, el("span", { class: "label" }, "channel"), channel.element) : null,
      ...(header.colour ? [] : [black.element, white.element]));
  }

  private aboutGroup(): HTMLElement {
    const { header } = this.subject;
    const facts: [string, string][] = [
      ["model", header.model.name],
      ["kind", header.kind],
      ["size", header.size[0] > 1 ? `${[...header.size].reverse().join(" × ")} voxels of ${[...header.spacing].reverse().map((mm) => Number(mm.toFixed(2))).join(" × ")} mm` : `${header.size[2]} × ${header.size[1]} pixels`],
      ...(header.kind === "stochastic" ? [["rank", String(header.rank)] as [string, string]] : []),
    ];
    return group("About this case", ROOMY, [],
      el("dl", {}, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
      header.frozen && header.frozen.voxels > 0 ? note(`${header.frozen.voxels.toLocaleString("en")} voxels: ${header.frozen.rule}`) : null,
      note("For research only. Not a medical device, and not for diagnosis or treatment."));
  }
}
