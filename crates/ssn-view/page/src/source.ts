// Where cases come from: the server that sent the page, or the page itself where it is an export.

/** The scores of a case by which cases are listed, by the keys of their columns; null for one without a value. */
export type Headline = Readonly<Record<string, number | null>>;

/** A column of scores in the list of cases. */
export interface ScoreColumn {
  readonly key: string;
  readonly name: string;
  readonly title: string;
  /** What values are multiplied by, and the digits behind their point. */
  readonly factor: number;
  readonly digits: number;
}

export interface Listed {
  readonly id: string;
  readonly name: string;
  readonly size: readonly number[] | null;
  /** Null where the case was not evaluated. */
  readonly scores: Headline | null;
}

export interface Source {
  readonly title: string;
  readonly columns: readonly ScoreColumn[];
  readonly cases: readonly Listed[];
  /** What belongs into the address beside the state. */
  readonly token: string | null;
  /** The package of a case, as bytes or as text of an export; given up when the signal says so. */
  load(id: string, progress: (share: number) => void, signal: AbortSignal): Promise<{ buffer?: ArrayBuffer; base64?: string }>;
}

/** The case that an address means, by its id or its name. */
export function caseOf(cases: readonly Listed[], address: string): Listed | undefined {
  return cases.find(({ id }) => id === address) ?? cases.find(({ name }) => name === address);
}

/** How an address names a case: by its name, which stays the same from one start to the next, or by its id where the name means another. */
export function caseAddress(cases: readonly Listed[], { id, name }: Listed): string {
  return cases.some((other) => other.id !== id && (other.name === name || other.id === name)) ? id : name;
}

/** What cannot be had, in a sentence for the reader. */
export class SourceError extends Error {}

/** The cases inside the page, if it is an export. */
export function embedded(): Source | null {
  const scripts = [...document.querySelectorAll<HTMLScriptElement>('script[type="application/x-ssn-case"]')];
  if (scripts.length === 0) return null;
  const cases = scripts.map((script, i) => ({
    id: String(i), name: script.dataset.name ?? `case ${i + 1}`,
    size: script.dataset.size?.split(",").map(Number) ?? null,
    scores: script.dataset.scores ? (JSON.parse(script.dataset.scores) as Headline) : null,
  }));
  const columns = document.querySelector('script[type="application/x-ssn-columns"]')?.textContent ?? "[]";
  return {
    title: "", columns: JSON.parse(columns) as ScoreColumn[], cases, token: null,
    async load(id) {
      return { base64: scripts[Number(id)].textContent ?? "" };
    },
  };
}

const GONE = "The server does not answer. Start `ssn view` again and open the address that it prints.";

/** The cases of the server. */
export async function server(token: string | null): Promise<Source> {
  const get = async (path: string, signal?: AbortSignal): Promise<Response> => {
    let response: Response;
    try {
      response = await fetch(new URL(path, location.href), { headers: { Authorization: `Bearer ${token ?? ""}` }, cache: "no-store", signal });
    } catch {
      throw new SourceError(GONE);
    }
    if (response.ok) return response;
    if (response.status === 401) {
      throw new SourceError("This address does not have the right token. Open the address that `ssn view` prints, with all that follows #token=; each start has a token of its own.");
    }
    let said = "";
    try {
      said = String(((await response.json()) as { error?: unknown }).error ?? "");
    } catch {
      // No JSON: the status has to do.
    }
    throw new SourceError(said || `The server refused to give ${path}: ${response.status} ${response.statusText}.`);
  };
  if (token === null) {
    throw new SourceError("This address has no token. Open the address that `ssn view` prints, with all that follows #token=.");
  }
  const list = (await (await get("/api/cases")).json()) as { version: number; title: string; columns: ScoreColumn[]; cases: Listed[] };
  if (list.version !== 1) throw new SourceError(`The server speaks version ${list.version}, and this page version 1. Load the page again.`);
  return {
    title: list.title, columns: list.columns, cases: list.cases, token,
    async load(id, progress, signal) {
      const response = await get(`/api/cases/${encodeURIComponent(id)}`, signal);
      return { buffer: await readAll(response, progress) };
    },
  };
}

/** The bytes of an answer, telling how far it is where the length is known. */
async function readAll(response: Response, progress: (share: number) => void): Promise<ArrayBuffer> {
  const length = Number(response.headers.get("Content-Length") ?? 0);
  if (!response.body || !(length > 0) || response.headers.has("Content-Encoding")) return response.arrayBuffer();
  const bytes = new Uint8Array(length);
  const reader = response.body.getReader();
  let at = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (at + part.value.length > length) throw new SourceError("The server sent more than it said. Load the page again.");
      bytes.set(part.value, at);
      at += part.value.length;
      progress(at / length);
    }
  } catch (error) {
    throw error instanceof SourceError ? error : new SourceError(GONE);
  }
  if (at !== length) throw new SourceError("The connection broke off in the middle of the case. Load the page again.");
  return bytes.buffer;
}
