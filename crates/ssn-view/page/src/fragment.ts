// The state as the part of the address after `#`: only what differs from what a case shows at first.

import type { Axis } from "./geometry";
import type { Settings } from "./messages";
import type { Header, Triple } from "./package";
import { rounded } from "./rounding";
import { LARGEST_SAMPLE, LARGEST_SEED } from "./sampling/address";
import { type Layout, type MapKind, type State, type Style, type Theme, limits, mapsOf, nearestCount } from "./state";

const EFFECTS: Readonly<Record<Style, string>> = { off: "o", fill: "f", contour: "c", both: "b" };

/** The name of a value in a table of names. */
function named<T extends string>(table: Readonly<Record<T, string>>, text: string): T | undefined {
  return (Object.keys(table) as T[]).find((key) => table[key] === text);
}

function clampSeed(seed: bigint): bigint {
  return seed < 0n ? 0n : seed > LARGEST_SEED ? LARGEST_SEED : seed;
}

const number = (x: number) => String(rounded(x));
const numbers = (list: readonly number[]) => list.map(number).join(",");
/** Gray values may be tiny: nine digits are what single precision holds. */
const greys = (list: readonly number[]) => list.map((x) => String(Number(x.toPrecision(9)))).join(",");

/** The fragment of a state of a case; `initial` is the state without one, and `address` names the case. */
export function writeFragment(state: State, initial: State, address: string, token: string | null): string {
  const parts: [string, string][] = [];
  if (token !== null) parts.push(["token", token]);
  parts.push(["case", address]);
  const changed = <K extends keyof State>(name: string, key: K, text: (value: State[K]) => string) => {
    const value = text(state[key]);
    if (value !== text(initial[key])) parts.push([name, value]);
  };
  const settings = (prefix: string, now: Settings, first: Settings) => {
    if (now.seed !== first.seed) parts.push([`${prefix}seed`, String(now.seed)]);
    if (now.sample !== first.sample) parts.push([`${prefix}i`, String(now.sample)]);
    if (now.temperature !== first.temperature) parts.push([`${prefix}t`, number(now.temperature)]);
    if (numbers(now.classScales) !== numbers(first.classScales)) parts.push([`${prefix}w`, numbers(now.classScales)]);
    if (numbers(now.modeWeights) !== numbers(first.modeWeights)) parts.push([`${prefix}g`, numbers(now.modeWeights)]);
    if (!now.diagonalNoise) parts.push([`${prefix}d`, "0"]);
  };
  settings("", state.settings[0], initial.settings[0]);
  if (state.compare) {
    parts.push(["compare", state.active === 0 ? "a" : "b"]);
    settings("b.", state.settings[1], initial.settings[1]);
  }
  changed("x", "cross", numbers);
  changed("axis", "axis", String);
  changed("layout", "layout", String);
  changed("zoom", "zoom", number);
  changed("at", "center", (center) => (center ? numbers(center) : ""));
  changed("sample", "sampleStyle", (style) => EFFECTS[style]);
  changed("prediction", "predictionStyle", (style) => EFFECTS[style]);
  changed("raters", "raterStyles", (styles) => styles.map((style) => EFFECTS[style]).join(""));
  changed("hide", "hiddenClasses", (labels) => labels.join(","));
  changed("opacity", "opacity", number);
  changed("mapopacity", "mapOpacity", number);
  changed("map", "map", String);
  changed("class", "focus", String);
  changed("n", "samples", String);
  changed("channel", "channel", String);
  changed("window", "window", greys);
  for (const [name, key] of SWITCHES) changed(name, key, (on) => (on ? "1" : "0"));
  changed("theme", "theme", String);
  return parts.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2C", ",")}`).join("&");
}

const SWITCHES = [
  ["quantiles", "quantiles"], ["gallery", "gallery"], ["image", "image"], ["smooth", "smooth"], ["cross", "crosshair"],
] as const;

/** Names and values of a fragment. */
export function fragmentParts(fragment: string): Map<string, string> {
  const parts = new Map<string, string>();
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at <= 0) continue;
    try {
      parts.set(part.slice(0, at), decodeURIComponent(part.slice(at + 1)));
    } catch {
      // A broken escape: the part is left out, as anything that cannot be read.
    }
  }
  return parts;
}

/** A number as it is written; not a number where the text is none. */
function asNumber(text: string): number {
  return text.trim() === "" ? NaN : Number(text);
}

