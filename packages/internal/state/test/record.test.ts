import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { digestFromHex } from '@svc/ref'
import { recordText } from '@svc/testkit/records'
import { beforeEach, describe, expect, it } from 'vitest'
import { restoredRecord } from '../src/artifact-record.ts'
import { Artifacts } from '../src/artifacts.ts'
import { ReplacedFiles } from '../src/replace.ts'
import { Repos } from '../src/repos.ts'
import { ViewRecords } from '../src/view-records.ts'
import { temporaryFolder } from './temporary-folder.ts'

const manifest = digestFromHex('a'.repeat(64))
const other = digestFromHex('b'.repeat(64))
const view = { path: '/srv/models/m', manifest, others: [], layout: 'files', mode: 'symlink', device: '2049' } as const
const local = {
  manifestDigest: manifest,
  source: { kind: 'local' },
  provenance: { access: 'own' },
  hints: { trackers: [], webseeds: [], peers: [] }
} as const

let root: string
let files: ReplacedFiles
beforeEach(async () => {
  root = temporaryFolder()
  files = await ReplacedFiles.open(join(root, 'state'))
})

/** One record of each kind, with all that it can hold. `read` reads it anew. */
const KINDS = [
  {
    file: 'state/repos/me/m.json',
    write: () =>
      new Repos(root, files).update({ ns: 'me', name: 'm' }, async () => ({
        index: manifest,
        tags: new Map([
          ['v1', manifest],
          ['1', other],
          ['__proto__', other]
        ])
      })),
    read: () => new Repos(root, files).read('me', 'm')
  },
  {
    file: `state/artifacts/${'a'.repeat(64)}.json`,
    write: () =>
      new Artifacts(root, files).record({
        ...local,
        record: other,
        source: {
          kind: 'bt',
          repo: 'Org/Name',
          revision: 'main',
          names: { 'a.gguf': 'A.gguf' },
          bittorrentV1: { infohash: 'c'.repeat(40), info: other, files: [manifest, null] }
        },
        provenance: {
          access: 'restricted',
          by: 'hub-token',
          decision: { is: 'private', at: '2026-01-01T00:00:00.000Z' }
        },
        pinned: true,
        futureName: 'me/m',
        hints: { trackers: ['udp://127.0.0.1:1'], webseeds: ['http://127.0.0.1/'], peers: ['127.0.0.1:1'] }
      }),
    read: () => new Artifacts(root, files).read(manifest)
  },
  {
    file: 'state/views/',
    write: () => new ViewRecords(root, files).write(view),
    read: () => new ViewRecords(root, files).read(view.path)
  }
]

/** The file of a view's record is named after a hash. */
const pathOf = (file: string): string =>
  file.endsWith('/') ? join(root, file, readdirSync(join(root, file))[0]!) : join(root, file)

const outcome = (work: Promise<unknown>): Promise<unknown> =>
  work.catch((error: Error) => {
    if (!/StateError$/.test(error.name)) throw error
    return error.name
  })

describe.each(KINDS)('$file', ({ file, write, read }) => {
  it('any flipped bit is harmless or makes the record damaged', async () => {
    await write()
    const whole = await read()
    const path = pathOf(file)
    const bytes = readFileSync(path)
    const taken: string[] = []
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const spoilt = Buffer.from(bytes)
      spoilt[bit >> 3]! ^= 1 << (bit & 7)
      writeFileSync(path, spoilt)
      const now = await outcome(read())
      if (now !== 'CorruptStateError' && !isDeepStrictEqual(now, whole)) taken.push(JSON.stringify(now))
    }
    expect(taken).toEqual([])
  })

  it('is damaged when it is cut, longer, or lacks a byte', async () => {
    await write()
    const path = pathOf(file)
    const bytes = readFileSync(path)
    const taken: number[] = []
    for (let at = 0; at < bytes.length; at++) {
      for (const spoilt of [bytes.subarray(0, at), Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)])]) {
        writeFileSync(path, spoilt)
        if ((await outcome(read())) !== 'CorruptStateError') taken.push(at)
      }
    }
    writeFileSync(path, Buffer.concat([bytes, Buffer.from('\n')]))
    expect([await outcome(read()), taken]).toEqual(['CorruptStateError', []])
  })

  it('of a newer version is read if that version permits it, and keeps its unknown fields', async () => {
    await write()
    const whole = await read()
    const path = pathOf(file)
    const {
      version: _,
      readers,
      checksum: __,
      ...body
    } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown> & { readers: number }
    const added = { later: { '1': [true] }, '7': 'x' }
    writeFileSync(path, recordText({ ...body, ...added }, 99, readers))
    expect(await read()).toEqual(whole)
    await write()
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject(added)
    writeFileSync(path, recordText({ ...body, ...added }, 99))
    expect(await outcome(read())).toBe('ForeignStateError')
    const before = readFileSync(path)
    expect(await outcome(write())).toBe('ForeignStateError')
    expect(readFileSync(path)).toEqual(before)
  })

  it('of a format before this one is refused, and stays as it is', async () => {
    await write()
    const path = pathOf(file)
    const {
      version: _,
      readers: __,
      checksum: ___,
      ...body
    } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    const before = recordText(body, 3, 2)
    writeFileSync(path, before)
    expect([await outcome(read()), await outcome(write())]).toEqual(['ForeignStateError', 'ForeignStateError'])
    expect(readFileSync(path, 'utf8')).toBe(before)
    for (const part of [{}, { version: 4 }, { readers: 4 }, { checksum: 'crc32:00000000' }]) {
      writeFileSync(path, JSON.stringify({ ...body, ...part }))
      expect(await outcome(read())).toBe('CorruptStateError')
    }
  })
})

