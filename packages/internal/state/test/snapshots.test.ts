import { mkdtempSync } from 'node:fs'
import { readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDiskStore } from '@svc/cas'
import { systemClock } from '@svc/internal-clock'
import { parseDigest } from '@svc/ref'
import { expect, onTestFinished, test } from 'vitest'
import { Artifacts } from '../src/artifacts.ts'
import { Documents } from '../src/documents.ts'
import { Needed } from '../src/needed.ts'
import { ReplacedFiles, STATE_FOLDERS } from '../src/replace.ts'
import { Repos } from '../src/repos.ts'
import { Snapshots } from '../src/snapshots.ts'
import type { HeldArtifact } from '../src/views.ts'

const untold = (): void => {}
const SILENT = { debug: untold, info: untold, warn: untold, error: untold }

async function setUp() {
  const root = mkdtempSync(join(tmpdir(), 'svc-snapshots-'))
  const store = await openDiskStore({ root, folders: STATE_FOLDERS })
  onTestFinished(async () => {
    await store.close()
    await rm(root, { recursive: true, force: true })
  })
  const files = await ReplacedFiles.open(join(root, 'state'))
  const [repos, artifacts, documents] = [new Repos(root, files), new Artifacts(root, files), new Documents(store)]
  const views = { changes: 0, held: async (): Promise<HeldArtifact[]> => [], companionsAt: async () => [] }
  const needed = new Needed({ store, repos, artifacts, documents, views })
  const snapshots = new Snapshots({
    clock: systemClock,
    store,
    files,
    needed,
    log: SILENT,
    version: '0'
  })
  return { root, files, repos, views, snapshots }
}

/** Some hundred file operations: a change of the state takes ten. */
async function longTime(folder: string): Promise<void> {
  for (let i = 0; i < 300; i++) await stat(folder)
}

test('the state does not change between its copy and the list of needed blobs', async () => {
  const { root, repos, views, snapshots } = await setUp()
  const index = parseDigest(`sha256:${'1'.repeat(64)}`)
  const looked: boolean[] = []
  let change: Promise<unknown> | undefined
  let isChanged = false
  // requested while the needed blobs are listed
  views.held = async () => {
    change ??= repos
      .update({ ns: 'me', name: 'late' }, async () => ({ index, tags: new Map() }))
      .then(() => {
        isChanged = true
      })
    await longTime(root)
    looked.push(isChanged)
    return []
  }
  const { path, id } = await snapshots.make()
  await change
  expect(looked).toEqual([false])
  expect(isChanged).toBe(true)
  expect(await readFile(path, 'utf8')).not.toContain('late')
  await snapshots.release(id)
  await expect(readFile(path)).rejects.toMatchObject({ code: 'ENOENT' })
})

test('a running change completes first, and failed work does not block others', async () => {
  const { root, files } = await setUp()
  const file = join(root, 'state', 'repos', 'x.json')
  const write = files.write(file, 'one')
  expect(await files.frozen(() => readFile(file, 'utf8'))).toBe('one')
  await write
  await expect(files.frozen(() => Promise.reject(new Error('as asked')))).rejects.toThrow('as asked')
  await files.write(file, 'two')
  expect(await readFile(file, 'utf8')).toBe('two')
})
