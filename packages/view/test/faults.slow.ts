import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { recoverViews } from '@svc/view'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './support/artifact.ts'
import { canInterrupt, type Deed, interrupted, setScene, strayNames, whatIsThere } from './support/interruptions.ts'

describe.skipIf(!canInterrupt)('system calls that fail', () => {
  const faults: readonly (readonly [string, string, Deed])[] = [
    ['pwrite64:error=ENOSPC:when=1', 'E_NO_SPACE', 'create'],
    ['pwrite64:error=ENOSPC:when=2+', 'E_NO_SPACE', 'replace'],
    ['pwrite64:error=EDQUOT:when=4', 'E_NO_SPACE', 'replace'],
    ['pwrite64:error=EIO:when=3', 'E_IO', 'replace'],
    ['mkdir:error=ENOSPC:when=1', 'E_NO_SPACE', 'replace'],
    ['mkdir:error=ENOSPC:when=2', 'E_NO_SPACE', 'replace'],
    ['mkdir:error=EROFS:when=1', 'E_IO', 'create'],
    ['fsync:error=EIO:when=2', 'E_IO', 'replace'],
    ['fsync:error=ENOSPC:when=4', 'E_NO_SPACE', 'create'],
    // the first moves the earlier view aside, the second would put the new one in its place.
    ['rename:error=EIO:when=1', 'E_IO', 'replace'],
    ['rename:error=EIO:when=2', 'E_IO', 'replace'],
    ['rename:error=ENOSPC:when=1', 'E_NO_SPACE', 'create'],
    ['rename:error=EIO:when=1', 'E_IO', 'remove']
  ]
  test.each(faults)('%s: %s, and nothing has changed (%s)', async (inject, code, deed) => {
    const scene = await setScene(join(temporaryFolder('/dev/shm'), 'scene'), deed, 'copy')
    expect(interrupted(scene, inject)).toBe(`failed ${code}`)
    expect(strayNames(scene)).toEqual([])
    expect(await whatIsThere(scene)).toBe(scene.before === undefined ? undefined : 'before')
  })

  test('leftovers of a failed reflink are removed, and no second file of that name appears', async () => {
    const scene = await setScene(join(temporaryFolder('/dev/shm'), 'scene'), 'create', 'copy')
    expect(interrupted(scene, 'unlink:error=EIO:when=1')).toBe('done')
    expect(strayNames(scene)).toEqual([])
    expect(await whatIsThere(scene)).toBe('after')
    const again = await setScene(join(temporaryFolder('/dev/shm'), 'scene'), 'create', 'copy')
    expect(interrupted(again, 'unlink:error=EIO:when=1+')).toBe('failed E_IO')
  })

  test('leftovers that cannot be removed are cleaned up by the next call', async () => {
    const scene = await setScene(join(temporaryFolder('/dev/shm'), 'scene'), 'replace', 'copy')
    expect(interrupted(scene, 'rmdir:error=EIO:when=1+')).toBe('done')
    expect(strayNames(scene)).toHaveLength(1)
    expect(await recoverViews(scene.folder)).toBe(1)
    expect(strayNames(scene)).toEqual([])
    expect(await whatIsThere(scene)).toBe('after')
  })

  test('an earlier view that could be neither replaced nor put back returns with the next call', async () => {
    const scene = await setScene(join(temporaryFolder('/dev/shm'), 'scene'), 'replace', 'copy')
    expect(interrupted(scene, 'rename:error=EIO:when=2+')).toBe('failed E_IO')
    expect(strayNames(scene)).toHaveLength(1)
    // whole as it is, the new one takes the place.
    expect(await whatIsThere(scene)).toBe('after')
    expect(strayNames(scene)).toEqual([])
  })

  test('without interruption every step completes, so the tests above can fail', async () => {
    for (const deed of ['create', 'replace', 'remove'] as const) {
      const scene = await setScene(join(temporaryFolder('/dev/shm'), 'scene'), deed, 'copy')
      expect(interrupted(scene, undefined)).toBe('done')
      expect(await whatIsThere(scene)).toBe(scene.after === undefined ? undefined : 'after')
      expect(strayNames(scene)).toEqual([])
    }
  })
})

const canMount =
  process.env.SVC_REQUIRE_INTEROP === '1' ||
  spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt'], { stdio: 'ignore' }).status === 0

test.skipIf(!canMount)('a file system that is full gets no part of a view', async () => {
  const folder = temporaryFolder('/dev/shm')
  const { job } = await setScene(join(folder, 'scene'), 'create', 'copy')
  const small = join(folder, 'small')
  mkdirSync(small)
  writeFileSync(
    job,
    JSON.stringify({ ...(JSON.parse(readFileSync(job, 'utf8')) as object), path: join(small, 'place') })
  )
  // room for three pages, in a mount that ends with the process; what lies in it is listed at the end.
  const script = 'mount -t tmpfs -o size=12k none "$1" && "$2" --conditions=svc-source "$3" "$4"; ls -A "$1"'
  const child = fileURLToPath(new URL('./support/view-child.ts', import.meta.url))
  const args = ['-rm', 'sh', '-c', script, 'sh', small, process.execPath, child, job]
  expect(spawnSync('unshare', args, { encoding: 'utf8' }).stdout.trim()).toBe('failed E_NO_SPACE')
})
