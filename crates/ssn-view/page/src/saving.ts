// Saving what is shown, and saying so where it fails.

import { Dropped, type Engine } from "./engine";
import { type FigureOptions, USUAL_FIGURE, figure } from "./figure";
import { asArguments, download, fileName, labelMap } from "./save";
import type { Store } from "./state";
import { type Message, toast } from "./ui/messages";
import type { Stage } from "./view/stage";

export class Saving {
  private count = 0;
  /** How figures are made; the last choice stays. */
  figure: FigureOptions = USUAL_FIGURE;

  constructor(
    private readonly engine: Engine, private readonly stage: Stage, private readonly store: Store, private readonly say: (message: Message | null) => void,
  ) {}

  /** Saves the views as a figure. */
  picture(): Promise<void> {
    return this.attempt("The picture was not saved", async () => {
      const { subject } = this.stage;
      if (!subject) return;
      const name = `${fileName(subject, this.store.settings)}.png`;
      download(name, await figure(this.stage, subject, this.store.state, this.figure));
    });
  }

  /** Saves the sample. */
  labelMap(): Promise<void> {
    return this.attempt("The label map was not saved", async () => {
      const { subject } = this.stage;
      if (!subject) return;
      const { settings } = this.store;
      // Each has a channel of its own: one that is asked for while another is made does not take its place.
      const { labels } = await this.engine.once(`save ${++this.count}`, { kind: "volume", settings });
      download(`${fileName(subject, settings)}.nii.gz`, await labelMap(subject, labels));
      toast(`Saved what \`ssn sample ${asArguments(subject, settings)}\` gives.`);
    });
  }

  private async attempt(title: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof Dropped) return toast(`${title}: another case was opened before it was done.`);
      const text = error instanceof Error ? error.message : String(error);
      this.say({ kind: "error", title, text, action: { name: "Close", act: () => this.say(null) } });
    }
  }
}
