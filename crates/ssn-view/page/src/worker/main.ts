// The worker: opens a package, and answers for its samples. What a control needs within a frame is done at once; what takes
// longer is done in pieces and given up when something newer is asked for on its channel.

import type { Answer, Ask, Replies, Request, Settings } from "../messages";
import { type Case, readPackage } from "../package";
import { labelCount } from "../sampling/distribution";
import { caseSeed } from "../sampling/seed";
import { Places } from "./places";
import { Queue } from "./queue";
import { Slices, countLabels } from "./slices";
import { sampleLabels, survey } from "./survey";
import { unpack } from "./unpack";

const scope = self as unknown as { postMessage(message: Answer, transfer?: Transferable[]): void; onmessage: ((event: MessageEvent<Ask>) => void) | null };
const queue = new Queue();
let subject: Case | null = null;
/** The case that was asked for last. */
let newest = 0;
let places: Places;
let slices: Slices;

/** How long a piece of a summary may take, and how often it is shown, in milliseconds. */
const PIECE = 10;
const SHOWN = 120;

/** Says that work failed, and why. */
function fails(id: number): (error: unknown) => void {
  return (error) => scope.postMessage({ id, last: true, error: error instanceof Error ? error.message : String(error) });
}

function answer<K extends keyof Replies>(id: number, _kind: K, reply: Replies[K], last: boolean, transfer: Transferable[] = []): void {
  scope.postMessage({ id, last, reply }, transfer);
}

async function open(id: number, request: Extract<Request, { kind: "open" }>): Promise<void> {
  newest = id;
  const buffer = request.buffer ?? await unpack(request.base64 ?? "");
  // Another case was asked for while this one was unpacked.
  if (newest !== id) return;
  const opened = readPackage(buffer);
  places = new Places(opened);
  slices = new Slices(opened, places);
  subject = opened;
  const { header, distribution, image } = opened;
  const [shownImage, raters, prediction] = [image?.slice() ?? null, opened.raters.slice(), opened.prediction.slice()];
  const transfer = [shownImage?.buffer, raters.buffer, prediction.buffer].filter((part) => part !== undefined);
  const reply = { header, image: shownImage, raters, prediction, kept: distribution.n, stored: distribution.stored };
  answer(id, "open", reply, true, transfer);
}

function slice(id: number, { slot, plane, settings }: Extract<Request, { kind: "slice" }>): void {
  const start = performance.now();
  const labels = slices.labels(plane, `slot ${slot}`, settings);
  answer(id, "slice", { labels, milliseconds: performance.now() - start }, true, [labels.buffer]);
}

/** A slice in several samples, one a piece. */
function several(id: number, channel: string, { plane, settings, samples }: Extract<Request, { kind: "slices" }>): void {
  const labels: Uint8Array[] = [];
  queue.put(channel, 1, () => {
    labels.push(slices.labels(plane, "gallery", { ...settings, sample: samples[labels.length] }));
    if (labels.length < samples.length) return true;
    answer(id, "slices", { labels }, true, labels.map((one) => one.buffer));
    return false;
  }, fails(id));
}

/** All labels of a sample on what is shown. */
function volume(id: number, channel: string, { settings }: Extract<Request, { kind: "volume" }>): void {
  const { distribution, prediction } = subject!;
  const kept = new Uint8Array(distribution.n);
  const pieces = sampleLabels(distribution, settings, kept);
  queue.put(channel, 2, () => {
    if (!pieces.next().done) return true;
    const labels = prediction.slice();
    for (let i = 0; i < places.where.length; i++) labels[places.where[i]] = kept[places.source[i]];
    answer(id, "volume", { labels, counts: countLabels(labels, labelCount(distribution)) }, true, [labels.buffer]);
    return false;
  }, fails(id));
}

/** What samples say about a slice, shown as it grows. */
function summary(id: number, channel: string, { plane, settings, samples }: Extract<Request, { kind: "summary" }>): void {
  const sums = slices.summary(plane, "summary");
  let done = 0;
  let shown = performance.now();
  queue.put(channel, 3, () => {
    const start = performance.now();
    do sums.add(settings, done++);
    while (done < samples && performance.now() - start < PIECE);
    const last = done >= samples;
    if (last || performance.now() - shown > SHOWN) {
      const { probabilities, shares } = sums.result();
      answer(id, "summary", { samples: done, total: samples, probabilities, shares }, last, [probabilities.buffer, shares.buffer]);
      shown = performance.now();
    }
    return !last;
  }, fails(id));
}

function correlation(id: number, { plane, settings, logit, voxel }: Extract<Request, { kind: "correlation" }>): void {
  const kept = places.find(voxel);
  const values = kept < 0 ? new Float32Array(0) : slices.correlation(plane, logit, kept, settings);
  answer(id, "correlation", { values, known: kept >= 0 }, true, [values.buffer]);
}

function surveyed(id: number, channel: string, { settings, samples, gallery }: Extract<Request, { kind: "survey" }>): void {
  const pieces = survey(subject!, places, settings, samples, gallery);
  queue.put(channel, 4, () => {
    const { value, done } = pieces.next();
    if (done || !value) return !done;
    const last = value.diverse.length > 0;
    answer(id, "survey", value, last, [value.volumes.buffer]);
    return !last;
  }, fails(id));
}

/** The work that is asked for, with the seed of the noise of this case. */
function forCase<R extends { settings: Settings }>(request: R, name: string): R {
  return { ...request, settings: { ...request.settings, seed: caseSeed(request.settings.seed, name) } };
}

scope.onmessage = ({ data: { id, channel, request: asked } }: MessageEvent<Ask>) => {
  queue.drop(channel);
  const failed = fails(id);
  try {
    if (asked.kind === "cancel") return;
    if (asked.kind === "open") {
      queue.clear();
      subject = null;
      open(id, asked).catch(failed);
      return;
    }
    if (!subject) return failed("No case is open.");
    const request = forCase(asked, subject.header.name);
    switch (request.kind) {
      case "slice":
        queue.rest();
        return slice(id, request);
      case "slices": return several(id, channel, request);
      case "volume": return volume(id, channel, request);
      case "summary": return summary(id, channel, request);
      case "correlation": return correlation(id, request);
      case "survey": return surveyed(id, channel, request);
    }
  } catch (error) {
    failed(error);
  }
};
