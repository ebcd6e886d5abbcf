// Starts the page.

import { App } from "./app";
import { fragmentParts } from "./fragment";
import type { Triple } from "./package";
import { embedded, server } from "./source";
import { showMessage } from "./ui/messages";

/** For tests: what the page shows, as numbers. */
interface Viewer {
  /** Resolves when the first case is shown, and is rejected when none can be. */
  readonly ready: Promise<void>;
  /** The labels of the shown sample over the whole image. */
  labels(): Promise<{ size: Triple; data: Uint8Array }>;
  /** The labels on the canvas of the main view, `[rows, columns]`, and the matrix that places them there. */
  slice(): ReturnType<App["slice"]>;
  /** The map of numbers on the canvas of the main view, or null. */
  map(): Float32Array | null;
  /** How the planes across the axes d, h and w stand. */
  planes(): ReturnType<App["planes"]>;
  /** Resolves when the views show what the controls say. */
  settled(): Promise<void>;
  /** The state as the address has it. */
  readonly fragment: string;
  /** Milliseconds: from the start of the page to the first picture, of the last case, and of the last frame. */
  readonly timings: App["timings"];
}

declare global {
  interface Window { ssnViewer: Viewer }
}

async function start(): Promise<App> {
  const source = embedded() ?? await server(fragmentParts(location.hash).get("token") ?? null);
  const app = new App(source);
  await app.start();
  return app;
}

const app = start();
app.catch((error: unknown) => {
  const place = document.createElement("div");
  place.className = "message whole";
  document.body.append(place);
  showMessage(place, { kind: "error", title: "The viewer cannot start", text: error instanceof Error ? error.message : String(error) });
});

let ready: App | null = null;
const viewer = {
  ready: app.then((found) => { ready = found; }),
  labels: async () => (await app).labels(),
  slice: () => ready?.slice() ?? null,
  map: () => ready?.map() ?? null,
  planes: () => ready?.planes() ?? [],
  settled: async () => (await app).settled(),
  get fragment() { return ready?.fragment ?? location.hash; },
  get timings() { return ready?.timings ?? { load: 0, transfer: 0, open: 0, frame: 0, sampling: 0 }; },
};
viewer.ready.catch(() => undefined);
window.ssnViewer = viewer;
