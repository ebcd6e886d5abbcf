// The page: ties the parts together for the case that is open.

import { type Left, carry } from "./carry";
import { Engine } from "./engine";
import { fragmentParts, readFragment, writeFragment } from "./fragment";
import type { Orientation } from "./geometry";
import type { Triple } from "./package";
import { onImage } from "./save";
import { Saving } from "./saving";
import { type Listed, type Source, caseAddress, caseOf } from "./source";
import { type State, Store, type Theme, defaultSettings } from "./state";
import { Subject } from "./subject";
import { Cases } from "./ui/cases";
import { setIcon } from "./ui/dom";
import { Gallery } from "./ui/gallery";
import { listenToKeys } from "./ui/keys";
import { Motion } from "./ui/motion";
import { Panel } from "./ui/panel";
import { describe } from "./ui/readout";
import { saveDialog } from "./ui/savedialog";
import { Shell } from "./ui/shell";
import { SliceBar } from "./ui/slices";
import { Statistics } from "./ui/statistics";
import { SurfaceDialog } from "./ui/surface";
import { type Message, showMessage, toast } from "./ui/messages";
import type { Pane } from "./view/pane";
import { listenToPointer } from "./view/pointer";
import { Stage } from "./view/stage";

/** What belongs to the open case. */
interface Open {
  readonly subject: Subject;
  readonly initial: State;
  readonly panel: Panel;
  readonly motion: Motion;
  readonly gallery: Gallery;
  readonly statistics: Statistics;
  readonly slices: SliceBar;
  readonly surface: SurfaceDialog;
}

export class App {
  readonly engine = new Engine((message) => this.fail(message));
  readonly timings = { load: 0, transfer: 0, open: 0, frame: 0, sampling: 0 };
  private readonly store = new Store({} as State);
  private readonly shell: Shell;
  private readonly cases: Cases;
  private readonly stage: Stage;
  private readonly saving: Saving;
  private readonly saveDialog: ReturnType<typeof saveDialog>;
  private current: Open | null = null;
  /** The case that was open last, whose settings the next one takes over. */
  private left: Left | null = null;
  /** The opening that was asked for last: no other may show anything. */
  private opening = new AbortController();
  /** The voxel under the mouse, and where it is. */
  private pointed: [Triple | null, Pane | null] = [null, null];
  private hash = 0;
  /** The fragment that is known to this page. */
  private written = location.hash;

  constructor(private readonly source: Source) {
    this.cases = new Cases(source.cases, source.columns, (id) => void this.open(caseOf(source.cases, id)!));
    this.shell = new Shell(source.title, this.cases.element, {
      layout: () => this.store.update({ layout: this.store.state.layout === "three" ? "single" : "three" }),
      compare: () => this.store.update({ compare: !this.store.state.compare, active: this.store.state.compare ? 0 : 1 }),
      surface: () => this.current?.surface.open(),
      theme: () => this.nextTheme(),
      picture: () => this.saveDialog.open(),
      labelMap: () => void this.saving.labelMap(),
      link: () => void this.copyLink(),
    });
    this.stage = new Stage(this.shell.views, this.engine, this.store, {
      progress: (share) => {
        this.shell.progress.value = share;
        this.shell.progress.dataset.done = String(share >= 1);
      },
      correlated: (known) => this.current?.panel.correlated(known),
      painted: () => {
        this.timings.frame = this.stage.frame.total;
        this.timings.sampling = this.stage.frame.sampling;
        this.shell.frame.textContent = this.stage.frame.total > 0 ? `${this.stage.frame.total.toFixed(0)} ms` : "";
        this.read(...this.pointed);
      },
      trouble: (message) => this.fail(message),
    });
    this.saving = new Saving(this.engine, this.stage, this.store, (message) => this.say(message));
    this.saveDialog = saveDialog(this.saving);
    document.body.append(this.saveDialog.element);
    this.store.listen((state, before) => this.follow(state, before));
    listenToPointer(this.stage, this.store, { hover: (voxel, pane) => this.read(voxel, pane) });
    listenToKeys(this.stage, this.store, {
      play: () => this.current?.motion.play(),
      step: (by) => this.step(by),
      case: (by) => this.cases.step(by),
      picture: () => void this.saving.picture(),
      pictureChoices: () => this.saveDialog.open(),
      labelMap: () => void this.saving.labelMap(),
      link: () => void this.copyLink(),
      help: () => (this.shell.help.open ? this.shell.help.close() : this.shell.help.showModal()),
      surface: () => this.current?.surface.open(),
      resetSteering: () => this.resetSteering(),
      contrast: () => this.store.update({ window: this.current!.subject.autoWindow(this.store.state.channel) }),
    });
    window.addEventListener("hashchange", () => void this.restore());
  }

  /** Opens the case that the address names, or the first. */
  async start(): Promise<void> {
    if (this.source.cases.length === 0) {
      return this.fail("There are no cases to show. Give `ssn view` a folder with distribution files.", "Nothing to show");
    }
    const wanted = fragmentParts(location.hash).get("case");
    const listed = wanted === undefined ? this.source.cases[0] : caseOf(this.source.cases, wanted);
    if (listed) await this.open(listed);
    else this.missing(wanted!);
  }

