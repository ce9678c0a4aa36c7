import { expect, test } from 'vitest'
import { rowsOf, type Selection, selectRows } from '../src/model-rows.ts'
import { digest, inventoryOf, member, status } from './world.ts'

const seeded = { infohash: 'btmh:1220', name: 'x', state: 'seeding', uploadedBytes: 0 } as const
const rates = { peers: 0, downBytesPerSecond: 0, upBytesPerSecond: 0 }
const rows = rowsOf(
  inventoryOf(
    [member('q8_0', { manifest: digest(1), sizeBytes: 8 }), member('q4_0', { manifest: digest(2), sizeBytes: 4 })],
    [member('f16', { manifest: digest(3), private: true, sizeBytes: 16, complete: false, missingBytes: 5 })]
  ),
  status({
    torrents: [{ ...seeded, ...rates, manifestDigest: digest(1) }],
    heldBack: [{ manifestDigest: digest(2), reason: 'the hub asks for consent' }]
  })
)
const select = (more: Partial<Selection>): string[] =>
  selectRows(rows, { words: '', filter: 'all', column: 'name', isDescending: false, ...more }).map(({ quant }) => quant)

test('a row says who may have a model, or why no one may', () => {
  expect(rows.map(({ sharing, reason }) => [sharing, reason !== ''])).toEqual([
    ['shared', false],
    ['held', true],
    ['private', true]
  ])
  expect(rows[1]!.reason).toBe('the hub asks for consent')
})

test('a model that is not announced names the setting that prevents it', () => {
  const [row] = rowsOf(inventoryOf([member('q8_0')]), status({ enabled: false }))
  expect(row).toMatchObject({ sharing: 'none', reason: expect.stringContaining('off') })
})

test.each([
  [{}, 'next start'],
  [{ verifying: { artifactsDone: 0, artifactsTotal: 1, bytesDone: 0, bytesTotal: 1 } }, 'verified']
])('a complete model that is not announced yet says when it will be', (swarm, words) => {
  const [row] = rowsOf(inventoryOf([member('q8_0')]), status(swarm))
  expect(row).toMatchObject({ sharing: 'soon', reason: expect.stringContaining(words) })
})

test('rows are found by words, in any order', () => {
  expect(select({ words: 'q8 acme' })).toEqual(['q8_0'])
  expect(select({ words: 'M1' })).toEqual(['f16'])
  expect(select({ words: 'nothing' })).toEqual([])
})

test.each([
  ['complete', ['q4_0', 'q8_0']],
  ['away', ['f16']],
  ['shared', ['q8_0']],
  ['held', ['q4_0']],
  ['private', ['f16']],
  ['newer', []]
] as const)('the filter %s', (filter, quants) => {
  expect(select({ filter })).toEqual(quants)
})

test('rows are sorted by a column, both ways', () => {
  expect(select({ column: 'size' })).toEqual(['q4_0', 'q8_0', 'f16'])
  expect(select({ column: 'size', isDescending: true })).toEqual(['f16', 'q8_0', 'q4_0'])
})
