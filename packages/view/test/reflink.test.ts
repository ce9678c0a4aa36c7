import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseDigest } from '@svc/ref'
import { seededBytes } from '@svc/testkit/models'
import { createView, reflink, removeStanding, syncStanding, transferCost } from '@svc/view'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeArtifact, temporaryFolder } from './support/artifact.ts'

const run = (program: string, ...args: string[]): boolean => spawnSync(program, args, { stdio: 'ignore' }).status === 0
const SIZE_BYTES = 8 * 1024 * 1024

/** A file system that shares blocks, in a file; needs root. */
const disk = mkdtempSync(join(tmpdir(), 'svc-view-xfs-'))
const mount = join(disk, 'mount')
mkdirSync(mount)
const isMounted =
  run('truncate', '-s', '400M', join(disk, 'image')) &&
  run('mkfs.xfs', '-q', '-m', 'reflink=1', join(disk, 'image')) &&
  run('mount', '-o', 'loop', join(disk, 'image'), mount)
afterAll(() => {
  if (isMounted) run('umount', mount)
  rmSync(disk, { recursive: true, force: true })
})

describe.skipIf(!isMounted)('a file system that shares blocks (XFS in a file, which needs root)', () => {
  const freeBytes = (): number => {
    run('sync', '-f', mount)
    const { bfree, bsize } = statfsSync(mount)
    return bfree * bsize
  }
  const source = join(mount, 'source')
  beforeAll(() => writeFileSync(source, seededBytes(SIZE_BYTES, 1)))

  test('a reflink takes no space and has the bytes; writes to one do not reach the other', async () => {
    const before = freeBytes()
    expect(await reflink(source, join(mount, 'clone'))).toBe(true)
    expect(before - freeBytes()).toBeLessThan(SIZE_BYTES / 4)
    expect(readFileSync(join(mount, 'clone')).equals(seededBytes(SIZE_BYTES, 1))).toBe(true)
    writeFileSync(source, 'other')
    expect(readFileSync(join(mount, 'clone')).length).toBe(SIZE_BYTES)
    writeFileSync(source, seededBytes(SIZE_BYTES, 1))
  })

  test('a view of copies takes no space', async () => {
    const artifact = await makeArtifact(join(mount, 'store'), [
      { name: 'a.gguf', kind: 'weights.gguf', content: seededBytes(SIZE_BYTES, 2) }
    ])
    const before = freeBytes()
    let copiedBytes = 0
    const onCopied = (bytes: number): void => void (copiedBytes += bytes)
    const view = await createView(artifact, { path: join(mount, 'view'), mode: 'copy', onCopied })
    expect(before - freeBytes()).toBeLessThan(SIZE_BYTES / 4)
    expect(copiedBytes).toBe(SIZE_BYTES)
    expect(readFileSync(view.files[0]!.path).equals(seededBytes(SIZE_BYTES, 2))).toBe(true)
  })

  test("copies in a tool's folder take no space, and need no room", async () => {
    const digest = parseDigest(`sha256:${createHash('sha256').update(readFileSync(source)).digest('hex')}`)
    const file = { name: 'm.gguf', kind: 'weights.gguf', sizeBytes: SIZE_BYTES, digest, path: source }
    // more than the file system could hold
    const models = Array.from({ length: 60 }, (_, i) => ({
      ns: 'me',
      name: `m${i}`,
      quant: 'q8_0',
      manifest: digest,
      files: [file]
    }))
    const path = join(mount, 'tool')
    const request = { layout: 'lmstudio', path, root: join(mount, 'store'), key: 'k', models, copy: true } as const
    const before = freeBytes()
    expect(await syncStanding({ ...request, requireRoom: true })).toMatchObject({ entries: 60, copiedBytes: 0 })
    expect(before - freeBytes()).toBeLessThan(SIZE_BYTES / 4)
    expect(await syncStanding(request)).toMatchObject({ made: 0, copiedBytes: 0 })
    await removeStanding(path, request.root)
    expect(existsSync(path)).toBe(false)
  })

  test('a copy costs nothing within a file system, and its size across two', async () => {
    const elsewhere = temporaryFolder()
    expect(await transferCost(source, mount)).toEqual({ by: 'reflink', sizeBytes: 0 })
    expect(await transferCost(source, elsewhere)).toEqual({ by: 'copy', sizeBytes: SIZE_BYTES })
    expect(readdirSync(elsewhere)).toEqual([])
    expect(readdirSync(mount).filter((name) => name.startsWith('.svc'))).toEqual([])
  })
})

test('without reflinks nothing is left behind, and the cost is the size', async () => {
  const folder = temporaryFolder('/dev/shm')
  writeFileSync(join(folder, 'source'), 'bytes')
  expect(await reflink(join(folder, 'source'), join(folder, 'clone'))).toBe(false)
  expect(await transferCost(join(folder, 'source'), folder)).toEqual({ by: 'copy', sizeBytes: 5 })
  expect(readdirSync(folder)).toEqual(['source'])
  await expect(transferCost(join(folder, 'absent'), folder)).rejects.toMatchObject({ code: 'E_IO' })
})
