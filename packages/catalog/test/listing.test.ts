import { globTest } from '@svc/classify'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { CatalogDocumentReader } from '../src/catalog-documents.ts'
import { parseDigestList } from '../src/digest-list.ts'
import { parseCatalogListing, tryParseCatalogLine } from '../src/listing.ts'
import { selectEntry } from '../src/select.ts'

const HASH = 'c'.repeat(40)
const REVISION = 'd'.repeat(40)
const magnet = (dn: string, hash = HASH) =>
  `magnet:?xt=urn:btih:${hash}&dn=${encodeURIComponent(dn)}&tr=udp%3A%2F%2F127.0.0.1%3A1&tr=wss%3A%2F%2Fx%2Fy&ws=${encodeURIComponent(`http://127.0.0.1:9/o/m/resolve/${REVISION}`)}`
const line = (repo: string, dn: string, hash?: string) => `${repo}  1.5 GiB  12 seeds  ${magnet(dn, hash)}`

describe('a listing', () => {
  test('has its fields', () => {
    expect(parseCatalogListing(`${line('Org/Model', 'model-q4_k_m.gguf')}\r\n`)).toEqual([
      {
        repo: 'Org/Model',
        sizeLabel: '1.5 GiB',
        seeds: 12,
        infohash: HASH,
        displayName: 'model-q4_k_m.gguf',
        quant: 'q4_k_m',
        trackers: ['udp://127.0.0.1:1'],
        webseed: { url: `http://127.0.0.1:9/o/m/resolve/${REVISION}`, revision: REVISION }
      }
    ])
  })
  test.each(['udp://host:0', 'udp://host', 'http://a b/', 'udp://'])(
    'skips the tracker %s, which cannot be announced to',
    (tracker) => {
      const text = `${line('Org/Model', 'm.gguf')}&tr=${encodeURIComponent(tracker)}`
      expect(tryParseCatalogLine(text)!.trackers).toEqual(['udp://127.0.0.1:1'])
    }
  )
  test('skips invalid lines', () => {
    const bad = [
      '',
      'Org/Model 1 GiB 12 seeds magnet:?x',
      `Org/Model  1 GiB  many seeds  magnet:?xt=urn:btih:${HASH}`,
      `../etc  1 GiB  1 seeds  ${magnet('x')}`,
      'Org/Model  1 GiB  1 seeds  http://127.0.0.1/',
      'Org/Model  1 GiB  1 seeds  magnet:?dn=x',
      'Org/Model  1 GiB  1 seeds  magnet:?xt=urn:btih:zz',
      `Org/Model  1 GiB  1 seeds  magnet:?xt=urn:btmh:1220${'a'.repeat(64)}`,
      'x'.repeat(20_000)
    ]
    expect(parseCatalogListing([...bad, line('A/b', 'x.gguf'), ...bad].join('\n'))).toHaveLength(1)
  })
  test('survives any input', () => {
    fc.assert(fc.property(fc.string({ maxLength: 500 }), (text) => void tryParseCatalogLine(text)))
  })
  test('a webseed without a revision is ignored', () => {
    const text = `A/b  1 GiB  1 seeds  magnet:?xt=urn:btih:${HASH}&dn=x&ws=http%3A%2F%2F127.0.0.1%2Fmain`
    expect(tryParseCatalogLine(text)!.webseed).toBeUndefined()
  })
})

