// The groups of controls that say what is laid over the image, and how the image looks.

import { type Mark, predictionMark, raterMark, sampleMark } from "../marks";
import { type MapKind, type State, type Style, sampleCounts } from "../state";
import { classSwitches } from "./classes";
import { type Parts, type Scale, choice, group, lineSample, note, select, slider, toggle } from "./controls";
import { el, iconButton } from "./dom";
import { whyNot } from "./steering";

/** Whether the screen has room for everything. */
const ROOMY = window.innerHeight >= 1150;

const STYLE_NAMES: readonly (readonly [Style, string, string])[] = [
  ["off", "off", "not shown"], ["fill", "fill", "colored areas"], ["contour", "line", "outlines"], ["both", "both", "areas with outlines"],
];
const MAP_NAMES: Readonly<Record<MapKind, readonly [string, string]>> = {
  none: ["none", "no map"],
  entropy: ["entropy", "marginal entropy of the samples, 0 to 1"],
  probability: ["probability", "mean probability of the class over the samples"],
  correlation: ["moves with", "what moves with the voxel of the cross-hair: the correlation of the class's logits with its logit there"],
  agreement: ["agreement", "share of the raters that have the class"],
  disagreement: ["entropy", "entropy of the raters' labels, 0 where all agree, to 1"],
};

export function overlaysGroup(parts: Parts): HTMLElement {
  const { store, subject: { header }, follow } = parts;
  const count = header.classes.length;
  const row = (name: string, text: string, mark: Mark, now: (state: State) => Style, change: (style: Style) => void) => {
    const styles = choice<Style>(name, STYLE_NAMES, change, text);
    follow((state) => styles.set(now(state)));
    return el("div", { class: "row overlay" }, el("span", { class: "named label", title: text }, lineSample(mark), el("span", {}, text)), styles.element);
  };
  const opacity = slider({
    name: "opacity", label: "opacity", title: "Opacity of colored areas", scale: { low: 0, high: 1, step: 0.01, usual: 0.35 },
    change: (value) => store.update({ opacity: value }),
  });
  follow((state) => opacity.set(state.opacity));
  return group("Overlays", true, [], classSwitches(parts),
    row("sample-style", "sample", sampleMark(count), (state) => state.sampleStyle, (style) => store.update({ sampleStyle: style })),
    row("prediction-style", "mean prediction", predictionMark(count), (state) => state.predictionStyle, (style) => store.update({ predictionStyle: style })),
    ...header.raters.map((name, rater) => row(`rater-${rater}`, name, raterMark(rater, count), (state) => state.raterStyles[rater],
      (style) => store.update({ raterStyles: store.state.raterStyles.map((now, i) => (i === rater ? style : now)) }))),
    opacity.element);
}

