/** What a JSON text would be, told without parsing it: parsing costs far more than this where somebody means it to. */
interface JsonShape {
  /** How deep brackets outside of strings are nested. */
  readonly depth: number
  /** Strings, keys among them. */
  readonly strings: number
}

/** Where counting may end. */
type JsonBounds = Pick<JsonShape, 'depth'> & Partial<JsonShape>

/** Counting ends with the first character that goes beyond one of the bounds. */
export function jsonShape(text: string, { depth: most, strings: mostStrings = Infinity }: JsonBounds): JsonShape {
  let depth = 0
  let deepest = 0
  let strings = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (inString) {
      if (c === 0x5c) i++
      else if (c === 0x22) inString = false
    } else if (c === 0x22) {
      inString = true
      if (++strings > mostStrings) break
    } else if (c === 0x5b || c === 0x7b) {
      deepest = Math.max(deepest, ++depth)
      if (deepest > most) break
    } else if (c === 0x5d || c === 0x7d) depth--
  }
  return { depth: deepest, strings }
}