/** The state of a fragment. Numbers are brought to the nearest that is possible; what cannot be read, or does not fit the case, stays as it is at first. */
export function readFragment(parts: ReadonlyMap<string, string>, initial: State, header: Header, stored: number): State {
  const bound = limits(header);
  const list = (name: string, count: number, low: number, high: number): number[] | undefined => {
    const found = parts.get(name)?.split(",").map(asNumber);
    if (!found || found.length !== count || found.some(Number.isNaN)) return undefined;
    return found.map((x) => Math.min(Math.max(x, low), high));
  };
  const one = (name: string, low: number, high: number) => list(name, 1, low, high)?.[0];
  /** Numbers that are used as they are written back. */
  const steered = (name: string, count: number, low: number, high: number) => list(name, count, low, high)?.map(rounded);
  const whole = (name: string, low: number, high: number) => {
    const found = one(name, low, high);
    return found === undefined ? undefined : Math.round(found);
  };
  const style = (text: string | undefined) => (text === undefined ? undefined : named(EFFECTS, text));
  const choice = <T extends string>(name: string, choices: readonly T[]) => choices.find((known) => known === parts.get(name));

  const settings = (prefix: string, first: Settings): Settings => {
    const seed = parts.get(`${prefix}seed`);
    const last = header.kind === "sampled" ? stored - 1 : LARGEST_SAMPLE;
    const read = {
      seed: seed !== undefined && /^-?\d{1,40}$/.test(seed) ? clampSeed(BigInt(seed)) : first.seed,
      sample: whole(`${prefix}i`, 0, last) ?? first.sample,
    };
    if (header.kind !== "stochastic") return { ...first, ...read };
    return {
      ...read,
      temperature: steered(`${prefix}t`, 1, 0, bound.temperature)?.[0] ?? first.temperature,
      classScales: steered(`${prefix}w`, first.classScales.length, -bound.class, bound.class) ?? first.classScales,
      modeWeights: steered(`${prefix}g`, first.modeWeights.length, -bound.mode, bound.mode) ?? first.modeWeights,
      diagonalNoise: parts.get(`${prefix}d`) !== "0",
    };
  };
  const place = (name: string, wholes: boolean): Triple | undefined => {
    const found = list(name, 3, -Infinity, Infinity);
    if (!found) return undefined;
    const inside = found.map((x, axis) => {
      const [start, size] = [header.shown.start[axis], header.shown.size[axis]];
      return Math.min(Math.max(wholes ? Math.round(x) : x, start), start + size - 1);
    });
    return inside as unknown as Triple;
  };
  const samples = whole("n", 1, Number.MAX_SAFE_INTEGER);
  const raters = parts.get("raters");
  const raterStyles = raters?.length === header.raters.length ? Array.from(raters, (letter, rater) => style(letter) ?? initial.raterStyles[rater]) : undefined;
  const hidden = parts.get("hide")?.split(",").map(asNumber);
  const hiddenClasses = hidden && header.classes.flatMap((_, label) => (label > 0 && hidden.includes(label) ? [label] : []));
  const volume = header.size[0] > 1;
  const channel = whole("channel", 0, Math.max(header.channels.length - 1, 0)) ?? initial.channel;
  const { low, high } = header.channels[channel] ?? { low: -Infinity, high: Infinity };
  // Contrast may be weaker than the values of a channel need, but not so that nothing is seen.
  const beyond = high > low ? high - low : 1;
  const window = list("window", 2, low - beyond, high + beyond) as [number, number] | undefined;
  const state: State = {
    ...initial,
    settings: [settings("", initial.settings[0]), settings("b.", initial.settings[1])],
    compare: parts.has("compare"),
    active: parts.get("compare") === "b" ? 1 : 0,
    cross: place("x", true) ?? initial.cross,
    axis: volume ? (whole("axis", 0, 2) as Axis | undefined) ?? initial.axis : 0,
    layout: volume ? choice<Layout>("layout", ["single", "three"]) ?? initial.layout : "single",
    zoom: one("zoom", 0.2, 40) ?? initial.zoom,
    center: place("at", false) ?? initial.center,
    sampleStyle: style(parts.get("sample")) ?? initial.sampleStyle,
    predictionStyle: style(parts.get("prediction")) ?? initial.predictionStyle,
    raterStyles: raterStyles ?? initial.raterStyles,
    hiddenClasses: hiddenClasses ?? initial.hiddenClasses,
    opacity: one("opacity", 0, 1) ?? initial.opacity,
    mapOpacity: one("mapopacity", 0, 1) ?? initial.mapOpacity,
    map: choice<MapKind>("map", mapsOf(header)) ?? initial.map,
    focus: whole("class", 1, header.classes.length - 1) ?? initial.focus,
    samples: samples === undefined ? initial.samples : nearestCount(header, stored, samples),
    channel,
    window: window && window[0] < window[1] ? window : initial.window,
    theme: choice<Theme>("theme", ["auto", "light", "dark"]) ?? initial.theme,
  };
  const switches = SWITCHES.filter(([name]) => parts.has(name)).map(([name, key]) => [key, parts.get(name) === "1"]);
  return { ...state, ...Object.fromEntries(switches) };
}
