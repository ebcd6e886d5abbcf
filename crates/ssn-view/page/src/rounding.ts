// Numbers of settings are rounded before they are used, to what the page states of them: the command and the address then
// give the sample that is shown, and no other.

const DECIMALS = 4;

/** A number as settings have it. */
export function rounded(x: number): number {
  // Adding 0 takes the sign of −0 away.
  return Number(x.toFixed(DECIMALS)) + 0;
}

/** How many decimals a number of settings has. */
export function decimalsOf(x: number): number {
  return rounded(x).toFixed(DECIMALS).replace(/\.?0+$/, "").split(".")[1]?.length ?? 0;
}
