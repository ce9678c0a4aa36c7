// What counts as taking room: neither what is there of an earlier try, nor files whose blocks the store can share.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDiskStore } from '@svc/cas'
import { digestFromBytes } from '@svc/ref'
import { expect, it, onTestFinished } from 'vitest'
import { STATE_FOLDERS } from '../../../internal/state/src/replace.ts'
import { fakeHub, importRepo, rigOf, undoAfterTests } from '../sources/hub/fixtures.ts'
import { testDaemon } from '../support/daemon.ts'
import { gguf, seededBytes } from '../support/models.ts'

undoAfterTests()

const run = (program: string, ...args: string[]): boolean => spawnSync(program, args, { stdio: 'ignore' }).status === 0
const isRoot = process.getuid?.() === 0

/** A file system of its own below a fresh folder; undefined where it cannot be mounted. */
function mounted(mount: (image: string, at: string) => boolean): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'svc-room-'))
  const at = join(folder, 'mount')
  mkdirSync(at)
  const is = mount(join(folder, 'image'), at)
  onTestFinished(() => {
    // a process that just started elsewhere may hold it for a moment
    if (is) run('umount', '--lazy', at)
    rmSync(folder, { recursive: true, force: true })
  })
  return is ? at : undefined
}

function freeBytes(at: string): number {
  const { bavail, bsize } = statfsSync(at)
  return bavail * bsize
}

it.skipIf(!isRoot)('the rest of an interrupted download needs only its own space', async ({ skip }) => {
  const MiB = 1 << 20
  const at = mounted((_image, to) => run('mount', '-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', to))
  if (at === undefined) return skip('tmpfs cannot be mounted here')
  const weights = gguf(24 * MiB, 7)
  const digest = digestFromBytes(createHash('sha256').update(weights).digest())
  const store = await openDiskStore({ root: join(at, 'store'), folders: STATE_FOLDERS })
  const partial = await store.partial({ key: digest, digest, sizeBytes: weights.length })
  await partial.write(0, weights.subarray(0, 20 * MiB))
  expect(store.partialStatus(digest)?.writtenBytes).toBe(20 * MiB)
  await partial.release()
  expect([store.partialStatus(digest)?.writtenBytes, store.partialStatus('other')]).toEqual([20 * MiB, undefined])
  await store.close()
  expect(freeBytes(at)).toBeLessThan(weights.length)
  const fake = await fakeHub()
  fake.commit({ id: 'Org/Half', files: [{ path: 'half-q8_0.gguf', content: weights }] })
  expect(await importRepo(await rigOf(fake, { root: at }), 'Org/Half')).toMatchObject({ state: 'done' })
})

it.skipIf(!isRoot)('a file larger than the free space can be imported by sharing blocks', async ({ skip }) => {
  const at = mounted(
    (image, to) =>
      run('truncate', '-s', '400M', image) &&
      run('mkfs.xfs', '-q', '-m', 'reflink=1', image) &&
      run('mount', '-o', 'loop', image, to)
  )
  if (at === undefined) return skip('XFS cannot be made or mounted here')
  const model = join(at, 'model')
  mkdirSync(model)
  writeFileSync(join(model, 'large-q8_0.gguf'), gguf(1 << 20, 3))
  // a hole: as large as a file can be that takes no room
  truncateSync(join(model, 'large-q8_0.gguf'), freeBytes(at) + (16 << 20))
  const daemon = await testDaemon({ folder: at })
  expect(await daemon.import([model], 'me/large')).toMatchObject({ state: 'done' })
  // from another file system it would have to be written
  const elsewhere = mkdtempSync(join(tmpdir(), 'svc-elsewhere-'))
  onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }))
  writeFileSync(join(elsewhere, 'far-q8_0.gguf'), seededBytes(1000, 4))
  truncateSync(join(elsewhere, 'far-q8_0.gguf'), freeBytes(at) + (16 << 20))
  expect(await daemon.import([elsewhere], 'me/far')).toMatchObject({ state: 'failed', error: { code: 'E_NO_SPACE' } })
})
