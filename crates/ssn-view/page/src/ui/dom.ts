// Elements in a line.

type Child = Node | string | null | false;

interface Attributes {
  readonly [name: string]: string | number | boolean | undefined | ((event: never) => void);
}

/** An element with attributes, listeners (`onclick` and the like) and children. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of a drawing. */
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number> = {}, ...children: (Node | string)[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Paths of the pictures on buttons, on a grid of 24. */
const ICONS = {
  play: "M8 5v14l11-7z",
  pause: "M7 5h4v14H7zM13 5h4v14h-4z",
  reset: "M12 5V2L7 6.5 12 11V7.5a4.75 4.75 0 1 1-4.75 4.75H4.5A7.5 7.5 0 1 0 12 5z",
  left: "M15 5l-8 7 8 7z",
  right: "M9 5l8 7-8 7z",
  up: "M5 15l7-8 7 8z",
  compare: "M3 5h8v14H3zM13 5h8v14h-8zM5 7v10h4V7z",
  three: "M3 4h11v16H3zM16 4h5v7h-5zM16 13h5v7h-5z",
  single: "M4 4h16v16H4z",
  camera: "M9 4l-1.5 2H4v13h16V6h-3.500L15 4zM12 16.500a4 4 0 1 1 0-8 4 4 0 0 1 0 8zM12 14.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  save: "M11 3h2v9l3.200-3.200 1.400 1.400L12 15.800l-5.600-5.600 1.400-1.400L11 12zM4 17h2v2h12v-2h2v4H4z",
  link: "M10.600 13.400a4 4 0 0 0 5.700 0l3-3a4 4 0 0 0-5.700-5.700l-1.500 1.500 1.400 1.400 1.500-1.500a2 2 0 0 1 2.900 2.900l-3 3a2 2 0 0 1-2.900 0zM13.400 10.600a4 4 0 0 0-5.700 0l-3 3a4 4 0 0 0 5.700 5.700l1.500-1.500-1.400-1.400-1.500 1.500a2 2 0 0 1-2.900-2.900l3-3a2 2 0 0 1 2.900 0z",
  theme: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18v-2a7 7 0 0 0 0-14z",
  help: "M11 17h2v2h-2zM12 5a4.500 4.500 0 0 0-4.500 4.500h2A2.500 2.500 0 1 1 13 11.800c-1.300.8-2 1.600-2 3.700h2c0-1.200.4-1.600 1.300-2.200A4.500 4.500 0 0 0 12 5z",
  grid: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  list: "M4 6h2v2H4zM8 6h12v2H8zM4 11h2v2H4zM8 11h12v2H8zM4 16h2v2H4zM8 16h12v2H8z",
  close: "M6.400 5L5 6.400 10.600 12 5 17.600 6.400 19 12 13.400 17.600 19 19 17.600 13.400 12 19 6.400 17.600 5 12 10.600z",
  cube: "M12 2l9 5v10l-9 5-9-5V7zM12 4.300L6.100 7.600 12 10.900l5.900-3.300zM5 9.300v6.500l6 3.400v-6.500zM19 9.300l-6 3.400v6.500l6-3.400z",
  dice: "M5 3h14a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zM8 9.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM12 13.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM16 17.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3z",
} as const;

export type Icon = keyof typeof ICONS;

export function icon(name: Icon): SVGSVGElement {
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: ICONS[name], "fill-rule": "evenodd" }));
}

/** Changes the picture of a button. */
export function setIcon(button: HTMLElement, name: Icon): void {
  if (button.dataset.icon === name) return;
  button.dataset.icon = name;
  button.querySelector("svg")?.replaceWith(icon(name));
}

/** A button with a picture; its title says what it does, and by which key. */
export function iconButton(name: Icon, title: string, onclick: () => void, key = ""): HTMLButtonElement {
  const said = key ? `${title} (${key})` : title;
  return el("button", { type: "button", class: "button", title: said, "aria-label": title, "data-icon": name, onclick }, icon(name));
}
