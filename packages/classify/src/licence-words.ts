/**
 * The words of a licence text that matter for a comparison: without copyright lines, list markers, markup, addresses
 * and everything after the terms. Used for the curated texts and for a repository's files alike; a change requires a
 * new `SPEC_VERSION`. Linear in the length of the text.
 */
export function licenceWords(text: string): string[] {
  const lines = text
    .replace(/^\uFEFF/, '')
    .replaceAll('\r', '')
    .replace(/<[^<>]{1,200}>/g, ' ')
    .replace(/&(?:[a-z]{1,10}|#\d{1,6});/gi, ' ')
    .replace(/https?:\/\/\S+/gi, ' ')
    .split('\n')
  const kept: string[] = []
  for (const line of lines) {
    if (line.length <= 200 && COPYRIGHT_LINE.test(line)) continue
    kept.push(line.replace(LIST_MARKER, ' '))
    if (END_OF_TERMS.test(line)) break
  }
  return (
    kept
      .join('\n')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  )
}

// Characters beyond Latin-1 are escaped: one of them in a bundle makes its whole text take two bytes a character in memory.
const END_OF_TERMS = /END OF (?:THE )?TERMS AND CONDITIONS/i
/** A notice with its holder, as opposed to a wrapped line of the terms that starts with the same word. */
const COPYRIGHT_LINE =
  /^[\s#*/>_;%-]*(?:(?:portions )?copyright\s*(?:$|\(c\)|\xa9|\d{4}|[[{,]|by\b)|\xa9|\(c\)\s*(?:\d{4}|copyright)|all rights reserved\.?[\s*]*$)/i
const LIST_MARKER = /^[\s#>*]*(?:\(?(?:\d{1,2}(?:\.\d{1,2})*|[a-z]|[ivx]{1,4})[.)]|[*\u2022+-])(?=\s)/i

/** A multiset of adjacent word pairs. */
export interface Bigrams {
  readonly counts: ReadonlyMap<string, number>
  readonly total: number
}

export function bigramsOf(words: readonly string[]): Bigrams {
  const counts = new Map<string, number>()
  for (let i = 1; i < words.length; i++) {
    const pair = `${words[i - 1]} ${words[i]}`
    counts.set(pair, (counts.get(pair) ?? 0) + 1)
  }
  return { counts, total: Math.max(0, words.length - 1) }
}

/** Sørensen–Dice similarity of two multisets: 1 for equal, 0 for disjoint or empty ones. */
export function dice(a: Bigrams, b: Bigrams): number {
  if (a.total === 0 || b.total === 0) return 0
  let common = 0
  for (const [pair, count] of a.counts) common += Math.min(count, b.counts.get(pair) ?? 0)
  return (2 * common) / (a.total + b.total)
}
