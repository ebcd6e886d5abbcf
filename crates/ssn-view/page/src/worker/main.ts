// The worker: opens a package, and answers for its samples. What a control needs within a frame is done at once; what takes
// longer is done in pieces and given up when something newer is asked for on its channel; of large cases, helpers do it.

import type { Answer, Ask, BeHelper, HelperPorts, Replies, Request, Settings, Survey, WantHelpers } from "../messages";
import { type Case, readPackage } from "../package";
import { labelCount } from "../sampling/distribution";
import { caseSeed } from "../sampling/seed";
import { type Surfaces, surfaces } from "../surface/mesh";
import { Helpers, help, helpersFor } from "./helpers";
import { sampleLabels } from "./part";
import { Places } from "./places";
import { Queue } from "./queue";
import { Slices, countLabels } from "./slices";
import { SurveySum, survey } from "./survey";
import { unpack } from "./unpack";

const scope = self as unknown as { postMessage(message: unknown, transfer?: Transferable[]): void; onmessage: ((event: MessageEvent<Ask | HelperPorts | BeHelper>) => void) | null };
const queue = new Queue();
let subject: Case | null = null;
/** The case that was asked for last. */
let newest = 0;
let places: Places;
let slices: Slices;
/** The CPU cores that there are; helpers on them of a large case, once it is surveyed; and the channel on which they work. */
let cores = 1;
let helpers: Helpers | null = null;
let helping = "";
/** Whether they were asked for, and what they are to begin with. */
let wanted = false;
let starting: (() => void) | null = null;

/** How long a piece of a summary may take, and how often it is shown, in milliseconds. */
const PIECE = 10;
const SHOWN = 120;

/** Says that work failed, and why. */
function fails(id: number): (error: unknown) => void {
  return (error) => scope.postMessage({ id, last: true, error: error instanceof Error ? error.message : String(error) } satisfies Answer);
}

function answer<K extends keyof Replies>(id: number, _kind: K, reply: Replies[K], last: boolean, transfer: Transferable[] = []): void {
  scope.postMessage({ id, last, reply } satisfies Answer, transfer);
}

async function open(id: number, request: Extract<Request, { kind: "open" }>): Promise<void> {
  newest = id;
  cores = request.cores;
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

/** A slice in several samples, one a piece, each answered by itself. */
function several(id: number, channel: string, { plane, settings, samples }: Extract<Request, { kind: "slices" }>): void {
  let place = 0;
  queue.put(channel, 1, () => {
    const labels = slices.labels(plane, "gallery", { ...settings, sample: samples[place] });
    const last = place === samples.length - 1;
    answer(id, "slices", { place: place++, labels }, last, [labels.buffer]);
    return !last;
  }, fails(id));
}

/** All labels of a sample on what is shown, in pieces. */
function* wholeSample(settings: Settings): Generator<void, Uint8Array> {
  const { distribution, prediction } = subject!;
  const kept = new Uint8Array(distribution.n);
  yield* sampleLabels(distribution, settings, kept);
  const labels = prediction.slice();
  for (let i = 0; i < places.where.length; i++) labels[places.where[i]] = kept[places.source[i]];
  return labels;
}

/** Does work in pieces, and answers with what it gives. */
function inPieces<T>(id: number, channel: string, rank: number, pieces: Generator<void, T>, done: (result: T) => void): void {
  queue.put(channel, rank, () => {
    const next = pieces.next();
    if (next.done) done(next.value);
    return !next.done;
  }, fails(id));
}

function volume(id: number, channel: string, { settings }: Extract<Request, { kind: "volume" }>): void {
  inPieces(id, channel, 2, wholeSample(settings), (labels) => {
    answer(id, "volume", { labels, counts: countLabels(labels, labelCount(subject!.distribution)) }, true, [labels.buffer]);
  });
}

function surface(id: number, channel: string, { settings, of }: Extract<Request, { kind: "surface" }>): void {
  const { header, prediction, raters } = subject!;
  function* pieces(): Generator<void, Surfaces> {
    const labels = of === "sample" ? yield* wholeSample(settings)
      : of === "prediction" ? prediction : raters.subarray(of * prediction.length, (of + 1) * prediction.length);
    return yield* surfaces(header, labels);
  }
  inPieces(id, channel, 2, pieces(), (found) => {
    answer(id, "surface", found, true, found.meshes.flatMap(({ positions, normals, triangles }) => [positions.buffer, normals.buffer, triangles.buffer]));
  });
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
  const tell = (value: Survey | null) => {
    if (value) answer(id, "survey", value, value.groups.length > 0, [value.volumes.buffer, value.raterDistances.buffer]);
  };
  const count = helpersFor(subject!, cores);
  if (count > 1) {
    // When all that is more urgent is done: helpers would take the CPU from it.
    queue.put(channel, 4, () => {
      helping = channel;
      const sum = new SurveySum(subject!, places, samples, count, gallery);
      starting = () => helpers?.survey(settings, samples, (found) => tell(sum.add(found)), fails(id));
      if (helpers) starting();
      else if (!wanted) scope.postMessage({ opened: newest, helpers: count } satisfies WantHelpers);
      wanted = true;
      return false;
    }, fails(id));
    return;
  }
  const pieces = survey(subject!, places, settings, samples, gallery);
  queue.put(channel, 4, () => {
    const { value, done } = pieces.next();
    tell(value ?? null);
    return !done;
  }, fails(id));
}

/** The work that is asked for, with the seed of the noise of this case. */
function forCase<R extends { settings: Settings }>(request: R, name: string): R {
  return { ...request, settings: { ...request.settings, seed: caseSeed(request.settings.seed, name) } };
}

function hear({ id, channel, request: asked }: Ask): void {
  queue.drop(channel);
  if (channel === helping) {
    starting = null;
    helpers?.cancel();
  }
  const failed = fails(id);
  try {
    if (asked.kind === "cancel") return;
    if (asked.kind === "open") {
      queue.clear();
      [helpers, starting, wanted, subject] = [null, null, false, null];
      open(id, asked).catch(failed);
      return;
    }
    if (!subject) return failed("No case is open.");
    const request = forCase(asked, subject.header.name);
    switch (request.kind) {
      case "slice":
        queue.rest();
        helpers?.rest();
        return slice(id, request);
      case "slices": return several(id, channel, request);
      case "volume": return volume(id, channel, request);
      case "summary": return summary(id, channel, request);
      case "correlation": return correlation(id, request);
      case "surface": return surface(id, channel, request);
      case "survey": return surveyed(id, channel, request);
    }
  } catch (error) {
    failed(error);
  }
}

/** Takes the helpers that were wanted, if the case is still the same. */
function takeHelpers({ opened, ports }: HelperPorts): void {
  if (opened !== newest || !subject || helpers) return;
  helpers = new Helpers(subject, places, ports);
  starting?.();
}

scope.onmessage = ({ data }) => {
  if ("channel" in data) hear(data);
  else if ("ports" in data) takeHelpers(data);
  else help(data.port);
};
