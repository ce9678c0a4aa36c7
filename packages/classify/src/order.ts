/**
 * Compares two names by their UTF-8 bytes, which for well-formed strings is the order of code points. (`<` on strings
 * compares UTF-16 units, and sorts U+10000 before U+FFFD.)
 */
export function compareNames(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates sort above the rest of the basic plane, like the four-byte sequences that they stand for. */
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit)

/** A sorted copy. */
export const sortedByName = <T extends { readonly name: string }>(items: Iterable<T>): T[] =>
  [...items].sort((a, b) => compareNames(a.name, b.name))
