// The keyboard.

import { STYLES, type State, type Store, limits, mapsOf } from "../state";
import type { Pane } from "../view/pane";
import { nudge, scroll, zoomAt } from "../view/pointer";
import type { Stage } from "../view/stage";
import { alone, soloClass } from "./classes";

/** What keys do that belongs to no state. */
export interface KeyActions {
  play(): void;
  step(by: number): void;
  case(by: number): void;
  picture(): void;
  pictureChoices(): void;
  labelMap(): void;
  link(): void;
  help(): void;
  resetSteering(): void;
  contrast(): void;
  surface(): void;
}

/** Elements that need keys for themselves. */
function typing(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement && target.type === "range") return key.startsWith("Arrow") || key.startsWith("Page") || key === "Home" || key === "End";
  if (target instanceof HTMLButtonElement || target.tagName === "SUMMARY") return key === " " || key === "Enter";
  if (target instanceof HTMLInputElement && target.type === "checkbox") return key === " ";
  // A list is searched by the letters of what it offers, and moved through by keys with names, and by the space.
  if (target instanceof HTMLSelectElement) return key.length > 1 || key === " " || target.textContent!.toLowerCase().includes(key.toLowerCase());
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
}

export function listenToKeys(stage: Stage, store: Store, actions: KeyActions): void {
  document.addEventListener("keydown", (event) => {
    // A number that was entered is done with: keys work again.
    if (event.key === "Enter" && event.target instanceof HTMLInputElement && event.target.type !== "search") event.target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target, event.key) || !stage.subject) return;
    if (document.querySelector("dialog[open]") && event.key !== "?") return;
    const pane = stage.panes.find(({ canvas }) => canvas === event.target) ?? null;
    if (pane ? pressOn(pane, event.key, event.shiftKey) || press(event.key, event.shiftKey) : press(event.key, event.shiftKey)) event.preventDefault();
  });

  /** Keys on a view that has the focus: arrows move its cross-hair. */
  function pressOn(pane: Pane, key: string, shift: boolean): boolean {
    const by = shift ? 10 : 1;
    switch (key) {
      case "ArrowLeft": return nudge(stage, store, pane, -by, 0);
      case "ArrowRight": return nudge(stage, store, pane, by, 0);
      case "ArrowUp": return nudge(stage, store, pane, 0, -by);
      case "ArrowDown": return nudge(stage, store, pane, 0, by);
      case "PageUp": scroll(stage, store, pane.axis, by); return true;
      case "PageDown": scroll(stage, store, pane.axis, -by); return true;
      default: return false;
    }
  }

  function press(key: string, shift: boolean): boolean {
    const { state } = store;
    const subject = stage.subject!;
    const { header } = subject;
    const next = <T>(list: readonly T[], now: T) => list[(list.indexOf(now) + 1) % list.length];
    const patch = (change: Partial<State>) => { store.update(change); return true; };
    const does = (action: () => void) => { action(); return true; };
    const slices = (by: number) => does(() => scroll(stage, store, state.axis, by));
    const temperature = (by: number) => does(() => {
      if (header.kind !== "stochastic") return;
      const value = Math.round((store.settings.temperature + by) * 100) / 100;
      store.steer({ temperature: Math.min(Math.max(value, 0), limits(header).temperature) });
    });
    switch (key) {
      case "ArrowLeft": return does(() => actions.step(shift ? -10 : -1));
      case "ArrowRight": return does(() => actions.step(shift ? 10 : 1));
      case "ArrowUp": return slices(1);
      case "ArrowDown": return slices(-1);
      case "PageUp": return slices(10);
      case "PageDown": return slices(-10);
      case " ": return does(actions.play);
      case "1": case "2": case "3": {
        const name = ["axial", "coronal", "sagittal"][Number(key) - 1];
        const axis = subject.planes.findIndex((plane) => plane.name === name);
        return axis >= 0 && patch({ axis: axis as 0 | 1 | 2 });
      }
      case "v": return subject.volume && patch({ layout: state.layout === "three" ? "single" : "three" });
      case "z": return subject.volume && does(actions.surface);
      case "c": return patch({ compare: !state.compare, active: state.compare ? 0 : 1 });
      case "a": return state.compare && patch({ active: 0 });
      case "b": return state.compare && patch({ active: 1 });
      case "t": return temperature(-0.1);
      case "T": return temperature(0.1);
      case "r": return does(actions.resetSteering);
      case "d": return header.kind === "stochastic" && does(() => store.steer({ diagonalNoise: !store.settings.diagonalNoise }));
      case "f": return patch({ sampleStyle: next(STYLES, state.sampleStyle) });
      case "p": return patch({ predictionStyle: state.predictionStyle === "off" ? "contour" : "off" });
      case "x": {
        const on = state.raterStyles.some((style) => style !== "off");
        return patch({ raterStyles: state.raterStyles.map(() => (on ? "off" : "contour")) });
      }
      case "m": return patch({ map: next(mapsOf(header), state.map) });
      case "k": return patch({ focus: (state.focus % (header.classes.length - 1)) + 1 });
      case "o": {
        const count = header.classes.length;
        if (count === 2) return false;
        const solo = soloClass(state.hiddenClasses, count);
        return patch({ hiddenClasses: solo === count - 1 ? [] : alone([], (solo ?? 0) + 1, count) });
      }
      case "q": return patch({ quantiles: !state.quantiles });
      case "g": return patch({ gallery: !state.gallery });
      case "h": return patch({ crosshair: !state.crosshair });
      case "i": return patch({ image: !state.image });
      case "j": {
        if (header.color || header.channels.length < 2) return false;
        const channel = (state.channel + 1) % header.channels.length;
        return patch({ channel, window: subject.autoWindow(channel) });
      }
      case "+": case "=": return does(() => zoomAt(stage, store, stage.main(), 1.25, null));
      case "-": case "−": return does(() => zoomAt(stage, store, stage.main(), 0.8, null));
      case "0": return patch({ zoom: 1, center: null });
      case "w": return does(actions.contrast);
      case "[": return does(() => actions.case(-1));
      case "]": return does(() => actions.case(1));
      case "s": return does(actions.picture);
      case "S": return does(actions.pictureChoices);
      case "n": return does(actions.labelMap);
      case "l": return does(actions.link);
      case "?": return does(actions.help);
      default: return false;
    }
  }
}
