import { createHash } from 'node:crypto'

/** A file of a model whose every 64 bytes name it: a range of it is recognised wherever it turns up. */
export interface TaggedFile {
  readonly name: string
  readonly tag: string
  readonly bytes: Buffer
  readonly sha256: string
}

/** A model of two files of its own. */
export interface TaggedModel {
  readonly quant: string
  readonly files: readonly TaggedFile[]
}

const QUANTS = ['q8_0', 'q4_0'] as const
const TAG = /<([wc]\d{6})>/g

const tagged = (name: string, tag: string, bytes: Buffer): TaggedFile => ({
  name,
  tag,
  bytes,
  sha256: createHash('sha256').update(bytes).digest('hex')
})

/** The model of a number: equal numbers give equal bytes. */
export function taggedModel(number: number): TaggedModel {
  const digits = String(number).padStart(6, '0')
  const quant = QUANTS[number % QUANTS.length]!
  const head = Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}`, 'latin1')
  const weights = Buffer.concat([head, Buffer.from(`<w${digits}>`.repeat(150 + (number % 100)))])
  const config = JSON.stringify({ model_type: 'llama', note: `<c${digits}>` })
  return {
    quant,
    files: [tagged(`m-${quant}.gguf`, `w${digits}`, weights), tagged('config.json', `c${digits}`, Buffer.from(config))]
  }
}

/** The tags of all files of which bytes are in `bytes`. */
export const tagsIn = (bytes: Buffer): ReadonlySet<string> =>
  new Set([...bytes.toString('latin1').matchAll(TAG)].map(([, tag]) => tag!))

/** Words of 64 hex characters, as digests are written. */
export const digestsIn = (bytes: Buffer): ReadonlySet<string> =>
  new Set([...bytes.toString('latin1').matchAll(/\b[0-9a-f]{64}\b/g)].map(([hex]) => hex))

/** Repeatable numbers below a bound. */
export type Random = (below: number) => number

export function seededRandom(seed: number): Random {
  let state = (seed * 2654435761 + 12345) >>> 0
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

export const pick = <T>(random: Random, from: readonly T[]): T => from[random(from.length)]!

/** Git's name of a file's content. */
export const gitSha1 = (bytes: Buffer): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
