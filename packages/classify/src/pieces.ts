/** A GGUF that was cut to pieces to be uploaded. */
export interface PieceSet {
  /** The name of the whole. */
  readonly name: string
  /** All pieces, in their order. */
  readonly pieces: readonly string[]
}

interface GgufPiece {
  readonly name: string
  readonly whole: string
  /** Pieces of one set have the same style. */
  readonly style: string
  readonly number: number
  readonly total?: number
}

const PART = /^(.+\.gguf)[.-](part[-_.]?)(\d{1,4})(?:of(\d{1,4}))?$/i
const LETTERS = /^(.+\.gguf)[.-](split-)([a-z]{1,2})$/i
const NUMBERED = /^(.+\.gguf)\.(\d{3})$/i

/**
 * The sets of pieces in a listing that are whole by their names, and whose whole is not listed itself: `X.gguf.part1of2` and the like,
 * `X.gguf-split-a`, `X.gguf.001` (spec rec.31). Pieces without a total are whole if no number between is missing; whether the last is
 * there, the header of the whole tells.
 */
export function pieceSets(names: readonly string[]): PieceSet[] {
  const listed = new Set(names)
  const sets = Map.groupBy(
    names.flatMap((name) => pieceOf(name) ?? []),
    ({ whole, style, total = '' }) => `${whole}\n${style}\n${total}`
  )
  const found = [...sets.values()].flatMap((set): PieceSet[] => {
    const { whole, total } = set[0]!
    const sorted = set.toSorted((a, b) => a.number - b.number)
    const first = sorted[0]!.number
    const isWhole =
      (first === 0 || first === 1) &&
      sorted.every(({ number }, i) => number === first + i) &&
      (total === undefined ? sorted.length > 1 : sorted.length === total)
    return isWhole && !listed.has(whole) ? [{ name: whole, pieces: sorted.map(({ name }) => name) }] : []
  })
  // two styles of one whole: neither is certain
  return found.filter(({ name }) => found.filter((other) => other.name === name).length === 1)
}

function pieceOf(name: string): GgufPiece | undefined {
  const part = PART.exec(name)
  if (part !== null) {
    const [, whole, style, number, total] = part
    return {
      name,
      whole: whole!,
      style: style!,
      number: Number(number),
      ...(total !== undefined && { total: Number(total) })
    }
  }
  const letters = LETTERS.exec(name)
  if (letters !== null)
    return {
      name,
      whole: letters[1]!,
      style: `split${letters[3]!.length}`,
      number: numberOf(letters[3]!.toLowerCase())
    }
  const numbered = NUMBERED.exec(name)
  if (numbered === null) return undefined
  return { name, whole: numbered[1]!, style: '.', number: Number(numbered[2]) }
}

/** `a` is 0, `b` is 1; of two letters as `split` counts. */
const numberOf = (letters: string): number =>
  [...letters].reduce((number, letter) => number * 26 + letter.charCodeAt(0) - 97, 0)
