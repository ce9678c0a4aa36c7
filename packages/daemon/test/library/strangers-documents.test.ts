// The documents that strangers write: none of them keeps the event loop for longer than a short one does. Either its counts are
// refused before it is parsed, or it is read in a thread, while the loop turns.

import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { HubDocuments } from '@svc/hub'
import { canonicalBytes, parseModelConfig, parseRecord } from '@svc/manifest'
import {
  buildInfo,
  decodeBencode,
  encodeBencode,
  encodePieceLayers,
  parseInfo,
  rootOfPieceLayer,
  toHex
} from '@svc/metainfo'
import { parseOciIndex, parseOciManifest } from '@svc/oci'
import { parseListing } from '@svc/publish'
import type { Sha256Digest } from '@svc/ref'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { CatalogDocumentReader, DOCUMENTS as OF_CATALOG } from '../../../catalog/src/catalog-documents.ts'
import { DocumentReader } from '../../../internal/state/src/document-reader.ts'
import { Offload } from '../../../internal/state/src/offload/pool.ts'
import { configFacts } from '../../../library/src/import/config-facts.ts'
import { walkIn } from '../../../library/src/import/heads.ts'
import { ANSWERS, AnswerReader } from '../../../sharing/src/answers.ts'
import { HubDocumentReader, DOCUMENTS as OF_HUB } from '../../../sources/src/hub/hub-documents.ts'
import { OciDocumentReader, DOCUMENTS as OF_OCI } from '../../../sources/src/oci/oci-documents.ts'

const MIB = 2 ** 20
const KINDS = ['index', 'manifest', 'storedManifest', 'companions'] as const

/** Texts of at most `bytes` that cost most to parse. */
function worst(bytes: number): Map<string, Buffer> {
  const filled = (open: string, unit: (i: number) => string, close: string): Buffer => {
    const parts: string[] = []
    for (let left = bytes - open.length - close.length, i = 0; left > 0; i++) {
      const part = unit(i)
      left -= part.length + 1
      if (left > 0) parts.push(part)
    }
    return Buffer.from(open + parts.join(',') + close)
  }
  return new Map([
    ['keys', filled('{', (i) => `"${i.toString(36).padStart(6, '0')}":1`, '}')],
    ['shapes', filled('[', (i) => `{"${i.toString(36)}":1}`, ']')],
    ['objects', filled('[', () => '{}', ']')],
    ['numbers', filled('[', () => '1', ']')],
    ['levels', Buffer.alloc(bytes, '[')]
  ])
}

let four: Map<string, Buffer>
beforeAll(() => {
  four = worst(4 * MIB)
})

const PARSERS: readonly (readonly [string, (bytes: Uint8Array) => unknown])[] = [
  ['an OCI manifest', parseOciManifest],
  ['an OCI index', parseOciIndex],
  ['the listing of a publication', (bytes) => parseListing(bytes, 'it')]
]
test.each(PARSERS)('%s: hostile counts are refused unparsed', (_, parse) => {
  const causes = [...four].map(([what, bytes]) => {
    try {
      parse(bytes)
      return [what, 'parsed']
    } catch (error) {
      return [what, ((error as Error).cause as Error | undefined)?.name]
    }
  })
  expect(causes).toEqual([...four.keys()].map((what) => [what, 'JsonExcessError']))
})

test('a document in canonical form: hostile counts are refused unparsed', async () => {
  const reader = readerHere()
  for (const kind of KINDS)
    for (const [what, bytes] of four) {
      const reason = what === 'levels' ? 'depth' : 'too-large'
      await expect(reader.parse(kind, bytes), `${kind} ${what}`).rejects.toMatchObject({ reason })
    }
})

test('a record and a model config have few values, or bytes', () => {
  for (const [what, bytes] of worst(MIB)) {
    const reason = what === 'levels' ? 'depth' : 'too-large'
    expect(() => parseModelConfig(bytes), what).toThrow(expect.objectContaining({ reason }))
    expect(() => parseRecord(bytes), what).toThrow(expect.objectContaining({ reason: 'too-large' }))
  }
})

