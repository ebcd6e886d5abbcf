// Helpers of the worker, each with a part of the voxels of a large case: they survey many samples at the same time.

import type { Settings } from "../messages";
import { type Case, isHeavy } from "../package";
import { type Part, type PartCounts, type PartPairs, buffers, divide, surveyPart } from "./part";
import type { Places } from "./places";
import { Queue } from "./queue";

/** The largest distribution that is held twice, in bytes. */
const LARGEST = 1 << 30;
const MOST = 8;
/** How long helpers rest after the page asked for something quick, in milliseconds: until that is painted, and asked for again. */
const REST = 300;

/** What a helper is told: first its part, and then what to survey. */
export type ToHelper =
  | { kind: "part"; part: Part }
  | { kind: "survey"; id: number; settings: Settings; samples: number }
  | { kind: "cancel" }
  /** The page is busy with something quicker. */
  | { kind: "rest" };

interface FromHelper {
  readonly id: number;
  readonly found?: PartCounts | PartPairs;
  readonly error?: string;
}

/** How many helpers a case is worth: as many as there are CPU cores, of a large case. Fewer than two are none. */
export function helpersFor({ distribution: { n, c, r, mean, diagonal, factor } }: Case, cores: number): number {
  const bytes = [mean, diagonal, factor].reduce((sum, numbers) => sum + (numbers?.byteLength ?? 0), 0);
  if (!isHeavy(n, c, r) || bytes > LARGEST) return 0;
  return Math.min(cores, MOST);
}

export class Helpers {
  private id = 0;
  private heard: ((found: PartCounts | PartPairs) => void) | null = null;
  private failed: (error: unknown) => void = () => undefined;

  /** Gives each helper, by the port to it, its part of a case. */
  constructor(subject: Case, places: Places, private readonly ports: readonly MessagePort[]) {
    divide(subject, places, ports.length).forEach((part, i) => {
      ports[i].onmessage = ({ data }: MessageEvent<FromHelper>) => this.hear(data);
      ports[i].postMessage({ kind: "part", part } satisfies ToHelper, buffers(part) as Transferable[]);
    });
  }

  private hear({ id, found, error }: FromHelper): void {
    if (id !== this.id) return;
    if (error !== undefined) this.failed(new Error(error));
    else if (found) this.heard?.(found);
  }

  private tell(message: ToHelper): void {
    for (const port of this.ports) port.postMessage(message);
  }

  /** Surveys samples, in the place of those before. */
  survey(settings: Settings, samples: number, heard: (found: PartCounts | PartPairs) => void, failed: (error: unknown) => void): void {
    [this.heard, this.failed] = [heard, failed];
    this.tell({ kind: "survey", id: ++this.id, settings, samples });
  }

  /** Gives up what is surveyed. */
  cancel(): void {
    this.id++;
    this.tell({ kind: "cancel" });
  }

  rest(): void {
    this.tell({ kind: "rest" });
  }
}

/** Makes this worker a helper of the one at the other end of a port. */
export function help(port: MessagePort): void {
  const queue = new Queue();
  let part: Part | null = null;
  const post = (message: FromHelper, transfer: Transferable[]) => port.postMessage(message, transfer);
  port.onmessage = ({ data: message }: MessageEvent<ToHelper>) => {
    if (message.kind === "rest") return queue.rest(REST);
    queue.clear();
    if (message.kind === "part") part = message.part;
    if (message.kind !== "survey" || !part) return;
    const { id, settings, samples } = message;
    const pieces = surveyPart(part, settings, samples);
    queue.put("survey", 0, () => {
      const { value: found, done } = pieces.next();
      if (found) post({ id, found }, found.kind === "pairs" ? [found.both.buffer] : [found.volumes.buffer, found.sizes.buffer, found.shared.buffer]);
      return !done;
    }, (error) => post({ id, error: error instanceof Error ? error.message : String(error) }, []));
  };
}
