import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './artifact.ts'
import { canInterrupt, checkAfterKill, type Deed, interrupted, setScene } from './interruptions.ts'

const CALLS = ['mkdir', 'openat', 'symlink', 'link', 'fsync', 'rename', 'unlink', 'rmdir', 'pwrite64']
/** More calls of a kind than one deed makes. */
const MAX_CALLS = 400

/** Declares the tests: the process is killed at every `stride`-th call of each kind that changes files. */
export function describeKills(stride: number): void {
  describe.skipIf(!canInterrupt)('kill -9 at a system call', () => {
    const deeds: readonly Deed[] = ['create', 'replace', 'remove']
    test.each(deeds)('%s: the place has the view from before or the new one', async (deed) => {
      const folder = join(temporaryFolder('/dev/shm'), 'scene')
      const seen = new Set<string>()
      let kills = 0
      for (const call of CALLS) {
        const step = call === 'rename' ? 1 : call === 'openat' ? stride * 12 : stride
        for (let when = 1; when < MAX_CALLS; when += step) {
          const scene = await setScene(
            folder,
            deed,
            call === 'symlink' ? 'symlink' : call === 'link' ? 'hardlink' : 'copy'
          )
          const said = interrupted(scene, `${call}:signal=KILL:when=${when}`)
          if (said === 'done') break
          expect(said).toBe('')
          kills++
          seen.add(await checkAfterKill(scene))
        }
      }
      expect(kills).toBeGreaterThan(3)
      const [first, last] = [deed === 'create' ? 'nothing' : 'before', deed === 'remove' ? 'nothing' : 'after']
      expect([...seen].sort()).toEqual([first, last].sort())
    })
  })
}
