// What the page says over its views: that it is busy, or what went wrong; and short notices.

import { el } from "./dom";

export interface Message {
  readonly kind: "busy" | "error";
  readonly title: string;
  readonly text: string;
  readonly share?: number;
  /** What the reader can do about it, on a button. */
  readonly action?: { readonly name: string; readonly act: () => void };
}

export function showMessage(place: HTMLElement, message: Message | null): void {
  place.hidden = message === null;
  if (!message) return place.replaceChildren();
  place.dataset.kind = message.kind;
  place.setAttribute("role", message.kind === "error" ? "alert" : "status");
  const { action } = message;
  place.replaceChildren(el("div", { class: "card" }, el("h2", {}, message.title), el("p", {}, message.text),
    message.kind === "busy" ? el("progress", { max: 1, value: message.share ?? 0, "aria-label": message.title }) : null,
    action ? el("div", { class: "row" }, el("button", { type: "button", class: "text-button", onclick: action.act }, action.name)) : null));
}

let shown: HTMLElement | null = null;

/** A notice that goes away. */
export function toast(text: string): void {
  shown?.remove();
  const element = el("div", { class: "toast", role: "status" }, text);
  shown = element;
  document.body.append(element);
  setTimeout(() => element.remove(), 4000);
}
