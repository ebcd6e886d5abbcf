// Keeps volumes, the gallery and the volume of the shown sample up to date. All of it waits until the settings rest, is
// shown as it grows, and is given up when they change.

import type { Engine } from "../engine";
import type { Settings, Survey } from "../messages";
import { type State, type Store, sameSettings, sameSteering } from "../state";
import type { Subject } from "../subject";
import { GALLERY, type Gallery } from "./gallery";
import type { Histogram } from "./histogram";

const REST = 250;

export class Statistics {
  private timer = 0;
  private surveyed: { settings: Settings; samples: number } | null = null;
  private survey: Survey | null = null;
  private counted: Settings | null = null;

  constructor(
    private readonly engine: Engine, private readonly store: Store, private readonly subject: Subject,
    private readonly histogram: Histogram, private readonly gallery: Gallery,
  ) {}

  /** Follows the state. */
  sync(state: State): void {
    const settings = state.settings[state.active];
    if (!this.surveyed || !sameSteering(this.surveyed.settings, settings) || this.surveyed.samples !== state.samples) {
      if (this.survey) this.engine.cancel("survey");
      this.surveyed = this.survey = null;
    }
    if (!this.counted || !sameSettings(this.counted, settings)) {
      const known = this.known(settings);
      this.histogram.showSample(known);
      this.counted = known ? settings : null;
    }
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.ask(this.store.state), REST);
    this.gallery.sync(state, this.subject.plane(state.axis, state.cross));
  }

  /** Nothing more is asked for. */
  stop(): void {
    window.clearTimeout(this.timer);
  }

  /** The volumes of a sample that was drawn already. */
  private known(settings: Settings): number[] | null {
    const l = this.subject.header.classes.length;
    if (!this.survey || settings.sample >= this.survey.samples) return null;
    return Array.from(this.survey.volumes.subarray(settings.sample * l, (settings.sample + 1) * l));
  }

  private ask(state: State): void {
    const settings = state.settings[state.active];
    if (!this.counted) {
      const known = this.known(settings);
      if (known) {
        this.counted = settings;
        this.histogram.showSample(known);
      } else {
        this.engine.ask("volume", { kind: "volume", settings }, ({ counts }) => {
          this.counted = settings;
          this.histogram.showSample(counts);
        });
      }
    }
    if (this.surveyed) return;
    this.surveyed = { settings, samples: state.samples };
    const samples = this.subject.header.kind === "sampled" ? Math.min(state.samples, this.subject.stored) : state.samples;
    this.engine.ask("survey", { kind: "survey", settings, samples, gallery: GALLERY }, (survey) => {
      this.survey = survey;
      this.histogram.show(survey);
      const done = survey.diverse.length > 0;
      if (done) this.gallery.show(survey.diverse, `the most typical of ${survey.total} first, then always the one farthest from those before`);
      else this.gallery.show([], `${survey.samples} of ${survey.total} samples drawn …`);
      const { state: now } = this.store;
      this.gallery.sync(now, this.subject.plane(now.axis, now.cross));
    });
  }
}