it('damaged content is kept when the record is rewritten', async () => {
  const records = new ViewRecords(root, files)
  await records.write(view)
  const path = pathOf('state/views/')
  writeFileSync(path, 'damaged')
  await records.write({ ...view, manifest: other })
  expect((await records.read(view.path))?.manifest).toBe(other)
  const folder = join(root, 'state/damaged/views')
  expect(readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))).toEqual(['damaged'])
})

it('a record under the name of another is damaged', async () => {
  const records = new ViewRecords(root, files)
  await records.write(view)
  const path = pathOf('state/views/')
  const renamed = join(dirname(path), `${'0'.repeat(64)}.json`)
  mkdirSync(dirname(renamed), { recursive: true })
  writeFileSync(renamed, readFileSync(path))
  const unreadable: string[] = []
  const listed: string[] = []
  for await (const { path: at } of records.list((error) => unreadable.push(error.name))) listed.push(at)
  expect([listed, unreadable]).toEqual([[view.path], ['CorruptStateError']])
})

describe('a restored record', () => {
  const hints = { trackers: ['udp://10.0.0.1:80'], webseeds: ['http://10.0.0.1/'], peers: ['10.0.0.1:1'] }
  const all = ['udp://10.0.0.1:80', 'http://10.0.0.1/', '10.0.0.1:1']
  const body = { source: { kind: 'bt' }, provenance: { access: 'public' }, pinned: true }
  const restored = (fields: object, version = 4): Record<string, unknown> =>
    JSON.parse(Buffer.from(restoredRecord(Buffer.from(recordText({ ...body, ...fields }, version)))).toString())

  it.each([{}, { others: [] }, { others: ['10.0.0.1:1'] }])(
    'names no address on the owner’s word, claiming %j',
    (claim) => {
      const { hints: after, ...rest } = restored({ hints: { ...hints, ...claim } })
      expect(after).toEqual({ ...hints, others: all })
      expect(rest).toMatchObject({ ...body, version: 4, readers: 4 })
    }
  )

  it('has no choice of its owner: it would say which signed files may be absent', () => {
    expect(restored({ choices: { 'me/m': { aux: 'none' } } })).not.toHaveProperty('choices')
  })

  it('is read with them, and what the owner types later is the owner’s again', async () => {
    const bytes = restoredRecord(Buffer.from(recordText({ ...body, hints }, 4)))
    mkdirSync(join(root, 'state/artifacts'), { recursive: true })
    writeFileSync(join(root, 'state/artifacts', `${'a'.repeat(64)}.json`), bytes)
    const artifacts = new Artifacts(root, files)
    expect((await artifacts.read(manifest))?.hints.others).toEqual(all)
    await artifacts.record({ ...local, source: { kind: 'bt' }, hints: { ...local.hints, peers: ['10.0.0.1:1'] } })
    expect((await artifacts.read(manifest))?.hints).toEqual({ ...hints, others: all.slice(0, 2) })
  })

  it('of another version, too', () => {
    expect(restored({ hints }, 5)).toMatchObject({ hints: { others: all }, version: 5, readers: 5 })
  })

  it('says so of the trackers of a BitTorrent v1 torrent', () => {
    const bittorrentV1 = { infohash: 'c'.repeat(40), trackers: ['udp://10.0.0.1:80'] }
    expect(restored({ source: { kind: 'catalog', bittorrentV1 } })).toMatchObject({
      source: { bittorrentV1: { ...bittorrentV1, isFromOthers: true } }
    })
  })

  it.each([
    ['that names no address', recordText({ ...body, hints: { trackers: [], webseeds: [], peers: [] } }, 4)],
    ['of a repository', recordText({ tags: {} }, 4)],
    ['that is damaged', recordText({ ...body, hints }, 4).replace('public', 'pablic')],
    ['that is none', '[]']
  ])('%s stays as it is, byte for byte', (_what, text) => {
    expect(Buffer.from(restoredRecord(Buffer.from(text))).toString()).toBe(text)
  })
})