describe('the choice of a torrent', () => {
  const entries = [
    line('A/b', 'm-q4_k_m.gguf', '1'.repeat(40)),
    line('A/b', 'm-q4_k_s.gguf', '2'.repeat(40)),
    line('A/b', 'm-q8_0.gguf', '3'.repeat(40)),
    line('A/one', 'm.gguf', '4'.repeat(40)),
    line('A/raw', 'm-Q4_K_M.gguf', '5'.repeat(40)),
    line('A/raw', 'm-Q8_0.gguf', '6'.repeat(40))
  ].map((listed) => tryParseCatalogLine(listed)!)
  const failure = (code: string, candidates?: string[]) =>
    expect.objectContaining({ code, ...(candidates ? { candidates } : {}) })

  test.each([
    ['A/b', 'q8_0', '3'],
    ['A/b', 'q8', '3'],
    ['A/b', 'm-q4_k_s.gguf', '2'],
    ['A/one', undefined, '4'],
    ['a/ONE', undefined, '4'],
    ['A/raw', 'm-Q8_0.gguf', '6']
  ])('%s %s', (repo, quant, hash) => {
    expect(selectEntry(entries, repo, quant, { normalizedNames: false }).infohash[0]).toBe(hash)
  })
  test.each([
    ['A/x', undefined, 'E_NOT_LISTED', ['A/b', 'A/one', 'A/raw']],
    ['A/b', undefined, 'E_INVALID', ['q4_k_m', 'q4_k_s', 'q8_0']],
    ['A/b', 'q4', 'E_INVALID', ['q4_k_m', 'q4_k_s']],
    ['A/b', 'q2_k', 'E_INVALID', ['q4_k_m', 'q4_k_s', 'q8_0']],
    ['A/raw', undefined, 'E_INVALID', ['m-Q4_K_M.gguf', 'm-Q8_0.gguf']]
  ])('%s %s: %s', (repo, quant, code, candidates) => {
    expect(() => selectEntry(entries, repo, quant, { normalizedNames: false })).toThrowError(failure(code, candidates))
  })
})

describe('the choice among normalized names', () => {
  const entries = ['m.Q4_K_M.gguf', 'm.Q8_0.gguf', 'M-Q6_K.gguf'].map(
    (dn, i) => tryParseCatalogLine(line('A/b', dn, `${i + 1}`.repeat(40)))!
  )
  const normalized = { normalizedNames: true }
  test.each([
    ['q8_0', normalized, '2'],
    ['Q8_0', normalized, '2'],
    ['q6', normalized, '3'],
    [undefined, { ...normalized, quants: ['Q6_K'] }, '3'],
    [undefined, { ...normalized, files: globTest(['*q4*']) }, '1'],
    ['m.Q8_0.gguf', { normalizedNames: false }, '2']
  ])('%s %j', (quant, selection, hash) => {
    expect(selectEntry(entries, 'A/b', quant, selection).infohash[0]).toBe(hash)
  })
  test.each([
    [{ ...normalized, quants: ['q2_k'] }, 'E_NO_MEMBER', ['q4_k_m', 'q6_k', 'q8_0']],
    [{ ...normalized, files: globTest(['x*']) }, 'E_NO_MEMBER', ['m-q4_k_m.gguf', 'm-q6_k.gguf', 'm-q8_0.gguf']],
    [{ ...normalized, quants: ['q6_k', 'q8_0'] }, 'E_INVALID', ['q6_k', 'q8_0']]
  ])('%j: %s', (selection, code, candidates) => {
    expect(() => selectEntry(entries, 'A/b', undefined, selection)).toThrowError(
      expect.objectContaining({ code, candidates })
    )
  })
})

describe("the provider's record", () => {
  const sum = 'a'.repeat(64)
  test('is found in a page', () => {
    const page = `<html>{"x": {"manifest": ${JSON.stringify(`${sum}  m.gguf\n${'b'.repeat(64)}  sub/a b.json\r\nnoise\n`)}}}`
    expect(parseDigestList(page)).toEqual(
      new Map([
        ['m.gguf', sum],
        ['sub/a b.json', 'b'.repeat(64)]
      ])
    )
  })
  test.each([
    ['nothing', ''],
    ['no string', '{"manifest": 5}'],
    ['an open string', '{"manifest": "abc'],
    ['an empty list', '{"manifest": ""}'],
    ['two answers', `{"manifest": "${sum}  a"}{"manifest": "${'b'.repeat(64)}  a"}`]
  ])('%s', (_, page) => {
    expect(parseDigestList(page)).toBeUndefined()
  })
  test('survives any input', () => {
    const list = fc.string({ maxLength: 300 })
    fc.assert(fc.property(list, (text) => void parseDigestList(`"manifest":"${text}`)))
  })
  test('a list longer than any model has is ignored', () => {
    expect(parseDigestList(`{"manifest": "${`${sum}  a\\n`.repeat(80_000)}"}`)).toBeUndefined()
  })
})

