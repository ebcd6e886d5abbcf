// The groups of controls that say which sample is drawn, and how its noise is steered.

import { classColor, css } from "../color";
import { type Header, voxels } from "../package";
import { LARGEST_SAMPLE, LARGEST_SEED } from "../sampling/address";
import { defaultSettings, limits } from "../state";
import { type Parts, type Slider, dot, group, note, select, slider, toggle } from "./controls";
import { el, iconButton, setIcon } from "./dom";
import { toast } from "./messages";

/** Modes that are shown before the rest is asked for. */
const FEW_MODES = 6;

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

export function sampleGroup({ store, subject, motion, follow }: Parts): HTMLElement {
  const last = subject.header.kind === "sampled" ? subject.stored - 1 : LARGEST_SAMPLE;
  const go = (sample: number) => store.steer({ sample: Math.min(Math.max(Math.round(sample), 0), last) });
  const number = el("input", { type: "number", min: 0, max: last, step: 1, class: "wide", "data-control": "sample", "aria-label": "number of the sample" });
  number.addEventListener("change", () => (Number.isFinite(number.valueAsNumber) ? go(number.valueAsNumber) : (number.value = String(store.settings.sample))));
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
  const play = iconButton("play", "Play through samples", () => motion.play(), "space");
  play.dataset.control = "play";
  const speed = select("speed", [["1", "1 / s"], ["3", "3 / s"], ["8", "8 / s"], ["20", "20 / s"]], (value) => { motion.speed = Number(value); }, "samples in a second");
  speed.set("3");
  speed.element.title = "samples in a second";
  follow((state) => {
    const { sample, seed: now } = state.settings[state.active];
    if (document.activeElement !== number) number.value = String(sample);
    if (document.activeElement !== seed) seed.value = String(now);
    setIcon(play, motion.playing ? "pause" : "play");
  });
  const first = iconButton("reset", "The seed that the case came with", () => store.steer({ seed: BigInt(subject.header.seed) }));
  first.disabled = seed.disabled;
  return group("Sample", true, [],
    el("div", { class: "row" }, el("span", { class: "label" }, "number"),
      iconButton("left", "Previous sample", () => go(store.settings.sample - 1), "←"), number,
      iconButton("right", "Next sample", () => go(store.settings.sample + 1), "→"), play, speed.element),
    el("div", { class: "row" }, el("span", { class: "label" }, "seed"), seed, first));
}

export function steeringGroup({ store, subject: { header }, follow }: Parts): HTMLElement {
  const why = whyNot(header.kind);
  const bound = limits(header);
  const sliders: Slider[] = [];
  const temperature = slider({
    name: "temperature", label: "temperature", title: "All noise times this: 0 gives the mean prediction, more than 1 exaggerates",
    scale: { low: 0, high: bound.temperature, step: 0.05, usual: 1 }, stated: true, change: (value) => store.steer({ temperature: value }),
  });
  follow((state) => temperature.set(state.settings[state.active].temperature));
  sliders.push(temperature);
  // A single class that is off or on has one row of logits, that of `on`.
  const names = header.classes.slice(header.classes.length - header.logits);
  /** The label of a row of logits. */
  const label = (row: number) => (header.logits === 1 ? 1 : row);
  const order = names.map((_, k) => k).sort((a, b) => Number(label(a) === 0) - Number(label(b) === 0));
  for (const k of order) {
    const shown = label(k);
    const one = slider({
      name: `class-${k}`, label: el("span", { class: "named" }, dot(shown === 0 ? "transparent" : css(classColor(shown)), shown === 0), names[k]),
      title: `The noise of ${names[k]} times this`,
      scale: { low: -bound.class, high: bound.class, step: 0.05, usual: 1 }, stated: true,
      change: (value) => store.steer({ classScales: store.settings.classScales.map((now, i) => (i === k ? value : now)) }),
    });
    follow((state) => one.set(state.settings[state.active].classScales[k]));
    sliders.push(one);
  }
  const diagonal = toggle("diagonal", "noise of single voxels", "The independent noise of the diagonal, beside that which voxels share", (on) => store.steer({ diagonalNoise: on }));
  follow((state) => diagonal.set(state.settings[state.active].diagonalNoise));
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
    ...sliders.slice(1).map((one) => one.element), diagonal.element, why ? note(why) : frozenNote(header));
}

/** How much of the case no setting moves; the whole rule is its title. */
function frozenNote({ frozen, region }: Header): HTMLElement | null {
  if (!frozen || frozen.voxels === 0) return null;
  const share = (100 * frozen.voxels) / voxels(region.size);
  const told = note(`${share.toFixed(share > 99 ? 2 : 0)} % of the voxels have the same label under all of these settings.`);
  told.title = frozen.rule;
  return told;
}

export function modesGroup({ store, subject: { header }, motion, follow }: Parts): HTMLElement {
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
      scale: { low: -bound, high: bound, step: 0.05, usual: 1 }, stated: true, after: sweep,
      change: (value) => store.steer({ modeWeights: store.settings.modeWeights.map((now, i) => (i === q ? value : now)) }),
    });
    follow((state) => {
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
