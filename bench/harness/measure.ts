/** The median; of an even number of values the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The quantile for a share of the values, such as 0.99. */
export function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

/**
 * Runs the contestants alternately for `rounds` rounds, reversing the order each time, so that background load affects all of them
 * alike. @returns the results of each, in order.
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

/** Ratio of the fastest rounds, `a` over `b`: less sensitive to background load than the medians. */
const bestRatio = (a: readonly number[], b: readonly number[]): number => Math.min(...a) / Math.min(...b)

export const bestNote = (a: readonly number[], b: readonly number[]): string =>
  `shortest rounds ${bestRatio(a, b).toFixed(2)}`