test('bencoding has a bound of values that an info dictionary of 4 MiB cannot exceed', () => {
  const many = `l${'de'.repeat(2 * MIB - 10)}e`
  expect(() => decodeBencode(Buffer.from(many))).toThrow(expect.objectContaining({ reason: 'tokens' }))
  const files = Array.from({ length: 100_000 }, (_, i) => `6:${String(i).padStart(6, '0')}d0:d6:lengthi0eee`).join('')
  const info = `d9:file treed${files}e12:meta versioni2e4:name1:x12:piece lengthi1048576ee`
  expect(() => parseInfo(Buffer.from(info))).toThrow(expect.objectContaining({ reason: 'tokens' }))
})

function readerHere(): DocumentReader {
  const reader = new DocumentReader()
  onTestFinished(() => reader.close())
  return reader
}

/** Those who read what other machines send, and how. */
const READERS = {
  catalog: [CatalogDocumentReader, OF_CATALOG],
  hub: [HubDocumentReader, OF_HUB],
  oci: [OciDocumentReader, OF_OCI],
  swarm: [AnswerReader, ANSWERS]
} as const
/** A document of another machine: whose, of which kind, and what else decides what is read. */
type Sent = readonly [of: keyof typeof READERS, kind: string, bytes: Uint8Array, ...about: unknown[]]

interface Reading {
  parse(kind: string, bytes: Uint8Array, ...about: unknown[]): Promise<unknown>
  close(): Promise<void>
}

function answersOf(of: Sent[0]): Reading {
  const answers = new READERS[of][0]() as unknown as Reading
  onTestFinished(() => answers.close())
  return answers
}

async function parseHere([of, kind, bytes, ...about]: Sent): Promise<unknown> {
  const parsers = READERS[of][1].parsers as unknown as Record<
    string,
    (bytes: Uint8Array, ...about: unknown[]) => unknown
  >
  return parsers[kind]!(bytes, ...about)
}

/** The turns of the event loop until a promise settles. */
async function turnsOf(work: Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const settled = work.then(
    () => (isOver = true),
    () => (isOver = true)
  )
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve))
    turns++
  }
  await settled
  return turns
}

