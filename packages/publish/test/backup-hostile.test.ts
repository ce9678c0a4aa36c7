// A backup that somebody else wrote: its digests and paths lead nowhere.
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openBackup, openTarget } from '../src/index.ts'
import { temporaryFolder } from './fixture.ts'

const STORE = '0b9d6b1e-0000-4000-8000-000000000001'
const TIME = '2026-01-01T00:00:00.000Z'
const hex = 'a'.repeat(64)

/** Opens a backup of one line, stored under a key. */
async function opened(line: object, key = 'snapshots/one.jsonl') {
  const path = temporaryFolder()
  const lines = [{ svcSnapshot: 1, storeId: STORE, createdAt: TIME }, line, { end: 1 }]
  const bytes = lines.map((each) => `${JSON.stringify(each)}\n`).join('')
  mkdirSync(join(path, 'snapshots'))
  for (const place of ['snapshots/one.jsonl', 'secret.jsonl']) writeFileSync(join(path, place), bytes)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const latest = { key, sha256, sizeBytes: bytes.length, createdAt: TIME, blobs: 1, bytes: 7 }
  writeFileSync(join(path, 'svc-backup.json'), JSON.stringify({ svcBackup: 1, storeId: STORE, latest, previous: [] }))
  const target = await openTarget({ kind: 'folder', path })
  onTestFinished(() => target.close())
  return (await openBackup(target)).snapshot
}
const refused = expect.objectContaining({ code: 'E_CHECK_FAILED' })
const STATE = { state: 'repos/me/m.json', base64: '' }

test('a sound line is read', async () => {
  expect((await opened({ blob: `sha256:${hex}`, sizeBytes: 7 })).blobs.size).toBe(1)
  expect((await opened(STATE)).state.size).toBe(1)
})

test.each([
  'sha256:../../secret',
  `sha256:${hex}/../../secret`,
  `sha256:${hex.toUpperCase()}`,
  `SHA256:${hex}`,
  `sha256:${hex.slice(1)}`,
  `sha256:${hex}a`,
  `sha256:${hex}\n`,
  `sha512:${hex}${hex}`,
  hex,
  7
])('no blob has the digest %j', async (blob) => {
  await expect(opened({ blob, sizeBytes: 7 })).rejects.toEqual(refused)
})

test.each([
  '../outside.json',
  'repos/../../outside.json',
  '/etc/passwd',
  'repos//m.json',
  'repos/me/..',
  'tmp/x.json',
  'm'
])('no state has the path %j', async (state) => {
  await expect(opened({ ...STATE, state })).rejects.toEqual(refused)
})

test.each(['secret.jsonl', 'snapshots/../secret.jsonl', '../secret.jsonl', '/snapshots/one.jsonl'])(
  'no snapshot has the key %j',
  async (key) => {
    await expect(opened(STATE, key)).rejects.toEqual(refused)
  }
)
