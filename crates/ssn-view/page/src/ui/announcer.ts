// What changed, for readers who hear the page instead of seeing it.

import { el } from "./dom";

/** How long the page rests before it speaks: who goes through samples hears the last one. */
const REST = 600;

export class Announcer {
  readonly element = el("div", { class: "heard-only", "aria-live": "polite", "aria-atomic": "true", "data-control": "announcement" });
  private timer = 0;

  /** Says something, in the place of what was to be said before. */
  say(text: () => string): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => { this.element.textContent = text(); }, REST);
  }
}
