// The frame of the page: the bar at the top, and places for views, gallery, panel and messages.

import { Announcer } from "./announcer";
import { el, icon, iconButton } from "./dom";
import { helpDialog } from "./help";

export interface ShellActions {
  layout(): void;
  compare(): void;
  surface(): void;
  theme(): void;
  picture(): void;
  labelMap(): void;
  link(): void;
}

export class Shell {
  readonly views = el("div", { class: "stage" });
  readonly galleryPlace = el("div", { class: "gallery-place" });
  readonly slicePlace = el("div", { class: "slice-place" });
  readonly panelPlace = el("div", { class: "panel-place", id: "controls" });
  readonly announcer = new Announcer();
  readonly message = el("div", { class: "message", hidden: true });
  readonly readout = el("span", { class: "readout" });
  readonly progress = el("progress", { max: 1, value: 1, class: "map-progress", "data-done": "true", "aria-label": "samples behind the map" });
  readonly frame = el("span", { class: "frame", title: "from the move of a control until it was painted" });
  readonly help = helpDialog();
  readonly buttons: Readonly<Record<"layout" | "compare" | "surface", HTMLButtonElement>>;

  /** On a narrow page, the panel is a drawer below the views. */
  private readonly drawer = el("div", { class: "drawer", "data-open": "false" });

  constructor(title: string, cases: HTMLElement, actions: ShellActions) {
    this.buttons = {
      layout: iconButton("three", "One view or three", actions.layout, "v"),
      compare: iconButton("compare", "Compare two settings side by side", actions.compare, "c"),
      surface: iconButton("cube", "Surfaces in 3D", actions.surface, "z"),
    };
    const gap = () => el("span", { class: "gap" });
    const bar = el("nav", { "aria-label": "views and files" },
      this.buttons.layout, this.buttons.compare, this.buttons.surface, gap(),
      iconButton("camera", "Save a figure as PNG", actions.picture, "s"),
      iconButton("save", "Save the sample as NIfTI label map", actions.labelMap, "n"),
      iconButton("link", "Copy a link to what is shown", actions.link, "l"), gap(),
      iconButton("theme", "Light or dark", actions.theme),
      iconButton("help", "Keys and mouse", () => this.help.showModal(), "?"));
    const handle = el("button", { type: "button", class: "drawer-handle", "aria-expanded": "false", "aria-controls": "controls", "data-control": "drawer" },
      icon("up"), el("strong", {}, "Controls"), el("span", { class: "note" }, "research use only · not a medical device"));
    handle.addEventListener("click", () => {
      const open = this.drawer.dataset.open !== "true";
      this.drawer.dataset.open = String(open);
      handle.setAttribute("aria-expanded", String(open));
    });
    this.drawer.append(handle, this.panelPlace);
    document.body.append(el("div", { class: "app" },
      el("header", { class: "top" }, el("h1", { class: "brand", title }, "ssn view"), cases,
        el("span", { class: "research" }, "Research use only · not a medical device"), bar),
      el("main", {}, this.views, this.slicePlace, this.galleryPlace, el("footer", {}, this.readout, this.progress, this.frame), this.message),
      this.drawer), this.help, this.announcer.element);
  }
}
