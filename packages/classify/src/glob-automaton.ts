/** One character of a name: a class, or a character that it must equal. Classes never accept the separator of folders. */
interface CharacterClass {
  readonly negated: boolean
  readonly ranges: readonly (readonly [from: number, to: number])[]
}

type State =
  | { readonly kind: 'character'; readonly code: number; next: number }
  | { readonly kind: 'class'; readonly of: CharacterClass; next: number }
  | { readonly kind: 'any'; next: number }
  /** Goes on in each of these without a character. */
  | { readonly kind: 'fork'; readonly to: number[] }
  | { readonly kind: 'end' }

const SLASH = 0x2f
const NOT_SLASH: CharacterClass = { negated: true, ranges: [] }
/** Alternatives within alternatives: what people write has one or two levels. */
const MAX_DEPTH = 16

/** What is wrong with a pattern, for people. */
export class GlobSyntaxError extends Error {
  override readonly name = 'GlobSyntaxError'
}

/**
 * A glob as a nondeterministic automaton (Thompson's construction), which is followed in all its states at once. It has
 * at most two states for each character of the pattern, and two more, and enters each at most once for each character
 * of a name: unlike backtracking, that is fast for every pattern and name.
 */
export class GlobAutomaton {
  readonly #states: State[] = []
  readonly #start: number
  /** For each state, the position of the name at which it was last entered. */
  readonly #enteredAt: Int32Array
  #steps = 0

  /** @throws GlobSyntaxError */
  constructor(pattern: string) {
    const end = this.#add({ kind: 'end' })
    const parser = new Parser(
      [...pattern].map((character) => character.codePointAt(0)!),
      (state) => this.#add(state)
    )
    this.#start = parser.parse(end)
    this.#enteredAt = new Int32Array(this.#states.length)
  }

  /** Visits of states so far, by which work is measured. */
  get steps(): number {
    return this.#steps
  }

  matches(name: string): boolean {
    this.#enteredAt.fill(-1)
    let now: number[] = []
    let next: number[] = []
    let at = 0
    let hasEnded = this.#enter(this.#start, at, now)
    for (const character of name) {
      const code = character.codePointAt(0)!
      at++
      next.length = 0
      hasEnded = false
      for (const index of now) {
        const state = this.#states[index] as Exclude<State, { kind: 'fork' | 'end' }>
        if (accepts(state, code) && this.#enter(state.next, at, next)) hasEnded = true
      }
      if (next.length === 0 && !hasEnded) return false
      ;[now, next] = [next, now]
    }
    return hasEnded
  }

  /** Adds what can be reached without a character to `into`; true if the end is among it. */
  #enter(from: number, at: number, into: number[]): boolean {
    let hasEnded = false
    const pending = [from]
    for (let index = pending.pop(); index !== undefined; index = pending.pop()) {
      if (this.#enteredAt[index] === at) continue
      this.#enteredAt[index] = at
      this.#steps++
      const state = this.#states[index]!
      if (state.kind === 'fork') pending.push(...state.to)
      else if (state.kind === 'end') hasEnded = true
      else into.push(index)
    }
    return hasEnded
  }

  #add(state: State): number {
    return this.#states.push(state) - 1
  }
}

function accepts(state: Exclude<State, { kind: 'fork' | 'end' }>, code: number): boolean {
  if (state.kind === 'any') return true
  if (state.kind === 'character') return state.code === code
  if (code === SLASH) return false
  return state.of.ranges.some(([from, to]) => code >= from && code <= to) !== state.of.negated
}

/** A part of the automaton under construction: where it starts, and what sets where it leads. */
interface Piece {
  readonly start: number
  readonly leadTo: (state: number) => void
}

/** Reads a pattern from left to right, and adds states for it. */
class Parser {
  readonly #codes: readonly number[]
  readonly #add: (state: State) => number
  #at = 0
  #depth = 0

  constructor(codes: readonly number[], add: (state: State) => number) {
    this.#codes = codes
    this.#add = add
  }

