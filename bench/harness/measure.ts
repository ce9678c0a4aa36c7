/** The middle value; of an even count the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The value below which a share of all lies, e.g. 0.99. */
export function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

/**
 * Runs the contestants in turn, `rounds` times, each round in the other direction, so that what else the machine does meets all of
 * them alike. Gives each one's results in order.
 */
export async function interleave<T, K extends string>(
  rounds: number,
  contestants: Readonly<Record<K, (round: number) => Promise<T>>>
): Promise<Record<K, T[]>> {
  const names = Object.keys(contestants) as K[]
  const results = Object.fromEntries(names.map((name) => [name, [] as T[]])) as Record<K, T[]>
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) results[name].push(await contestants[name](round))
  }
  return results
}

/** Ratio of medians, `a` over `b`. */
export const medianRatio = (a: readonly number[], b: readonly number[]): number => median(a) / median(b)

/** Ratio of the shortest rounds, `a` over `b`: what is left when the rest of the machine happens to be quiet. */
const bestRatio = (a: readonly number[], b: readonly number[]): number => Math.min(...a) / Math.min(...b)

export const bestNote = (a: readonly number[], b: readonly number[]): string =>
  `shortest rounds ${bestRatio(a, b).toFixed(2)}`
