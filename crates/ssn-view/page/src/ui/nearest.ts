// The sample nearest to a rater, among those that were drawn for the volumes.

import type { Survey } from "../messages";
import type { Subject } from "../subject";
import { el } from "./dom";

export class Nearest {
  private readonly buttons: HTMLButtonElement[];
  private readonly told = el("p", { class: "note", "aria-live": "polite" });
  readonly element: HTMLElement;
  private survey: Survey | null = null;

  constructor(subject: Subject, private readonly choose: (sample: number) => void) {
    const { raters } = subject.header;
    this.buttons = raters.map((name, rater) => el("button", {
      type: "button", class: "chip", disabled: true, "data-control": `nearest-${rater}`, "aria-label": `go to the sample nearest to ${name}`,
      title: `Go to the sample with the smallest 1 − IoU to ${name}, of those that are drawn`, onclick: () => this.go(rater, name),
    }, name));
    this.element = el("div", { class: "nearest", hidden: raters.length === 0 },
      el("div", { class: "chips" }, el("span", { class: "caption" }, "nearest sample to"), ...this.buttons), this.told);
  }

  /** Takes what is known of other samples; null while nothing is. */
  show(survey: Survey | null): void {
    this.survey = survey;
    for (const button of this.buttons) button.disabled = survey === null;
    if (survey === null) this.told.textContent = "";
  }

  private go(rater: number, name: string): void {
    const { survey } = this;
    if (!survey) return;
    const { sample, distance } = nearestSample(survey, rater, this.buttons.length);
    const drawn = survey.samples < survey.total ? `the ${survey.samples} drawn so far` : `${survey.total}`;
    this.told.textContent = `Sample ${sample} is the nearest of ${drawn} to ${name}: 1 − IoU = ${distance.toFixed(2)}.`;
    this.choose(sample);
  }
}

/** The sample with the smallest distance to one of `k` raters; the first of several. */
export function nearestSample({ samples, raterDistances }: Pick<Survey, "samples" | "raterDistances">, rater: number, k: number): { sample: number; distance: number } {
  let best = 0;
  for (let sample = 1; sample < samples; sample++) {
    if (raterDistances[sample * k + rater] < raterDistances[best * k + rater]) best = sample;
  }
  return { sample: best, distance: raterDistances[best * k + rater] };
}
