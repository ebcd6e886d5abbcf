// Text in lines of a width, for pictures.

/** Puts pieces into as many lines as they need; only a piece that is wider than a line is broken. */
export function wrap(pieces: readonly string[], room: number, measure: (text: string) => number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const piece of pieces) {
    const longer = line === "" ? piece : `${line} ${piece}`;
    if (measure(longer) <= room) {
      line = longer;
      continue;
    }
    if (line !== "") lines.push(line);
    line = "";
    for (const letter of piece) {
      if (line !== "" && measure(line + letter) > room) {
        lines.push(line);
        line = "";
      }
      line += letter;
    }
  }
  return line === "" ? lines : [...lines, line];
}