  /** Says that the address names a case that is not here. What else the address says is meant for that case, and for no other. */
  private missing(name: string): void {
    const { cases } = this.source;
    const [first] = cases;
    const open = this.current;
    this.opening.abort();
    this.say({
      kind: "error", title: "This case is not here",
      text: `The address names the case “${name}”, but ${cases.length === 1 ? "the only case here is another" : `none of the ${cases.length} cases here has that name`}. ${
        this.source.token === null ? "Open the export that has it" : "Start `ssn view` with the folder that has it"}, or choose a case that is here. The settings of the address are for the missing one, and are left out.`,
      action: open
        ? { name: `Go on with ${open.subject.header.name}`, act: () => { this.say(null); this.writeHash(); } }
        : { name: `Open ${first.name}`, act: () => void this.open(first) },
    });
  }

  /** Opens a case, and gives up the opening of another; what the address says of it is restored. */
  async open(listed: Listed): Promise<void> {
    const start = performance.now();
    this.opening.abort();
    const { signal } = this.opening = new AbortController();
    this.close();
    this.cases.set(listed.id);
    const say = (share: number) => {
      if (signal.aborted) return;
      this.say({ kind: "busy", title: `Opening ${listed.name}`, text: share === 0 ? "The case is being prepared." : share < 1 ? `${Math.round(100 * share)} % has arrived.` : "The case is being read.", share });
    };
    this.say(null);
    const soon = window.setTimeout(() => say(0), 150);
    try {
      const data = await this.source.load(listed.id, (share) => { if (performance.now() - start > 150) say(share); }, signal);
      if (signal.aborted) return;
      this.timings.transfer = performance.now() - start;
      const opened = await this.engine.once("open", { kind: "open", ...data, cores: navigator.hardwareConcurrency }, data.buffer ? [data.buffer] : []);
      if (signal.aborted) return;
      window.clearTimeout(soon);
      this.show(new Subject(listed.id, opened));
      this.say(null);
      await this.settled();
      if (signal.aborted) return;
      this.timings.open = performance.now() - start;
      this.timings.load ||= performance.now();
    } catch (error) {
      if (!signal.aborted) this.fail(error instanceof Error ? error.message : String(error), `${listed.name} cannot be shown`);
    } finally {
      window.clearTimeout(soon);
    }
  }

  /** Leaves the open case, if there is one. */
  private close(): void {
    if (!this.current) return;
    const { subject: { header }, initial, motion, statistics, surface } = this.current;
    surface.element.remove();
    motion.stop();
    statistics.stop();
    this.left = { header, initial, state: this.store.state };
    this.current = null;
    this.stage.subject = null;
  }

  /** Shows an opened case: as the address says, if it is about this case, and otherwise with what was chosen for the case before. */
  private show(subject: Subject): void {
    const initial = subject.firstState();
    const parts = fragmentParts(location.hash);
    const named = parts.get("case");
    const restored = named === undefined ? !this.left : caseOf(this.source.cases, named)?.id === subject.id;
    const state = restored ? readFragment(parts, initial, subject.header, subject.stored)
      : this.left ? carry(this.left, initial, subject.header, subject.stored) : initial;
    this.store.reset(state);
    const motion = new Motion(this.store, subject, () => this.current?.panel.sync(this.store.state));
    const panel = new Panel(this.store, subject, motion);
    const gallery = new Gallery(this.engine, subject, (sample) => this.store.steer({ sample }));
    const surface = new SurfaceDialog(this.engine, this.store, subject);
    const statistics = new Statistics(this.engine, this.store, subject, panel.histogram, [panel.nearest, surface], gallery);
    const slices = new SliceBar(this.store, subject);
    this.current = { subject, initial, panel, motion, gallery, statistics, slices, surface };
    document.body.append(surface.element);
    this.shell.panelPlace.replaceChildren(panel.element);
    this.shell.slicePlace.replaceChildren(slices.element);
    this.shell.galleryPlace.replaceChildren(gallery.element);
    this.shell.buttons.layout.hidden = this.shell.buttons.surface.hidden = !subject.volume;
    document.title = `${subject.header.name} · ssn view`;
    this.stage.open(subject);
    this.follow(state, state);
  }

  /** Follows a change of the state. */
  private follow(state: State, before: State): void {
    if (!this.current) return;
    document.documentElement.dataset.theme = state.theme;
    setIcon(this.shell.buttons.layout, state.layout === "three" ? "single" : "three");
    this.shell.buttons.compare.setAttribute("aria-pressed", String(state.compare));
    this.current.panel.sync(state);
    this.current.slices.sync(state);
    this.stage.update(state, before);
    this.current.statistics.sync(state);
    if (before.cross !== state.cross || state === before) this.read(null, null);
    if (before.cross !== state.cross || before.settings !== state.settings || before.axis !== state.axis || state === before) this.shell.announcer.say(() => this.told());
    window.clearTimeout(this.hash);
    this.hash = window.setTimeout(() => this.writeHash(), 200);
  }

