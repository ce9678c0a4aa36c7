import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

/** A parser of untrusted bytes. */
export interface FuzzTarget {
  /** Also the name of its saved corpus, `vectors/corpora/<name>.json`. */
  readonly name: string
  /** Valid inputs, and nearly valid ones. */
  readonly seeds: readonly (Uint8Array | string)[]
  /** Tokens of the format that a mutation may insert. */
  readonly dictionary: readonly (Uint8Array | string)[]
  /** Longest input. */
  readonly maxBytes?: number
  /**
   * Parses an input. Returns a short description of the outcome: inputs with a new one join the corpus, which directs
   * the search, as coverage would. May throw only errors that `expected` accepts.
   */
  run(input: Uint8Array): string
  /** Describes a refusal by the parser's own error, e.g. its code and reason; undefined for any other error. */
  expected(error: unknown): string | undefined
}

/** Cases per target: few in the first tier, a million in the longer one. */
const CASES = Number(process.env.SVC_FUZZ_CASES ?? 3_000)
const MAX_BYTES = 64 * 1024
const MAX_CORPUS = 400
/** With more outcomes, their novelty no longer directs the search. */
const MAX_OUTCOMES = 5_000
/** Inputs kept from a run for the next one. */
const MAX_SAVED = 64
/** Far above what any of the parsers takes for 64 KiB, to allow for garbage collection and a busy machine. */
const MAX_CASE_MS = 400
/** Heap growth beyond what the target held after its seeds. */
const MAX_GROWTH_BYTES = 192 * 2 ** 20

const corpusPath = (name: string): string =>
  fileURLToPath(new URL(`../../../vectors/corpora/${name}.json`, import.meta.url))

const bytesOf = (input: Uint8Array | string): Uint8Array =>
  typeof input === 'string' ? new TextEncoder().encode(input) : input

/** Repeatable numbers: xorshift32. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed | 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % Math.max(1, below)
  }
}

const NUMBERS = [
  '0',
  '-1',
  '00',
  '1e5',
  '255',
  '65536',
  '2147483648',
  '4294967296',
  '9007199254740993',
  '99999999999999999999'
]
const EDGES = [0, 1, 0x7f, 0x80, 0xff]

/** One to four of the changes that break parsers: flipped bits, edge values, tokens, cuts, copies, splices. */
function mutate(
  corpus: readonly Uint8Array[],
  dictionary: readonly Uint8Array[],
  maxBytes: number,
  random: (below: number) => number
): Uint8Array {
  let bytes = Uint8Array.from(corpus[random(corpus.length)]!)
  const splice = (at: number, remove: number, insert: Uint8Array): void => {
    const next = new Uint8Array(bytes.length - remove + insert.length)
    next.set(bytes.subarray(0, at))
    next.set(insert, at)
    next.set(bytes.subarray(at + remove), at + insert.length)
    bytes = next
  }
  for (let changes = 1 + random(4); changes > 0; changes -= 1) {
    const at = random(bytes.length + 1)
    const left = bytes.length - at
    switch (random(9)) {
      case 0:
        if (left > 0) bytes[at] = bytes[at]! ^ (1 << random(8))
        break
      case 1:
        if (left > 0) bytes[at] = EDGES[random(EDGES.length)]!
        break
      case 2:
        splice(at, 0, dictionary[random(dictionary.length)] ?? bytesOf(NUMBERS[random(NUMBERS.length)]!))
        break
      case 3:
        splice(at, random(Math.min(left, 64) + 1), bytesOf(NUMBERS[random(NUMBERS.length)]!))
        break
      case 4:
        splice(at, random(left + 1), new Uint8Array())
        break
      case 5: {
        const length = random(Math.min(left, 256) + 1)
        const copy = bytes.slice(at, at + length)
        for (let times = 1 + random(8); times > 0; times -= 1) splice(at, 0, copy)
        break
      }
      case 6: {
        const other = corpus[random(corpus.length)]!
        const from = random(other.length + 1)
        splice(at, left, other.subarray(from))
        break
      }
      case 7: {
        // a big-endian or little-endian 32-bit length.
        const value = [0, 1, 13, 0x4000, 0x4001, 0x20000, 0x7fffffff, 0x80000000, 0xffffffff][random(9)]!
        const field = new Uint8Array(4)
        new DataView(field.buffer).setUint32(0, value, random(2) === 0)
        splice(at, Math.min(4, left), field)
        break
      }
      default:
        splice(at, 0, new Uint8Array(random(32)).fill(random(256)))
    }
    if (bytes.length > maxBytes) bytes = bytes.slice(0, maxBytes)
  }
  return bytes
}

