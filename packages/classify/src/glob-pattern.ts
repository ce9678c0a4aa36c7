import { ClassifyError } from './errors.ts'

/** Alternatives within alternatives: what people write has one or two levels. */
const MAX_DEPTH = 16

/** Where a part of a pattern may end in a name, given as its characters, if it begins at one of `from`. */
type PatternPart = (name: readonly string[], from: ReadonlySet<number>) => ReadonlySet<number>

/**
 * A glob. Each part of it is followed from all positions at once, and looks at each position of a name at most twice: unlike
 * backtracking, that is fast for every pattern and name.
 */
export class GlobPattern {
  readonly #whole: PatternPart

  /** @throws ClassifyError `E_BAD_GLOB` */
  constructor(pattern: string) {
    this.#whole = new Parser(pattern).parse()
  }

  matches(name: string): boolean {
    const characters = [...name]
    return this.#whole(characters, new Set([0])).has(characters.length)
  }
}

const character =
  (isFitting: (character: string) => boolean): PatternPart =>
  (name, from) => {
    const ends = new Set<number>()
    for (const at of from) {
      const next = name[at]
      if (next !== undefined && isFitting(next)) ends.add(at + 1)
    }
    return ends
  }

const withinFolder: PatternPart = (name, from) => {
  const ends = new Set<number>()
  for (const start of from) {
    for (let at = start; !ends.has(at); at++) {
      ends.add(at)
      if (at === name.length || name[at] === '/') break
    }
  }
  return ends
}

const acrossFolders: PatternPart = (name, from) => {
  const ends = new Set<number>()
  for (let at = firstOf(from); at <= name.length; at++) ends.add(at)
  return ends
}

/** No folder, or more, each with its slash. */
const folders: PatternPart = (name, from) => {
  const ends = new Set(from)
  for (let at = firstOf(from); at < name.length; at++) if (name[at] === '/') ends.add(at + 1)
  return ends
}

const firstOf = (positions: ReadonlySet<number>): number =>
  [...positions].reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY)

const sequence =
  (parts: readonly PatternPart[]): PatternPart =>
  (name, from) =>
    parts.reduce((reached, part) => part(name, reached), from)

const oneOf =
  (parts: readonly PatternPart[]): PatternPart =>
  (name, from) => {
    const ends = new Set<number>()
    for (const part of parts) for (const at of part(name, from)) ends.add(at)
    return ends
  }

class Parser {
  readonly #pattern: string
  readonly #characters: readonly string[]
  #at = 0
  #depth = 0

  constructor(pattern: string) {
    this.#pattern = pattern
    this.#characters = [...pattern]
  }

  parse(): PatternPart {
    const whole = this.#sequence()
    if (this.#at < this.#characters.length) this.#failUnopened('}')
    return whole
  }

  #fail(what: string): never {
    const shown = JSON.stringify(this.#pattern.slice(0, 80))
    throw new ClassifyError('E_BAD_GLOB', `the pattern ${shown} is malformed: ${what}`)
  }

  #failUnopened(bracket: string): never {
    this.#fail(`a "${bracket}" has no opening bracket; write "\\${bracket}" for the character`)
  }

  /** Up to the end, or within alternatives to their next `,` or `}`. */
  #sequence(): PatternPart {
    const parts: PatternPart[] = []
    for (;;) {
      const next = this.#characters[this.#at]
      if (next === undefined || next === '}' || (this.#depth > 0 && next === ',')) return sequence(parts)
      parts.push(next === '*' ? this.#stars() : this.#part(next))
    }
  }

  #part(first: string): PatternPart {
    this.#at++
    if (first === '?') return character((next) => next !== '/')
    if (first === '[') return this.#class()
    if (first === '{') return this.#alternatives()
    if (first === ']') this.#failUnopened(first)
    const literal = first === '\\' ? this.#escaped() : first
    return character((next) => next === literal)
  }

  /** Two stars that are a whole segment cross folders, and as `**` + `/` may also stand for none; others do not. */
  #stars(): PatternPart {
    const from = this.#at
    while (this.#characters[this.#at] === '*') this.#at++
    const [before, after] = [this.#characters[from - 1], this.#characters[this.#at]]
    const isWhole = [before, after].every((next) => next === undefined || '/{,}'.includes(next))
    if (this.#at - from < 2 || !isWhole) return withinFolder
    if (after !== '/') return acrossFolders
    this.#at++
    return folders
  }

  /** `{a,b}`, after its first character. */
  #alternatives(): PatternPart {
    if (++this.#depth > MAX_DEPTH) this.#fail(`it has more than ${MAX_DEPTH} levels of braces`)
    const parts = [this.#sequence()]
    while (this.#characters[this.#at] === ',') {
      this.#at++
      parts.push(this.#sequence())
    }
    if (this.#characters[this.#at++] === undefined) this.#fail('a "{" has no "}"; write "\\{" for the character')
    if (parts.length === 1) this.#fail('braces have no comma; write "\\{" for the character')
    this.#depth--
    return oneOf(parts)
  }

  /** `[a-z]`, after its first character. A `]` that comes first is a character of the class. */
  #class(): PatternPart {
    const isNegated = this.#characters[this.#at] === '!' || this.#characters[this.#at] === '^'
    if (isNegated) this.#at++
    const ranges: (readonly [from: number, to: number])[] = []
    do {
      const from = this.#classCharacter()
      const isRange = this.#characters[this.#at] === '-' && this.#characters[this.#at + 1] !== ']'
      if (isRange) this.#at++
      const to = isRange ? this.#classCharacter() : from
      if (to < from) this.#fail('a range of characters runs backwards')
      ranges.push([from, to])
    } while (this.#characters[this.#at] !== ']')
    this.#at++
    const isListed = (code: number): boolean => ranges.some(([from, to]) => code >= from && code <= to)
    return character((next) => next !== '/' && isListed(next.codePointAt(0)!) !== isNegated)
  }

  #classCharacter(): number {
    const next = this.#characters[this.#at++]
    if (next === undefined) this.#fail('a "[" has no "]"; write "\\[" for the character')
    return (next === '\\' ? this.#escaped() : next).codePointAt(0)!
  }

  #escaped(): string {
    return this.#characters[this.#at++] ?? this.#fail('it ends in "\\"; write "\\\\" for the character')
  }
}
