import { createHash } from 'node:crypto'

/** A file of a model whose every 64 bytes name it: a range of it is recognized wherever it turns up. */
export interface TaggedFile {
  readonly name: string
  readonly tag: string
  readonly bytes: Buffer
  readonly sha256: string
}

/** Bytes whose SHA-256 and size a stranger knows: of a file, or of a document without a tag. */
export type Victim = Pick<TaggedFile, 'bytes' | 'sha256'> & { readonly tag?: string }

/** A model of files of its own. */
export interface TaggedModel {
  readonly quant: string
  /** Weights, configuration, and a companion that loaders read. */
  readonly files: readonly TaggedFile[]
  /** What lies beside it on its owner's disk, and never leaves. */
  readonly notes: TaggedFile
}

export const COMPANION = 'generation_config.json'
/** Whether the hub keeps a file in large-file storage, so that a listing has its SHA-256. */
export const isLfs = (name: string): boolean => name.endsWith('.gguf') || name === COMPANION

const QUANTS = ['q8_0', 'q4_0'] as const
const TAG = /<([wcgn]\d{6})>/g

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
    files: [
      tagged(`m-${quant}.gguf`, `w${digits}`, weights),
      tagged('config.json', `c${digits}`, Buffer.from(config)),
      tagged(COMPANION, `g${digits}`, Buffer.from(JSON.stringify({ note: `<g${digits}>` })))
    ],
    notes: tagged('notes.txt', `n${digits}`, Buffer.from(`<n${digits}>`))
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

/** A torrent of BitTorrent v1 with one file. */
export function torrentOf({ name, bytes }: TaggedFile): { readonly infohash: string; readonly info: Buffer } {
  const pieceBytes = 16_384
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes)
    pieces.push(
      createHash('sha1')
        .update(bytes.subarray(at, at + pieceBytes))
        .digest()
    )
  const sums = Buffer.concat(pieces)
  const head = `d6:lengthi${bytes.length}e4:name${name.length}:${name}12:piece lengthi${pieceBytes}e6:pieces${sums.length}:`
  const info = Buffer.concat([Buffer.from(head), sums, Buffer.from('e')])
  return { infohash: createHash('sha1').update(info).digest('hex'), info }
}