test('the first 10,000 lines of a listing of 20,000 are read', () => {
  const line = `Org/Model  1 GB  1 seed  magnet:?xt=urn:btih:${'a'.repeat(40)}&dn=m.gguf\n`
  expect(parseCatalogListing(line.repeat(20_000))).toHaveLength(10_000)
})

test('four million empty lines create at most 10,000 objects', () => {
  const text = '\n'.repeat(4 << 20)
  const split = vi.spyOn(String.prototype, 'split')
  const parsed = parseCatalogListing(text)
  const made = split.mock.results.map(({ value }) => (value as readonly string[]).length)
  split.mockRestore()
  expect(parsed).toEqual([])
  expect(Math.max(...made)).toBe(10_000)
})

test.each([
  ['a million lists', '"manifest": ""'.repeat(300_000), undefined],
  ['a million lists that do not end', '"manifest":"'.repeat(300_000), undefined],
  ['a string without end', `"manifest":"${'\\'.repeat((8 << 20) - 1)}`, undefined],
  ['thousands of lines', `"manifest":"${`${'a'.repeat(64)}  a\\n`.repeat(60_000)}"`, new Map([['a', 'a'.repeat(64)]])]
])('a record of %s keeps to itself', async (_, page, expected) => {
  const digests = await beside(() => documents().parse('digestList', Buffer.from(page)))
  expect(digests && new Map(digests)).toEqual(expected)
})

test.each([
  ['control characters in the name', `magnet:?xt=urn:btih:${HASH}&dn=%1b%5d0;x%07.gguf`],
  ['bytes that are no UTF-8', `magnet:?xt=urn:btih:${HASH}&dn=%ff%fe`],
  ['a name that leads out', `magnet:?xt=urn:btih:${HASH}&dn=..%2f..%2fetc%2fpasswd`],
  ['two infohashes', `magnet:?xt=urn:btih:${HASH}&xt=urn:btih:${'e'.repeat(40)}&dn=x`],
  ['thousands of webseeds', `magnet:?xt=urn:btih:${HASH}&dn=x${'&ws=http://h/x'.repeat(1_000)}`],
  ['thousands of trackers', `magnet:?xt=urn:btih:${HASH}&dn=x${'&tr=udp://127.0.0.1:1'.repeat(700)}`]
])('a magnet with %s is skipped, or its fields are bounded', (_, text) => {
  for (const entry of parseCatalogListing(`A/b  1 GiB  1 seeds  ${text}\n`)) {
    expect(entry.infohash).toMatch(/^[0-9a-f]{40}$/)
    expect(entry.trackers.length).toBeLessThanOrEqual(50)
    expect(entry.quant.length).toBeLessThan(256)
  }
})

test('500 lines of one repository are read, with or without a final newline', () => {
  const all = `${line('A/b', 'm-q4_k_m.gguf')}\n`.repeat(500)
  expect(parseCatalogListing(all)).toHaveLength(500)
  expect(parseCatalogListing(all.trimEnd())).toHaveLength(500)
})

test('a listing of hundreds of thousands of trackers keeps to itself', async () => {
  const magnet = `magnet:?xt=urn:btih:${'a'.repeat(40)}&dn=m.gguf${'&tr=udp://a:1'.repeat(900)}`
  const text = `Org/Model  1 GB  1 seed  ${magnet}\n`.repeat(300)
  const entries = await beside(() => documents().parse('listing', Buffer.from(text)))
  expect(entries).toEqual(parseCatalogListing(text))
})

function documents(): CatalogDocumentReader {
  const reader = new CatalogDocumentReader()
  onTestFinished(() => reader.close())
  return reader
}

/** Does the work in another thread: the event loop goes on turning. */
async function beside<T>(work: () => Promise<T>): Promise<T> {
  let turns = 0
  const turn = (): void => {
    turns += 1
    immediate = setImmediate(turn)
  }
  let immediate = setImmediate(turn)
  const value = await work()
  clearImmediate(immediate)
  expect(turns).toBeGreaterThan(10)
  return value
}
