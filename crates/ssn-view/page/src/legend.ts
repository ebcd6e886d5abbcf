// The legend of a figure: the classes and label maps that are shown, and the scale of the map.

import { INK, QUANTILES, classColor, css, rim } from "./color";
import { type Mark, predictionMark, raterMark, sampleMark } from "./marks";
import type { Header } from "./package";
import type { State, Style } from "./state";
import { mapScale, paintColors } from "./view/annotations";
import { LEVELS } from "./view/quantiles";

/** How an area or outline looks in the legend. */
interface Swatch {
  readonly kind: "swatch";
  readonly color: string;
  /** The opacity of its area; 0 for none. */
  readonly area: number;
  /** Its outline; null for none. */
  readonly line: { readonly dash: readonly number[]; readonly width: number; readonly rim: string } | null;
}

/** The colors of a map with what their ends mean. */
interface ColorBar {
  readonly kind: "bar";
  readonly table: Uint8Array;
  readonly low: string;
  readonly high: string;
}

export interface LegendEntry {
  readonly text: string;
  readonly look: Swatch | ColorBar;
}

function swatch(color: Parameters<typeof css>[0], area: number, line: { dash: readonly number[]; width: number } | null): Swatch {
  return { kind: "swatch", color: css(color), area, line: line && { ...line, rim: css(rim(color), 0.9) } };
}

/** What is shown of a case, in the order in which it is explained; `samples` are behind the map. */
export function legendEntries(header: Header, state: State, mapShown: boolean, samples: number): LegendEntry[] {
  const count = header.classes.length;
  const entries: LegendEntry[] = [];
  const maps: [string, Style, Mark, number][] = [
    [state.compare ? "samples" : `sample ${state.settings[0].sample}`, state.sampleStyle, sampleMark(count), 2],
    ["mean prediction", state.predictionStyle, predictionMark(count), 1.5],
    ...header.raters.map((name, rater): [string, Style, Mark, number] => [name, state.raterStyles[rater], raterMark(rater, count), 1.75]),
  ];
  const shown = maps.filter(([, style]) => style !== "off");
  if (count > 2 && shown.length > 0) {
    for (let label = 1; label < count; label++) {
      if (!state.hiddenClasses.includes(label)) entries.push({ text: header.classes[label], look: swatch(classColor(label), 1, null) });
    }
  }
  for (const [name, style, mark, width] of shown) {
    // Under a map, areas are shown as lines.
    const area = !mapShown && (style === "fill" || style === "both") ? state.opacity : 0;
    const line = mapShown || style === "contour" || style === "both" ? { dash: mark.dash, width } : null;
    entries.push({ text: count === 2 && name.startsWith("sample") ? `${name} (${header.classes[1]})` : name, look: swatch(mark.own ?? INK, area, line) });
  }
  if (state.quantiles) {
    LEVELS.forEach(([level, width, dash], i) => {
      const [before, after] = [i === 0 ? `${header.classes[state.focus]} in ` : "", i === LEVELS.length - 1 ? ` of ${samples} samples` : ""];
      entries.push({ text: `${before}≥ ${100 * level} %${after}`, look: swatch(QUANTILES, 0, { dash, width }) });
    });
  }
  if (mapShown) {
    const { title, low, high, table } = mapScale(state.map, header.classes[state.focus], header.raters.length);
    const source = { none: "", correlation: ", with the cross-hair", entropy: `, ${samples} samples`, probability: `, ${samples} samples`, agreement: "", disagreement: `, ${header.raters.length} raters` };
    entries.push({ text: title + source[state.map], look: { kind: "bar", table, low, high } });
  }
  return entries;
}

/** Sizes in pixels of the page. */
const [ROW, BOX, BAR, GAP, SPACE] = [20, 26, 90, 6, 18];
const FONT = 12;

type Ruler = (text: string) => number;

/** The width of an entry, in pixels of the page. */
function widthOf({ text, look }: LegendEntry, ruler: Ruler): number {
  const sign = look.kind === "swatch" ? BOX : BAR + ruler(look.low) + ruler(look.high) + 2 * GAP;
  return sign + GAP + ruler(text);
}

/** Entries in rows no wider than that, with where each begins. */
export function legendRows(entries: readonly LegendEntry[], width: number, ruler: Ruler): { entry: LegendEntry; left: number }[][] {
  const rows: { entry: LegendEntry; left: number }[][] = [];
  let left = Infinity;
  for (const entry of entries) {
    const wide = widthOf(entry, ruler);
    if (left + wide > width) {
      rows.push([]);
      left = 0;
    }
    rows[rows.length - 1].push({ entry, left });
    left += wide + SPACE;
  }
  return rows;
}

/** A legend that is laid out for a width. */
export class Legend {
  private readonly rows: ReturnType<typeof legendRows>;

  /** `context` measures, in pixels of the page. */
  constructor(entries: readonly LegendEntry[], width: number, context: CanvasRenderingContext2D) {
    context.font = `${FONT}px system-ui, sans-serif`;
    this.rows = legendRows(entries, width, (text) => context.measureText(text).width);
  }

  get height(): number {
    return ROW * this.rows.length;
  }

  /** Paints it in pixels of the page, which `context` is scaled to. */
  paint(context: CanvasRenderingContext2D, left: number, top: number, ink: string): void {
    context.font = `${FONT}px system-ui, sans-serif`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    this.rows.forEach((row, i) => {
      const middle = top + (i + 0.5) * ROW;
      for (const { entry: { text, look }, left: from } of row) {
        const at = look.kind === "swatch" ? paintSwatch(context, look, left + from, middle) : paintBar(context, look, left + from, middle, ink);
        context.fillStyle = ink;
        context.fillText(text, at + GAP, middle);
      }
    });
  }
}

/** An area and its outline on gray, as on an image; gives where it ends. */
function paintSwatch(context: CanvasRenderingContext2D, { color, area, line }: Swatch, left: number, middle: number): number {
  const [top, height] = [middle - 6.5, 13];
  if (area < 1) {
    context.fillStyle = "#4a4f57";
    context.fillRect(left, top, BOX, height);
  }
  context.globalAlpha = area;
  context.fillStyle = color;
  context.fillRect(left, top, BOX, height);
  context.globalAlpha = 1;
  if (line) {
    context.setLineDash([...line.dash]);
    for (const [stroke, width] of [[line.rim, line.width + 1.5], [color, line.width]] as const) {
      context.strokeStyle = stroke;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(left, middle);
      context.lineTo(left + BOX, middle);
      context.stroke();
    }
    context.setLineDash([]);
  }
  return left + BOX;
}

/** Colors between the meanings of their ends; gives where it ends. */
function paintBar(context: CanvasRenderingContext2D, { table, low, high }: ColorBar, left: number, middle: number, ink: string): number {
  const start = left + context.measureText(low).width + GAP;
  context.fillStyle = ink;
  context.fillText(low, left, middle);
  paintColors(context, table, start, middle - 5, BAR, 10);
  context.fillStyle = ink;
  context.fillText(high, start + BAR + GAP, middle);
  return start + BAR + GAP + context.measureText(high).width;
}
