import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import fault, { Faults } from '../../../testkit/src/file-faults.ts'
import { nodeFilePort, readWhole, replaceFile } from '../src/index.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-files-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))
/** Those of the folder: threads of other test files in this process end when they like, and take theirs along. */
const openDescriptors = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder)
    } catch {
      return false
    }
  }).length

test('replaces a file, private and whole', async () => {
  const path = join(folder, 'state.json')
  for (const text of ['old', 'a longer text', '']) {
    await replaceFile(nodeFilePort, path, Buffer.from(text))
    expect(readFileSync(path, 'utf8')).toBe(text)
    expect(lstatSync(path).mode & 0o777).toBe(0o600)
    expect(Buffer.from((await readWhole(nodeFilePort, path, 100))!).toString()).toBe(text)
  }
  expect(readdirSync(folder)).toEqual(['state.json'])
})

for (const [errno, where, durable] of [
  ['EIO', 'beside', true],
  ['ENOSPC', 'elsewhere', true],
  ['EMFILE', 'beside', false]
] as const) {
  test(`leaves either the old or the new bytes, whichever operation fails with ${errno}`, async () => {
    const path = join(folder, 'state.json')
    const temporaryFolder = join(folder, 'tmp')
    mkdirSync(temporaryFolder)
    const plan = new Faults({ errno })
    const port = fault(plan.filePort.options)
    const descriptors = openDescriptors()
    let failures = 0
    for (let n = 1; ; n++) {
      writeFileSync(path, 'old')
      plan.arm(n)
      const options = { durable, ...(where === 'elsewhere' && { temporaryFolder }) }
      const error = await replaceFile(port, path, Buffer.from('new'), options).catch((thrown: unknown) => thrown)
      const { fired } = plan
      plan.arm(0)
      expect(['old', 'new']).toContain(readFileSync(path, 'utf8'))
      expect(readdirSync(folder)).toEqual(['state.json', 'tmp'])
      expect(readdirSync(temporaryFolder)).toEqual([])
      expect(openDescriptors()).toBe(descriptors)
      if (!fired) break
      failures++
      expect((error as NodeJS.ErrnoException).code).toBe(errno)
    }
    expect(readFileSync(path, 'utf8')).toBe('new')
    expect(failures).toBeGreaterThan(4)
  })
}

test('reads a file, returns undefined without one, and refuses one that is too long', async () => {
  const path = join(folder, 'file')
  expect(await readWhole(nodeFilePort, path, 10)).toBe(undefined)
  writeFileSync(path, 'eleven here')
  expect(await readWhole(nodeFilePort, join(path, 'below'), 10)).toBe(undefined)
  await expect(readWhole(nodeFilePort, path, 10)).rejects.toBeInstanceOf(RangeError)
  await expect(readWhole(nodeFilePort, folder, 10_000)).rejects.toMatchObject({ code: 'EISDIR' })
})