const DIGEST = `sha256:${'a'.repeat(64)}` as Sha256Digest
const rows = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ digest: DIGEST, path: `f${String(i).padStart(5, '0')}`, size: 1 }))
/** A header of small values, which takes as many steps. */
function ggufOfKeys(count: number): Buffer {
  const one = Buffer.from(`01000000000000006b0400000000000000`, 'hex')
  const head = Buffer.alloc(24)
  head.write('GGUF')
  head.writeUInt32LE(3, 4)
  head.writeBigUInt64LE(BigInt(count), 16)
  return Buffer.concat([head, Buffer.alloc(count * one.length, one)])
}
/** Of 4 MiB, in which nothing can be counted. */
const ONE_TEXT = Buffer.from(`{"a":"${'x'.repeat(4 * MIB)}"}`)
const ONE_NUMBER = Buffer.from(`{"a":${'1'.repeat(4 * MIB)}}`)
const OF_REPO = { repoId: 'Org/Name' }
const PAGE_ABOUT = { ...OF_REPO, gated: false, maxEntries: 100_000 }
const PAGE = Buffer.from(
  JSON.stringify(
    Array.from({ length: 5_000 }, (_, i) => ({ type: 'file', oid: 'b'.repeat(40), size: i, path: `dir/f${i}.bin` }))
  )
)
const OCI_INDEX = Buffer.from(
  JSON.stringify({
    schemaVersion: 2,
    manifests: Array.from({ length: 1_000 }, (_, size) => ({ mediaType: 'a/b', digest: DIGEST, size }))
  })
)
const HUB: readonly (readonly [string, keyof HubDocuments, Buffer, never])[] = [
  ['a page of a hub', 'page', PAGE, PAGE_ABOUT as never],
  ['an account', 'account', ONE_TEXT, OF_REPO as never],
  ['what a hub says of a model', 'info', ONE_NUMBER, OF_REPO as never],
  ['branches', 'refs', ONE_TEXT, OF_REPO as never],
  ['a search', 'search', ONE_NUMBER, { ...OF_REPO, limit: 10 } as never],
  ['a reconstruction', 'reconstruction', ONE_NUMBER, { sizeBytes: 1, from: 'http://127.0.0.1/' } as never],
  ['a token for chunks', 'xetToken', ONE_TEXT, { from: 'http://127.0.0.1/' } as never]
]
function infoOfFiles(count: number): Buffer {
  const files = Array.from({ length: count }, (_, i) => ({ path: `f${i}`, length: 1, piecesRoot: Buffer.alloc(32, 1) }))
  return Buffer.from(buildInfo({ name: 'x', pieceLength: MIB, files }).infoBytes)
}
/** A file of 20,000 pieces, whose layer is all zeros. */
const LAYERED = (() => {
  const [pieceLength, pieces] = [16_384, 20_000]
  const length = pieces * pieceLength
  const piecesRoot = rootOfPieceLayer(Buffer.alloc(pieces * 32), length, pieceLength)
  const file = { path: 'f', length, piecesRoot, firstPiece: 0, pieceCount: pieces }
  return { pieceLength, files: [file] }
})()
const LAYERS = (() => {
  const [{ piecesRoot, pieceCount }] = LAYERED.files as [(typeof LAYERED.files)[number]]
  return encodePieceLayers(new Map([[toHex(piecesRoot), Buffer.alloc(pieceCount * 32)]]), LAYERED)
})()
const V1_TORRENT = Buffer.from(
  encodeBencode({
    files: Array.from({ length: 5_000 }, (_, i) => ({ length: 1, path: ['dir', `f${i}`] })),
    name: 'x',
    'piece length': 16_384,
    pieces: Buffer.alloc(20)
  })
)
const V1_INFOHASH = createHash('sha1').update(V1_TORRENT).digest('hex')
const DIGEST_PAGE = Buffer.from(
  `{"manifest":${JSON.stringify(Array.from({ length: 5_000 }, (_, i) => `${'a'.repeat(64)}  f${i}`).join('\n'))}}`
)
const LONG: readonly (readonly [string, (reader: DocumentReader, offload: Offload) => Promise<unknown>])[] = [
  [
    'companions',
    (reader) =>
      reader.parse('companions', canonicalBytes({ files: rows(1_000), omitted: [], schema: 'svc.companions.v1' }))
  ],
  ['a manifest', (reader) => reader.parse('manifest', canonicalBytes({ files: rows(10_000), annotations: {} }))],
  [
    'a list of shards',
    (reader) =>
      reader.parse(
        'outsideNames',
        Buffer.from(`{"weight_map":{${Array.from({ length: 200_000 }, (_, i) => `"t${i}":"../s${i}"`).join()}}}`)
      )
  ],
  ['a list of parts', (reader) => reader.parse('parts', worst(MIB).get('keys')!)],
  ['a config.json', (_, offload) => configFacts(worst(MIB).get('keys')!, offload)],
  ['its memory', (_, offload) => offload.call('cache', { config: worst(MIB).get('shapes')!.toString() })],
  ['what a GGUF is', async (_, offload) => walkIn(offload)(ggufOfKeys(100_000), 2 ** 30)],
  ['the head of a GGUF', (_, offload) => offload.call('cache', { head: ggufOfKeys(100_000), sizeBytes: 2 ** 30 })]
]

const SENT: readonly (readonly [string, Sent])[] = [
  ...HUB.map(([what, kind, bytes, about]) => [what, ['hub', kind, bytes, about]] as const),
  ...(['index', 'manifest', 'quant', 'token'] as const).map(
    (kind) => [`an OCI ${kind}`, ['oci', kind, ONE_TEXT]] as const
  ),
  ['the listing of a publication', ['swarm', 'withheld', ONE_TEXT, { pin: DIGEST, at: 'it' }]],
  ['an info dictionary', ['swarm', 'info', infoOfFiles(2_000)]],
  [
    'a torrent file',
    ['swarm', 'torrent', Buffer.concat([Buffer.from('d4:info'), infoOfFiles(2_000), Buffer.from('e')])]
  ],
  ['piece layers', ['swarm', 'pieceLayers', LAYERS, LAYERED]],
  ['a v1 torrent', ['catalog', 'v1Torrent', V1_TORRENT, V1_INFOHASH]],
  ['a list of digests', ['catalog', 'digestList', DIGEST_PAGE]]
]