function timeOf(target: FuzzTarget, input: Uint8Array): number {
  const started = performance.now()
  try {
    target.run(input)
  } catch {
    // only the duration matters here.
  }
  return performance.now() - started
}

const savedCorpus = (name: string): Uint8Array[] =>
  existsSync(corpusPath(name))
    ? (JSON.parse(readFileSync(corpusPath(name), 'utf8')) as string[]).map((text) => Buffer.from(text, 'base64'))
    : []

/**
 * If `SVC_FUZZ_SAVE` is set, keeps inputs with new outcomes for later runs; small ones, so that people can read them.
 */
function saveCorpus(name: string, seeds: number, corpus: readonly Uint8Array[]): void {
  if (process.env.SVC_FUZZ_SAVE === undefined) return
  const found = corpus
    .slice(seeds)
    .filter((bytes) => bytes.length <= 1_024)
    .slice(0, MAX_SAVED)
  const texts = found.map((bytes) => Buffer.from(bytes).toString('base64'))
  mkdirSync(dirname(corpusPath(name)), { recursive: true })
  writeFileSync(corpusPath(name), `${JSON.stringify(texts, null, 2)}\n`)
}

function grownBytes(before: NodeJS.MemoryUsage): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers
}

/**
 * Declares a test per target: mutated inputs give a result or the parser's own error, quickly, and without growing
 * memory.
 */
export function describeFuzz(targets: readonly FuzzTarget[]): void {
  describe(`${CASES} mutated inputs each`, () => {
    test.each(targets.map((target) => [target.name, target] as const))('%s', (name, target) => {
      const maxBytes = target.maxBytes ?? MAX_BYTES
      const dictionary = target.dictionary.map(bytesOf)
      const seeds = target.seeds.map(bytesOf)
      const corpus = [...seeds, ...savedCorpus(name)]
      const seen = new Set<string>()
      const seed = Number(process.env.SVC_FUZZ_SEED ?? 1)
      const random = randomFrom(seed)
      let slowestMs = 0
      let accepted = 0

      const tryOne = (input: Uint8Array, isNew: boolean): void => {
        const started = performance.now()
        let outcome: string
        try {
          outcome = `+${target.run(input)}`
          accepted += 1
        } catch (error) {
          const refusal = target.expected(error)
          if (refusal === undefined) {
            const shown = Buffer.from(input.subarray(0, 4_096)).toString('base64')
            throw new Error(`seed ${seed}: ${String(error)}\ninput (base64, up to 4 KiB): ${shown}`, { cause: error })
          }
          outcome = `-${refusal}`
        }
        const tookMs = performance.now() - started
        if (tookMs > MAX_CASE_MS) {
          // a busy machine may have delayed it: only an input that is slow repeatedly counts.
          const againMs = Math.min(...Array.from({ length: 4 }, () => timeOf(target, input)))
          slowestMs = Math.max(slowestMs, againMs)
          if (againMs > MAX_CASE_MS) {
            const shown = Buffer.from(input.subarray(0, 4_096)).toString('base64')
            throw new Error(`seed ${seed}: ${againMs.toFixed(0)} ms for ${input.length} bytes: ${shown}`)
          }
        } else if (tookMs > slowestMs) slowestMs = tookMs
        if (seen.size > MAX_OUTCOMES || seen.has(outcome)) return
        seen.add(outcome)
        if (isNew && corpus.length < MAX_CORPUS) corpus.push(input)
      }

      for (const input of corpus.slice()) tryOne(input, false)
      expect(accepted, 'no seed is valid').toBeGreaterThan(0)
      const before = process.memoryUsage()
      for (let done = 0; done < CASES; done += 1) {
        tryOne(mutate(corpus, dictionary, maxBytes, random), true)
        if (done % 5_000 !== 4_999) continue
        if (grownBytes(before) < MAX_GROWTH_BYTES) continue
        // what V8 has not collected yet does not count
        const session = new Session()
        session.connect()
        session.post('HeapProfiler.collectGarbage')
        session.disconnect()
        expect(grownBytes(before)).toBeLessThan(MAX_GROWTH_BYTES)
      }
      saveCorpus(name, seeds.length, corpus)
      if (CASES > 10_000) {
        console.log(
          `${name}: ${CASES} cases, ${seen.size} outcomes, ${accepted} accepted, slowest ${slowestMs.toFixed(1)} ms`
        )
      }
    })
  })
}
