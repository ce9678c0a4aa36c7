import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { CasError, openDiskStore } from '@svc/cas'
import { seededBytes } from '@svc/cas-testsuite'
import { afterAll, expect, test } from 'vitest'

function run(program: string, ...args: string[]): string | undefined {
  const { status, stdout } = spawnSync(program, args, { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

/** ext4 in a file; needs root. */
const disk = mkdtempSync(join(tmpdir(), 'svc-cas-ext4-'))
const mount = join(disk, 'mount')
mkdirSync(mount)
run('truncate', '-s', '400M', join(disk, 'image'))
run('mkfs.ext4', '-q', '-F', join(disk, 'image'))
const isMounted = run('mount', '-o', 'loop', join(disk, 'image'), mount) !== undefined
afterAll(() => {
  if (isMounted) run('umount', mount)
  rmSync(disk, { recursive: true, force: true })
})

const FILES = 512

/** Commits of the file system's journal so far. */
function commits(): number {
  const device = basename(run('findmnt', '-no', 'SOURCE', mount)!)
  return Number(/^\d+/.exec(readFileSync(`/proc/fs/jbd2/${device}-8/info`, 'utf8'))![0])
}

test.skipIf(!isMounted)(
  'the syncs of many small files share commits of the journal (ext4 in a file, which needs root)',
  async () => {
    const store = await openDiskStore({ root: join(mount, 'store'), hashThreads: 2 })
    try {
      const files = Array.from({ length: FILES }, (_, i) => {
        const path = join(mount, `f${i}`)
        writeFileSync(path, seededBytes(5000 + i, i))
        const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
        return { path, identity: { dev, ino, size, mtimeNs, ctimeNs } }
      })
      run('sync', '-f', mount)
      const before = commits()
      const outcomes = await store.ingestNamed(files)
      const taken = commits() - before
      console.log(`${FILES} files: ${taken} commits`)
      expect(outcomes.filter((outcome) => outcome instanceof CasError)).toEqual([])
      // without early writes each file takes one of its own
      expect(taken).toBeLessThan(0.8 * FILES)
    } finally {
      await store.close()
    }
  }
)
