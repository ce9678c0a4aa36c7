import { existsSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Faults } from '../../../testkit/src/file-faults.ts'
import {
  DurableFolders,
  type FilePort,
  loadFilePort,
  makeFolders,
  makeFoldersSync,
  nodeFilePort
} from '../src/index.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-folders-'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

/** The system's files, with a word before each sync: `gate` may wait, or throw. */
function gated(gate: () => Promise<void>): { readonly port: FilePort; readonly syncs: () => number } {
  let syncs = 0
  const port: FilePort = {
    ...nodeFilePort,
    fsync: async (fd) => {
      syncs++
      await gate()
      await nodeFilePort.fsync(fd)
    }
  }
  return { port, syncs: () => syncs }
}

test('each level is synced once, even if it already existed', async () => {
  const { port, syncs } = gated(async () => undefined)
  const first = new DurableFolders(port, root)
  await first.make(join(root, 'a', 'b'))
  await first.make(join(root, 'a', 'b'))
  await first.make(join(root, 'a'))
  expect(syncs()).toBe(2)
  // a predecessor that was killed may have made a folder and not synced it.
  await new DurableFolders(port, root).make(join(root, 'a', 'b'))
  expect(syncs()).toBe(4)
  await expect(first.make(join(root, '..', 'elsewhere'))).rejects.toBeInstanceOf(RangeError)
})

test('a caller that arrives while a folder is made waits until it is durable', async () => {
  const held = Promise.withResolvers<void>()
  const { port, syncs } = gated(() => held.promise)
  const folders = new DurableFolders(port, root)
  const target = join(root, 'ns')
  const first = folders.make(target)
  while (syncs() === 0) await new Promise((resolve) => setImmediate(resolve))
  expect(existsSync(target)).toBe(true)
  const over: string[] = []
  const second = folders.make(target).then(
    () => over.push('second made it'),
    () => over.push('second failed')
  )
  for (let turn = 0; turn < 20; turn++) await stat(root)
  expect(over).toEqual([])
  held.reject(Object.assign(new Error('EIO'), { code: 'EIO' }))
  await expect(first).rejects.toMatchObject({ code: 'EIO' })
  await second
  expect(over).toEqual(['second failed'])
  // what could not be made durable is gone: the next try makes it anew, and syncs anew.
  expect(existsSync(target)).toBe(false)
})

const codeOf = (running: Promise<unknown>): Promise<string | undefined> =>
  running.then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code
  )

test('folders are made with their parents, concurrently, and existing ones stay', async () => {
  const path = join(root, 'a/b/c')
  await Promise.all(Array.from({ length: 20 }, () => makeFolders(path, 0o700)))
  expect(statSync(join(root, 'a/b')).mode & 0o777).toBe(0o700)
  symlinkSync(path, join(root, 'link'))
  await makeFolders(join(root, 'link'))
  makeFoldersSync(join(root, 'd/e'))
  makeFoldersSync(join(root, 'd/e'))
  expect(existsSync(join(root, 'd/e'))).toBe(true)
  writeFileSync(join(root, 'file'), '')
  for (const below of ['file', 'file/x/y']) {
    expect(await codeOf(makeFolders(join(root, below)))).toMatch(/^E(EXIST|NOTDIR)$/)
    expect(() => makeFoldersSync(join(root, below))).toThrow()
  }
})

test.each(['EROFS', 'EACCES', 'EPERM', 'EIO', 'EMLINK', 'ENOSPC', 'ENAMETOOLONG'])(
  '%s is thrown unchanged, whichever folder fails',
  async (errno) => {
    for (let n = 1; n <= 3; n++) {
      const plan = new Faults({ errno, only: '^mkdir$' })
      const port = await loadFilePort(plan.filePort)
      plan.arm(n, { failures: 9 })
      expect([n, await codeOf(makeFolders(join(root, `${n}/a/b`), 0o700, port))]).toEqual([n, errno])
    }
  }
)