  private writeHash(): void {
    // An address that was changed by hand is followed, not written over.
    if (!this.current || location.hash !== this.written) return;
    const { cases, token } = this.source;
    const address = caseAddress(cases, caseOf(cases, this.current.subject.id)!);
    // A page that is part of another one, as in a notebook, has no address of its own.
    if (location.href === "about:srcdoc") return;
    history.replaceState(null, "", `#${writeFragment(this.store.state, this.current.initial, address, token)}`);
    this.written = location.hash;
  }

  /** Follows an address that was changed by hand. */
  private async restore(): Promise<void> {
    // What was to be written is older than this address.
    window.clearTimeout(this.hash);
    const parts = fragmentParts(location.hash);
    this.written = location.hash;
    const wanted = parts.get("case") ?? this.current?.subject.id;
    if (wanted === undefined) return;
    const listed = caseOf(this.source.cases, wanted);
    if (!listed) return this.missing(wanted);
    if (listed.id !== this.current?.subject.id) return this.open(listed);
    this.say(null);
    this.store.update(readFragment(parts, this.current.initial, this.current.subject.header, this.current.subject.stored));
  }

  private nextTheme(): void {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const order: readonly Theme[] = dark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    this.store.update({ theme: order[(order.indexOf(this.store.state.theme) + 1) % order.length] });
  }

  private step(by: number): void {
    const last = this.current!.subject.header.kind === "sampled" ? this.current!.subject.stored - 1 : Number.MAX_SAFE_INTEGER;
    this.store.steer({ sample: Math.min(Math.max(this.store.settings.sample + by, 0), last) });
  }

  private resetSteering(): void {
    const { seed, sample } = this.store.settings;
    this.store.steer({ ...defaultSettings(this.current!.subject.header), seed, sample });
  }

  private read(voxel: Triple | null, pane: Pane | null): void {
    if (!this.current) return;
    this.pointed = [voxel, pane];
    const { line, full } = describe(this.current.subject, this.store.state, voxel, pane ?? this.stage.main(this.store.state.active));
    [this.shell.readout.textContent, this.shell.readout.title] = [line, full];
  }

  /** What is shown, in words. */
  private told(): string {
    if (!this.current) return "";
    const { subject } = this.current;
    const { state, settings } = this.store;
    const { number, count } = subject.slice(subject.plane(state.axis, state.cross));
    const slice = subject.volume ? [`${subject.planes[state.axis].name} slice ${number} of ${count}`] : [];
    return [subject.header.name, `sample ${settings.sample}`, ...slice, describe(subject, state, null, null).line.replaceAll("  ·  ", ", ")].join(", ");
  }

  private async copyLink(): Promise<void> {
    this.writeHash();
    try {
      await navigator.clipboard.writeText(location.href);
      toast(this.source.token === null ? "Link copied." : "Link copied. It works on this machine while `ssn view` runs.");
    } catch {
      toast("The browser does not let the page copy: take the address from its address bar.");
    }
  }

  private say(message: Message | null): void {
    showMessage(this.shell.message, message);
  }

  private fail(text: string, title = "Something went wrong"): void {
    this.say({ kind: "error", title, text });
  }

  /** Ends when the views show what the state says. */
  async settled(): Promise<void> {
    for (;;) {
      await new Promise((done) => requestAnimationFrame(done));
      if (!this.shell.message.hidden && this.shell.message.dataset.kind === "error") return;
      if (this.stage.settled) return;
    }
  }

  /** The labels of the shown sample over the whole image. */
  async labels(): Promise<{ size: Triple; data: Uint8Array }> {
    const { subject } = this.current!;
    const { labels } = await this.engine.once("test", { kind: "volume", settings: this.store.settings });
    return { size: subject.header.size, data: onImage(subject, labels) };
  }

  /** The labels on the canvas of the main view, and where each of its voxels is on it. */
  slice(): { axis: number; index: number; rows: number; columns: number; data: Uint8Array; matrix: readonly number[] } | null {
    const pane = this.stage.main(this.store.state.active);
    if (!pane?.shown || !pane.transform || !this.current) return null;
    const { plane, labels } = pane.shown;
    const { header, size } = this.current.subject;
    const rows = size[plane.axis === 0 ? 1 : 0];
    return {
      axis: plane.axis, index: plane.index + header.shown.start[plane.axis], rows, columns: labels.length / rows,
      data: labels, matrix: pane.transform.matrix,
    };
  }

  /** How the planes across the axes stand. */
  planes(): readonly Orientation[] {
    return this.current?.subject.planes ?? [];
  }

  /** The map of numbers on the canvas of the main view, if there is one. */
  map(): Float32Array | null {
    return this.stage.main(this.store.state.active)?.shown?.map ?? null;
  }

  /** The state as the address has it. */
  get fragment(): string {
    this.writeHash();
    return location.hash;
  }
}
