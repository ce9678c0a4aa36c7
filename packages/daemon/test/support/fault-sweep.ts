import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Faults } from '@svc/testkit/file-faults'
import { expect, test } from 'vitest'
import { testDaemon } from './daemon.ts'
import { gguf, writeFiles } from './models.ts'

/** Descriptors of this process that lead below a folder. */
function descriptorsBelow(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return path.startsWith(`${folder}/`) && !path.endsWith('/lock') ? [path] : []
    } catch {
      return []
    }
  })
}

/**
 * Declares the test: in round after round another operation of store, state or leaf layers fails, while the same bytes are imported
 * twice at once under two new names. `stride` rounds are left out between two.
 */
export function describeImportFaults(errno: string, only: string, stride: number): void {
  test(`${errno} (${only || 'any operation'}) under two imports of the same bytes: done is durable, failed leaves nothing behind`, async () => {
    const plan = new Faults({ errno, only })
    const api = await testDaemon({ filePort: plan.filePort })
    const below = (name: string): string[] => readdirSync(join(api.root, name))
    // the threads are there before anything is counted.
    await api.import([writeFiles(join(api.folder, 'first'), { 'm-q4_0.gguf': gguf(1_200_000, 1) })], 'first/m')
    const done: string[] = []
    let failed = 0
    for (let n = 1; ; n += stride) {
      const content = { 'm-q4_0.gguf': gguf(1_200_000, 1000 + n), 'tokenizer.json': `{"version":"${n}"}` }
      const paths = [writeFiles(join(api.folder, `m${n}`), content)]
      plan.arm(n)
      const names = [`a${n}/m`, `b${n}/m`]
      const jobs = await Promise.all(names.map((name) => api.import(paths, name)))
      const { fired } = plan
      plan.arm(0)
      for (const [i, job] of jobs.entries()) {
        if (job.state === 'failed') {
          failed++
          expect(['E_INTERNAL', 'E_NO_SPACE']).toContain((job.error as { code?: string } | undefined)?.code)
          continue
        }
        done.push(`svc:///${names[i]}:q4_0`)
        const { status, body } = await api.open(done.at(-1)!)
        expect([n, status, body.missing]).toEqual([n, 200, undefined])
        for (const { path, digest } of body.files as { path: string; digest: string }[])
          expect(`sha256:${createHash('sha256').update(readFileSync(path)).digest('hex')}`).toBe(digest)
      }
      if (!fired) expect(jobs.map(({ state }) => state)).toEqual(['done', 'done'])
      // a present blob that the disk does not give in the moment of comparison makes room for the bytes at hand.
      const aside = below('quarantine')
      expect(aside.length).toBeLessThanOrEqual(errno === 'EIO' && fired ? 1 : 0)
      for (const name of aside) unlinkSync(join(api.root, 'quarantine', name))
      // where deleting a part is what failed, it is left to the sweep of the next start.
      const left = below('incoming')
      expect(left.length).toBeLessThanOrEqual(fired ? 1 : 0)
      for (const name of left) unlinkSync(join(api.root, 'incoming', name))
      expect([n, below('state/tmp'), below('cache/tmp')]).toEqual([n, [], []])
      // the requests of jobs that ended are forgotten behind them.
      await expect.poll(() => descriptorsBelow(api.root)).toEqual([])
      if (!fired) break
    }
    expect(failed).toBeGreaterThan(5)
    expect((await api.verify('all')).state).toBe('done')
    await api.running.close({ quick: true })
    const again = await testDaemon({ folder: api.folder })
    for (const ref of done) expect((await again.open(ref)).body.missing).toBe(undefined)
    expect((await again.verify('all')).state).toBe('done')
  })
}
