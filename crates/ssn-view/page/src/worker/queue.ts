// Work that takes long, done in pieces between messages. The newest work of a channel replaces what the channel did before;
// of several channels the one with the best rank goes first.

/** A piece done; false when there is no more. */
export type Piece = () => boolean;

/** How long work rests after the page asked for something quick, in milliseconds: a hand on a slider asks again by then. */
const REST = 50;

export class Queue {
  private readonly work = new Map<string, { rank: number; piece: Piece; failed: (error: unknown) => void }>();
  private readonly wake = new MessageChannel();
  private awake = false;
  private resting = 0;

  constructor() {
    this.wake.port1.onmessage = () => this.step();
  }

  /** Starts work on a channel; less is more urgent. Work that fails is over. */
  put(channel: string, rank: number, piece: Piece, failed: (error: unknown) => void): void {
    this.work.set(channel, { rank, piece, failed });
    this.nudge();
  }

  /** Gives up the work of a channel. */
  drop(channel: string): void {
    this.work.delete(channel);
  }

  clear(): void {
    this.work.clear();
  }

  /** Lets work rest for so many milliseconds, while the page is busy with something quicker. */
  rest(milliseconds = REST): void {
    this.resting = performance.now() + milliseconds;
  }

  private nudge(): void {
    if (this.awake) return;
    this.awake = true;
    // A message to itself comes after those that already wait: the page is heard between two pieces.
    this.wake.port2.postMessage(null);
  }

  private step(): void {
    this.awake = false;
    let chosen: string | null = null;
    let best = Infinity;
    for (const [channel, { rank }] of this.work) if (rank < best) [chosen, best] = [channel, rank];
    if (chosen === null) return;
    const left = this.resting - performance.now();
    if (left > 0) {
      this.awake = true;
      setTimeout(() => this.step(), left);
      return;
    }
    const work = this.work.get(chosen)!;
    let more = false;
    try {
      more = work.piece();
    } catch (error) {
      work.failed(error);
    }
    if (!more && this.work.get(chosen) === work) this.work.delete(chosen);
    if (this.work.size > 0) this.nudge();
  }
}
