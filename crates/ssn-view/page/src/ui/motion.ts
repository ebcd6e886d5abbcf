// What moves by itself: samples one after another, and a mode that is swept back and forth.

import type { Store } from "../state";
import { limits } from "../state";
import type { Subject } from "../subject";

/** Seconds for a mode from one end to the other and back. */
const SWEEP = 5;

export class Motion {
  speed = 3;
  playing = false;
  /** The mode that is swept. */
  swept: number | null = null;
  private before = 1;
  /** The settings that move. */
  private slot: 0 | 1 = 0;
  private frame = 0;
  private started = 0;
  private due = 0;

  constructor(private readonly store: Store, private readonly subject: Subject, private readonly changed: () => void) {}

  /** Starts or stops playing through samples. */
  play(): void {
    const on = !this.playing;
    this.stop();
    if (on) this.start(() => { this.playing = true; });
  }

  /** Starts or stops the sweep of a mode, which then has the weight it had before. */
  sweep(mode: number): void {
    const on = this.swept !== mode;
    this.stop();
    if (on) {
      this.before = this.store.settings.modeWeights[mode];
      this.start(() => { this.swept = mode; });
    }
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    const mode = this.swept;
    [this.playing, this.swept] = [false, null];
    if (mode !== null) this.weigh(mode, this.before);
    this.changed();
  }

  private start(set: () => void): void {
    this.slot = this.store.state.active;
    set();
    this.started = this.due = performance.now();
    this.frame = requestAnimationFrame((now) => this.step(now));
    this.changed();
  }

  private weigh(mode: number, weight: number): void {
    const weights = this.store.state.settings[this.slot].modeWeights;
    this.store.steer({ modeWeights: weights.map((now, q) => (q === mode ? weight : now)) }, this.slot);
  }

  private step(now: number): void {
    const { header, stored } = this.subject;
    if (this.swept !== null) {
      const bound = limits(header).mode;
      const weight = bound * Math.sin((2 * Math.PI * (now - this.started)) / (1000 * SWEEP));
      this.weigh(this.swept, Math.round(weight * 100) / 100);
    } else if (now >= this.due) {
      this.due = Math.max(this.due + 1000 / this.speed, now);
      const next = this.store.state.settings[this.slot].sample + 1;
      this.store.steer({ sample: header.kind === "sampled" && next >= stored ? 0 : next }, this.slot);
    }
    if (this.playing || this.swept !== null) this.frame = requestAnimationFrame((time) => this.step(time));
  }
}
