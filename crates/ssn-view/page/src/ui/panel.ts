// The panel of controls at the side of the views.

import type { State, Store } from "../state";
import type { Subject } from "../subject";
import { type Parts, choice, group, note } from "./controls";
import { el, iconButton } from "./dom";
import { Histogram } from "./histogram";
import type { Motion } from "./motion";
import { Nearest } from "./nearest";
import { aboutGroup, imageGroup, mapsGroup, overlaysGroup } from "./overlays";
import { modesGroup, sampleGroup, steeringGroup } from "./steering";

export class Panel {
  readonly element = el("aside", { class: "panel", "aria-label": "Controls" });
  readonly histogram: Histogram;
  readonly nearest: Nearest;
  private readonly syncs: ((state: State) => void)[] = [];
  private readonly told = note("");

  constructor(store: Store, subject: Subject, motion: Motion) {
    const { header } = subject;
    this.histogram = new Histogram(subject, (sample) => store.steer({ sample }));
    this.nearest = new Nearest(subject, (sample) => store.steer({ sample }));
    const parts: Parts = { store, subject, motion, follow: (sync) => this.syncs.push(sync) };
    this.element.append(
      this.slots(parts),
      el("div", { class: "column" }, sampleGroup(parts), steeringGroup(parts), header.kind === "stochastic" && header.rank > 0 ? modesGroup(parts) : null),
      el("div", { class: "column" },
        overlaysGroup(parts), mapsGroup(parts, this.told), this.volumes(parts), subject.hasImage ? imageGroup(parts) : null, aboutGroup(parts)),
    );
  }

  /** Follows the state. */
  sync(state: State): void {
    for (const sync of this.syncs) sync(state);
  }

  /** Says whether the voxel of the cross-hair moves. */
  correlated(known: boolean): void {
    this.told.textContent = known ? "" : "The voxel of the cross-hair is the same in all samples, so nothing moves with it. Click another.";
  }

  /** Which of two settings the controls change. */
  private slots({ store, follow }: Parts): HTMLElement {
    const slots = choice<"0" | "1">("settings", [["0", "Settings A"], ["1", "Settings B"]], (slot) => store.update({ active: slot === "0" ? 0 : 1 }), "settings that the controls change");
    const copy = el("button", { type: "button", class: "text-button", title: "Make these settings those of the other side too" }, "copy to other");
    copy.addEventListener("click", () => store.update({ settings: [store.settings, store.settings] }));
    const element = el("div", { class: "slots" }, slots.element, copy);
    follow((state) => {
      element.hidden = !state.compare;
      slots.set(state.active === 0 ? "0" : "1");
    });
    return element;
  }

  private volumes({ store, follow }: Parts): HTMLElement {
    const gallery = iconButton("grid", "Gallery of groups of samples", () => store.update({ gallery: !store.state.gallery }), "g");
    follow((state) => {
      this.histogram.sync(state);
      gallery.setAttribute("aria-pressed", String(state.gallery));
    });
    return group("Volumes", true, [gallery], this.histogram.element, this.nearest.element);
  }
}
