// Keeps volumes, the gallery and the volume of the shown sample up to date. All of it waits until the settings rest, is
// shown as it grows, and is given up when they change.

import type { Engine } from "../engine";
import type { Settings, Survey } from "../messages";
import { type State, type Store, sameSettings, sameSteering } from "../state";
import type { Subject } from "../subject";
import { GALLERY, type Gallery } from "./gallery";
import type { Histogram } from "./histogram";

const REST = 250;

/** What shows something about many samples. */
interface SurveyView {
  /** Takes what is known of them; null while nothing is. */
  show(survey: Survey | null): void;
}

export class Statistics {
  private timer = 0;
  /** The samples that are asked for, and what is known of them; null while nothing is asked for. */
  private surveyed: { settings: Settings; samples: number; survey: Survey | null } | null = null;
  /** The sample whose volumes are shown, and the one whose volumes are asked for. */
  private counted: Settings | null = null;
  private counting: Settings | null = null;

  constructor(
    private readonly engine: Engine, private readonly store: Store, private readonly subject: Subject,
    private readonly histogram: Histogram, private readonly others: readonly SurveyView[], private readonly gallery: Gallery,
  ) {
    gallery.finding(new Set());
  }

  /** Follows the state. What is of other settings is taken off, and its work given up. */
  sync(state: State): void {
    const settings = state.settings[state.active];
    if (this.surveyed && (!sameSteering(this.surveyed.settings, settings) || this.surveyed.samples !== state.samples)) {
      this.engine.cancel("survey");
      this.surveyed = null;
      for (const view of [this.histogram, ...this.others]) view.show(null);
      this.gallery.finding(new Set());
    }
    if (this.counting && !sameSettings(this.counting, settings)) {
      this.engine.cancel("volume");
      this.counting = null;
    }
    if (!this.counted || !sameSettings(this.counted, settings)) this.count(settings, this.known(settings));
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.ask(this.store.state), REST);
    this.gallery.sync(state, this.subject.plane(state.axis, state.cross));
  }

  /** Nothing more is asked for. */
  stop(): void {
    window.clearTimeout(this.timer);
    this.engine.cancel("survey");
    this.engine.cancel("volume");
    this.gallery.stop();
  }

  /** Shows the volumes of a sample, or that they are not known. */
  private count(settings: Settings, counts: number[] | null): void {
    this.counted = counts ? settings : null;
    this.histogram.showSample(counts);
  }

  /** The volumes of a sample that was drawn already. */
  private known(settings: Settings): number[] | null {
    const { survey = null, settings: drawn } = this.surveyed ?? {};
    const l = this.subject.header.classes.length;
    if (!survey || !drawn || !sameSteering(drawn, settings) || settings.sample >= survey.samples) return null;
    return Array.from(survey.volumes.subarray(settings.sample * l, (settings.sample + 1) * l));
  }

  private ask(state: State): void {
    const settings = state.settings[state.active];
    if (!this.counted) this.count(settings, this.known(settings));
    if (!this.counted && !this.counting) this.askVolume(settings);
    if (!this.surveyed) this.askSurvey(settings, state.samples);
  }

  /** The samples without a voxel of any class. */
  private empty({ samples, volumes }: Survey): Set<number> {
    const l = this.subject.header.classes.length;
    const marked = (sample: number) => volumes.subarray(sample * l + 1, (sample + 1) * l).some((count) => count > 0);
    return new Set(Array.from({ length: samples }, (_, sample) => sample).filter((sample) => !marked(sample)));
  }

  private askVolume(settings: Settings): void {
    this.counting = settings;
    this.engine.ask("volume", { kind: "volume", settings }, ({ counts }) => {
      if (this.counting !== settings) return;
      this.counting = null;
      this.count(settings, counts);
    });
  }

  private askSurvey(settings: Settings, wanted: number): void {
    const asked = { settings, samples: wanted, survey: null as Survey | null };
    this.surveyed = asked;
    const samples = this.subject.header.kind === "sampled" ? Math.min(wanted, this.subject.stored) : wanted;
    this.engine.ask("survey", { kind: "survey", settings, samples, gallery: GALLERY }, (survey) => {
      if (this.surveyed !== asked) return;
      asked.survey = survey;
      for (const view of [this.histogram, ...this.others]) view.show(survey);
      if (survey.groups.length > 0) {
        this.gallery.show(survey.groups, this.empty(survey), `${survey.total} samples in groups of alike ones, with the share of each`);
      } else {
        this.gallery.finding(this.empty(survey), `: ${survey.samples} of ${survey.total} drawn`);
      }
      const { state: now } = this.store;
      this.gallery.sync(now, this.subject.plane(now.axis, now.cross));
    });
  }
}