export function mapsGroup({ store, subject: { header, stored }, follow }: Parts, told: HTMLElement): HTMLElement {
  const listed = (...names: MapKind[]) => choice<MapKind>("map", names.map((map) => [map, ...MAP_NAMES[map]] as const), (map) => store.update({ map }));
  const maps = listed("none", "entropy", "probability", "correlation");
  const ofRaters = listed("agreement", "disagreement");
  ofRaters.element.setAttribute("aria-label", "map of the raters");
  const opacity = slider({
    name: "map-opacity", label: "map opacity", scale: { low: 0, high: 1, step: 0.01, usual: 0.75 }, change: (value) => store.update({ mapOpacity: value }),
  });
  const focus = select("class", header.classes.slice(1).map((name, i) => [String(i + 1), name] as const), (value) => store.update({ focus: Number(value) }), "class of maps and volumes");
  const samples = select("samples", sampleCounts(header, stored).map((count) => [String(count), String(count)] as const), (value) => store.update({ samples: Number(value) }), "samples behind maps and volumes");
  const quantiles = toggle("quantiles", "quantile contours 10 · 50 · 90 %", "Outlines of the voxels that have the class in at least 10, 50 and 90 % of the samples", (on) => store.update({ quantiles: on }));
  follow((state) => {
    maps.set(state.map);
    ofRaters.set(state.map);
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
    header.raters.length > 1 ? el("div", { class: "row" }, el("span", { class: "label" }, "of raters"), ofRaters.element) : null,
    el("div", { class: "row" }, el("span", { class: "label" }, "class"), focus.element, el("span", { class: "label short" }, "samples"), samples.element),
    quantiles.element, opacity.element, told);
}

export function imageGroup({ store, subject, follow }: Parts): HTMLElement {
  const { header } = subject;
  const shown = toggle("image", "image", "Show the image", (on) => store.update({ image: on }));
  const smooth = toggle("smooth", "smooth", "Smooth the enlarged image; labels are never smoothed", (on) => store.update({ smooth: on }));
  const cross = toggle("crosshair", "cross-hair", "Show the cross-hair (h)", (on) => store.update({ crosshair: on }));
  const channel = select("channel", header.channels.map(({ name }, i) => [String(i), name] as const), (value) => {
    store.update({ channel: Number(value), window: subject.autoWindow(Number(value)) });
  });
  /** The values of a channel, for black (0) or white (1). */
  const scale = (of: number, side: 0 | 1): Scale => {
    const { low, high } = header.channels[of];
    const span = high - low || 1;
    return { low, high: low + span, step: 10 ** Math.floor(Math.log10(span / 200)), usual: subject.autoWindow(of)[side] };
  };
  const bound = (name: string, side: 0 | 1) => slider({
    name, label: name, scale: scale(0, side),
    change: (value) => {
      const { window: [black, white], channel: of } = store.state;
      const { step } = scale(of, side);
      store.update({ window: side === 0 ? [Math.min(value, white - step), white] : [black, Math.max(value, black + step)] });
    },
  });
  const [black, white] = [bound("black", 0), bound("white", 1)];
  let scaled = 0;
  follow((state) => {
    shown.set(state.image);
    smooth.set(state.smooth);
    cross.set(state.crosshair);
    channel.set(String(state.channel));
    if (scaled !== state.channel) {
      scaled = state.channel;
      black.rescale(scale(scaled, 0));
      white.rescale(scale(scaled, 1));
    }
    black.set(state.window[0]);
    white.set(state.window[1]);
  });
  const several = header.channels.length > 1 && !header.color;
  const reset = iconButton("reset", "Usual contrast", () => store.update({ window: subject.autoWindow(store.state.channel) }), "w");
  return group("Image", ROOMY, [reset],
    el("div", { class: "row toggles" }, shown.element, smooth.element, cross.element),
    several ? el("div", { class: "row" }, el("span", { class: "label" }, "channel"), channel.element) : null,
    ...(header.color ? [] : [black.element, white.element]));
}

export function aboutGroup({ subject: { header } }: Parts): HTMLElement {
  const facts: [string, string][] = [
    ["model", header.model.name],
    ["kind", header.kind],
    ["size", header.size[0] > 1 ? `${[...header.size].reverse().join(" × ")} voxels${header.has_spacing ? ` of ${[...header.spacing].reverse().map((mm) => Number(mm.toFixed(2))).join(" × ")} mm` : ""}` : `${header.size[2]} × ${header.size[1]} pixels`],
    ...(header.kind === "stochastic" ? [["rank", String(header.rank)] as [string, string]] : []),
  ];
  const scores = header.scores ?? [];
  return group("About this case", ROOMY, [],
    el("dl", {}, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    scores.length === 0 ? null : el("div", { class: "caption" }, "scores against the raters, by ssn evaluate"),
    scores.length === 0 ? null : el("dl", { class: "scores" }, ...scores.flatMap(({ title, value }) => [el("dt", {}, title), el("dd", {}, value)])),
    header.frozen && header.frozen.voxels > 0 ? note(`${header.frozen.voxels.toLocaleString("en")} voxels: ${header.frozen.rule}`) : null,
    note("For research only. Not a medical device, and not for diagnosis or treatment."));
}