/** Work on the main thread never leaves more than one turn; a busy machine may starve the main thread once. */
async function expectTurns(read: () => Promise<unknown>): Promise<void> {
  let turns = 0
  for (let round = 0; round < 5 && turns <= 1; round++) turns = await turnsOf(read())
  expect(turns).toBeGreaterThan(1)
}

test.each(LONG)('%s is read while the event loop turns', async (_, read) => {
  const reader = readerHere()
  const offload = new Offload()
  onTestFinished(() => offload.close())
  // the start of a thread takes turns as well
  await reader.parse('parts', Buffer.alloc(20_000)).catch(() => undefined)
  await offload.call('config', Buffer.from('{}'))
  await expectTurns(() => read(reader, offload))
})

test.each(SENT)('%s is read while the event loop turns', async (_, [of, kind, bytes, ...about]) => {
  const answers = answersOf(of)
  await answers.parse(kind, Buffer.alloc(20_000, ' '), ...about).catch(() => undefined)
  await expectTurns(() => answers.parse(kind, bytes, ...about))
})

test('what a thread read is what is read here', async () => {
  const reader = readerHere()
  const long = { files: rows(1_000), omitted: [], schema: 'svc.companions.v1', more: 3 }
  expect(await reader.parse('companions', canonicalBytes(long))).toEqual(long)
  expect(
    await reader.parse('outsideNames', Buffer.from(`{"weight_map":{"a":"../x","b":"y"},"z":"${'z'.repeat(20_000)}"}`))
  ).toEqual(['../x'])
  expect(await reader.parse('parts', Buffer.from(`[{"path":"1_Pooling","type":"x"}${' '.repeat(20_000)}]`))).toEqual([
    '1_Pooling'
  ])
  const read: readonly Sent[] = [
    ['hub', 'page', PAGE, PAGE_ABOUT],
    ['oci', 'index', OCI_INDEX],
    ['swarm', 'info', infoOfFiles(2_000)],
    ['swarm', 'pieceLayers', LAYERS, LAYERED],
    ['catalog', 'v1Torrent', V1_TORRENT, V1_INFOHASH],
    ['catalog', 'digestList', DIGEST_PAGE]
  ]
  for (const [of, kind, given, ...about] of read) {
    const bytes = new Uint8Array(given)
    const there = await answersOf(of).parse(kind, bytes, ...about)
    expect(isDeepStrictEqual(there, await parseHere([of, kind, bytes, ...about])), kind).toBe(true)
  }
})

const told = ({ name, message, code, reason, details }: Error & Record<string, unknown>) => ({
  name,
  message,
  code,
  reason,
  details
})

test('what a thread refuses is refused as here', async () => {
  const untold = Buffer.from(
    JSON.stringify([{ type: 'file', oid: '*'.repeat(40), size: 1, path: 'f', more: 'x'.repeat(20_000) }])
  )
  const refused: readonly Sent[] = [
    ['hub', 'page', ONE_TEXT, PAGE_ABOUT],
    ['hub', 'page', untold, PAGE_ABOUT],
    ['hub', 'account', Buffer.alloc(20_000, '{'), OF_REPO],
    ['hub', 'reconstruction', ONE_TEXT, { sizeBytes: 1, from: 'http://127.0.0.1/' }],
    ['oci', 'manifest', ONE_TEXT],
    ['swarm', 'withheld', ONE_TEXT, { pin: DIGEST, at: 'it' }],
    ['swarm', 'info', ONE_TEXT],
    ['catalog', 'v1Torrent', ONE_TEXT, V1_INFOHASH]
  ]
  for (const sent of refused) {
    const [of, kind, ...given] = sent
    const answers = answersOf(of)
    const [there, here] = (await Promise.allSettled([answers.parse(kind, ...given), parseHere(sent)])) as [
      PromiseRejectedResult,
      PromiseRejectedResult
    ]
    expect(there.reason, kind).toBeInstanceOf(here.reason.constructor)
    expect(told(there.reason), kind).toEqual(told(here.reason))
  }
})