  /** The state in which the automaton starts. */
  parse(end: number): number {
    const piece = this.#sequence()
    if (this.#at < this.#codes.length) throw new GlobSyntaxError(unescaped(this.#codes[this.#at]!))
    piece.leadTo(end)
    return piece.start
  }

  /** Up to the end, or within alternatives to their next `,` or `}`. */
  #sequence(): Piece {
    const start: number[] = []
    let leadTo = (state: number): void => void start.push(state)
    const first = this.#add({ kind: 'fork', to: start })
    for (;;) {
      const code = this.#codes[this.#at]
      if (code === undefined || is(code, '}') || (this.#depth > 0 && is(code, ','))) return { start: first, leadTo }
      const piece = this.#piece(code)
      leadTo(piece.start)
      leadTo = piece.leadTo
    }
  }

  #piece(code: number): Piece {
    if (is(code, '*')) return this.#stars()
    this.#at++
    if (is(code, '?')) return this.#one({ kind: 'class', of: NOT_SLASH, next: 0 })
    if (is(code, '[')) return this.#one({ kind: 'class', of: this.#class(), next: 0 })
    if (is(code, '{')) return this.#alternatives()
    if (is(code, ']')) throw new GlobSyntaxError(unescaped(code))
    return this.#one({ kind: 'character', code: is(code, '\\') ? this.#escaped() : code, next: 0 })
  }

  /** Two stars that are a whole segment cross folders, and as `**` + `/` may also stand for none; others do not. */
  #stars(): Piece {
    const before = this.#codes[this.#at - 1]
    const from = this.#at
    while (is(this.#codes[this.#at], '*')) this.#at++
    const after = this.#codes[this.#at]
    const isWhole = [before, after].every((code) => code === undefined || code === SLASH || isAlternation(code))
    const crosses = this.#at - from >= 2 && isWhole
    const out: number[] = []
    const fork = this.#add({ kind: 'fork', to: out })
    const loop = this.#add(crosses ? { kind: 'any', next: fork } : { kind: 'class', of: NOT_SLASH, next: fork })
    if (!crosses || after !== SLASH) {
      out.push(loop)
      return { start: fork, leadTo: (state) => void out.push(state) }
    }
    // zero or more folders, each with its slash
    this.#at++
    const folders: number[] = [fork]
    const slash: State = { kind: 'character', code: SLASH, next: 0 }
    out.push(loop, this.#add(slash))
    const start = this.#add({ kind: 'fork', to: folders })
    return {
      start,
      leadTo: (state) => {
        folders.push(state)
        slash.next = state
      }
    }
  }

  #one(state: Extract<State, { next: number }>): Piece {
    return {
      start: this.#add(state),
      leadTo: (next) => {
        state.next = next
      }
    }
  }

  /** `{a,b}`, after its first character. */
  #alternatives(): Piece {
    if (++this.#depth > MAX_DEPTH) throw new GlobSyntaxError(`it has more than ${MAX_DEPTH} levels of braces`)
    const pieces = [this.#sequence()]
    while (is(this.#codes[this.#at], ',')) {
      this.#at++
      pieces.push(this.#sequence())
    }
    if (this.#codes[this.#at++] === undefined)
      throw new GlobSyntaxError('a "{" has no "}"; write "\\{" for the character')
    if (pieces.length === 1) throw new GlobSyntaxError('braces have no comma; write "\\{" for the character')
    this.#depth--
    return {
      start: this.#add({ kind: 'fork', to: pieces.map(({ start }) => start) }),
      leadTo: (state) => {
        for (const piece of pieces) piece.leadTo(state)
      }
    }
  }

  /** `[a-z]`, after its first character. A `]` that comes first is a character of the class. */
  #class(): CharacterClass {
    const negated = is(this.#codes[this.#at], '!') || is(this.#codes[this.#at], '^')
    if (negated) this.#at++
    const ranges: (readonly [number, number])[] = []
    for (;;) {
      const from = this.#classCharacter()
      if (is(this.#codes[this.#at], '-') && !is(this.#codes[this.#at + 1], ']')) {
        this.#at++
        const to = this.#classCharacter()
        if (to < from) throw new GlobSyntaxError('a range of characters runs backwards')
        ranges.push([from, to])
      } else ranges.push([from, from])
      if (!is(this.#codes[this.#at], ']')) continue
      this.#at++
      return { negated, ranges }
    }
  }

  #classCharacter(): number {
    const code = this.#codes[this.#at++]
    if (code === undefined) throw new GlobSyntaxError('a "[" has no "]"; write "\\[" for the character')
    return is(code, '\\') ? this.#escaped() : code
  }

  #escaped(): number {
    const code = this.#codes[this.#at++]
    if (code === undefined) throw new GlobSyntaxError('it ends in "\\"; write "\\\\" for the character')
    return code
  }
}

const is = (code: number | undefined, character: string): boolean => code === character.charCodeAt(0)

const isAlternation = (code: number): boolean => is(code, '{') || is(code, ',') || is(code, '}')

function unescaped(code: number): string {
  const character = String.fromCodePoint(code)
  return `a "${character}" has no opening bracket; write "\\${character}" for the character`
}
