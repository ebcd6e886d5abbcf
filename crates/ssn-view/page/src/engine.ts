// The page's side of the worker.

import code from "worker-code";

import type { Answer, Ask, BeHelper, HelperPorts, Replies, Request, WantHelpers } from "./messages";

type Reply<R extends Request> = Replies[R["kind"]];

interface Waiting {
  readonly channel: string;
  readonly reply: (reply: unknown, last: boolean) => void;
  readonly failed: (message: string) => void;
  readonly dropped: () => void;
}

/** Work that was given up, because other work took its place or another case was opened. */
export class Dropped extends Error {}

export class Engine {
  private readonly url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  private readonly worker: Worker;
  /** Workers that the worker shares its work with, for the case that is open. */
  private helpers: Worker[] = [];
  private opened = 0;
  private readonly waiting = new Map<number, Waiting>();
  /** The newest work of each channel. Answers to older work are not heard. */
  private readonly newest = new Map<string, number>();
  private number = 0;

  constructor(private readonly trouble: (message: string) => void) {
    this.worker = this.start();
    this.worker.onmessage = ({ data }: MessageEvent<Answer | WantHelpers>) => ("helpers" in data ? this.help(data) : this.hear(data));
  }

  private start(): Worker {
    const worker = new Worker(this.url);
    worker.onerror = (event) => this.trouble(`The worker that draws samples stopped: ${event.message ?? "unknown reason"}. Load the page again.`);
    return worker;
  }

  /** Starts helpers, and gives the worker a port to each. */
  private help({ helpers, opened }: WantHelpers): void {
    // The case that they are for was left.
    if (opened !== this.opened) return;
    const ports = Array.from({ length: helpers }, () => {
      const { port1, port2 } = new MessageChannel();
      const helper = this.start();
      helper.postMessage({ port: port1 } satisfies BeHelper, [port1]);
      this.helpers.push(helper);
      return port2;
    });
    this.worker.postMessage({ opened, ports } satisfies HelperPorts, ports);
  }

  private hear({ id, last, reply, error }: Answer): void {
    const waiting = this.waiting.get(id);
    if (last) this.waiting.delete(id);
    if (!waiting || this.newest.get(waiting.channel) !== id) return;
    if (error !== undefined) waiting.failed(error);
    else waiting.reply(reply, last);
  }

  /** Asks for work, in the place of what was asked for on the channel before; answers may be several. */
  ask<R extends Request>(
    channel: string, request: R, reply: (reply: Reply<R>, last: boolean) => void,
    failed: (message: string) => void = this.trouble, transfer: Transferable[] = [], dropped: () => void = () => undefined,
  ): void {
    const id = ++this.number;
    // Another case: the worker forgets all that it was asked about the one before.
    if (request.kind === "open") {
      for (const known of [...this.waiting.keys()]) this.drop(known);
      for (const helper of this.helpers.splice(0)) helper.terminate();
      this.opened = id;
    } else this.drop(this.newest.get(channel));
    this.newest.set(channel, id);
    this.waiting.set(id, { channel, reply: reply as Waiting["reply"], failed, dropped });
    const message: Ask = { id, channel, request };
    this.worker.postMessage(message, transfer);
  }

  /** Asks for work that has one answer. It fails with `Dropped` where the work is given up. */
  once<R extends Request>(channel: string, request: R, transfer: Transferable[] = []): Promise<Reply<R>> {
    return new Promise((done, failed) => {
      this.ask(channel, request, (reply) => done(reply), (message) => failed(new Error(message)), transfer, () => failed(new Dropped()));
    });
  }

  private drop(id: number | undefined): void {
    const waiting = id === undefined ? undefined : this.waiting.get(id);
    if (id === undefined || !waiting) return;
    this.waiting.delete(id);
    waiting.dropped();
  }

  /** Gives up the work of a channel. */
  cancel(channel: string): void {
    const id = this.newest.get(channel);
    if (id === undefined || !this.waiting.has(id)) return;
    this.drop(id);
    this.newest.delete(channel);
    this.worker.postMessage({ id: ++this.number, channel, request: { kind: "cancel" } } satisfies Ask);
  }
}
