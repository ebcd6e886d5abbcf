// The views as a figure: without what is around the images, in any resolution, with a legend and the settings below.

import { Legend, legendEntries } from "./legend";
import { sampleOptions } from "./save";
import type { State } from "./state";
import type { Subject } from "./subject";
import { DARK } from "./view/annotations";
import type { Pane } from "./view/pane";
import type { Stage } from "./view/stage";
import { wrap } from "./wrap";

export const SCALES = ["1", "2", "4"] as const;
export type FigureScale = (typeof SCALES)[number];
export type FigureBackground = "white" | "black";

/** How a figure is made. */
export interface FigureOptions {
  /** Its pixels for each of the page. */
  readonly scale: FigureScale;
  readonly background: FigureBackground;
  readonly legend: boolean;
  /** Whether the case and the options of `ssn sample` stand below. */
  readonly settings: boolean;
}

export const USUAL_FIGURE: FigureOptions = { scale: "2", background: "white", legend: true, settings: true };

const COLORS = {
  white: { background: "#ffffff", ink: "#14181d", faint: "#4d5663", rim: "rgb(255 255 255 / 0.8)" },
  black: { ...DARK, background: "#000000", faint: "#b4bcc7" },
} as const;

/** Sizes in pixels of the page: between views, around all, of a line of settings, and the least width of what is below. */
const [GAP, MARGIN, LINE, LEAST] = [6, 10, 16, 340];

/** A view and where it stands in the figure. */
interface Placed {
  readonly canvas: HTMLCanvasElement;
  readonly left: number;
  readonly top: number;
}

/** The main view of each side with the others in a column beside it, in the pixels of the figure; and how large all is. */
function arrange(panes: readonly Pane[], picture: (pane: Pane) => HTMLCanvasElement, gap: number): { placed: Placed[]; width: number; height: number } {
  const placed: Placed[] = [];
  let [left, height] = [0, 0];
  for (const slot of [0, 1]) {
    const [main, ...others] = panes.filter((pane) => pane.slot === slot).map(picture).filter(({ width }) => width > 0);
    if (!main) continue;
    placed.push({ canvas: main, left, top: 0 });
    left += main.width + gap;
    let top = 0;
    for (const canvas of others) {
      placed.push({ canvas, left, top });
      top += canvas.height + gap;
    }
    left += others.length > 0 ? Math.max(...others.map(({ width }) => width)) + gap : 0;
    height = Math.max(height, main.height, top - gap);
  }
  return { placed, width: left - gap, height };
}

/** The views of a case as a picture. */
export function figure(stage: Stage, subject: Subject, state: State, { scale, background, legend: explained, settings }: FigureOptions): Promise<Blob> {
  const ratio = Number(scale);
  const { faint, ...colors } = COLORS[background];
  const views = arrange(stage.panes, (pane) => pane.picture(subject, state, ratio, colors), GAP * ratio);
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d")!;
  // From here on in pixels of the page.
  const width = Math.max(Math.ceil(views.width / ratio), LEAST);
  const mapShown = state.map !== "none" && stage.main().shown?.map !== null;
  const legend = new Legend(explained ? legendEntries(subject.header, state, mapShown, stage.samplesDrawn) : [], width, context);
  const font = "11px system-ui, sans-serif";
  context.font = font;
  const sides = (state.compare ? [0, 1] : [0]).map((slot) => [...(state.compare ? [`${"AB"[slot]}:`] : []), ...sampleOptions(subject, state.settings[slot])]);
  const lines = settings
    ? [[`${subject.header.name} ·`, ...sides[0]], ...sides.slice(1), ["Made by ssn view. Research use only, not a medical device."]]
      .flatMap((pieces) => wrap(pieces, width, (text) => context.measureText(text).width))
    : [];
  const below = (legend.height > 0 ? GAP + legend.height : 0) + (lines.length > 0 ? GAP + lines.length * LINE : 0);
  const tall = Math.ceil(views.height / ratio);
  // A canvas that gets a size forgets its font.
  canvas.width = (width + 2 * MARGIN) * ratio;
  canvas.height = (tall + below + 2 * MARGIN) * ratio;
  context.fillStyle = colors.background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  const aside = Math.round((width * ratio - views.width) / 2);
  for (const { canvas: view, left, top } of views.placed) context.drawImage(view, MARGIN * ratio + aside + left, MARGIN * ratio + top);
  context.scale(ratio, ratio);
  legend.paint(context, MARGIN, MARGIN + tall + GAP, colors.ink);
  context.font = font;
  context.fillStyle = faint;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const first = MARGIN + tall + below - lines.length * LINE;
  lines.forEach((line, i) => context.fillText(line, MARGIN, first + (i + 0.5) * LINE));
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error(`The browser cannot make a picture of ${canvas.width} × ${canvas.height} pixels. Choose a smaller size.`))), "image/png"));
}
