import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from './support/artifact.ts'
import { setScene, strayNames, whatIsThere } from './support/interruptions.ts'

const CHILD = fileURLToPath(new URL('./support/view-child.ts', import.meta.url))

/** What a process of its own says of its job. */
async function run(job: string): Promise<string> {
  const child = spawn(process.execPath, ['--conditions=svc-source', CHILD, job], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const [said] = await Promise.all([text(child.stdout), once(child, 'close')])
  return said.trim()
}

test('processes that make and replace one view simultaneously leave a whole view', async () => {
  for (let round = 0; round < 3; round++) {
    const scene = await setScene(join(temporaryFolder('/dev/shm'), 'scene'), 'replace', 'copy')
    // each asks for another mode, so that each has something to replace.
    const jobs = (['symlink', 'copy', 'hardlink', 'copy', 'symlink', 'hardlink'] as const).map((mode, i) => {
      const job = join(scene.folder, 'store', `job-${i}.json`)
      writeFileSync(job, JSON.stringify({ ...(JSON.parse(readFileSync(scene.job, 'utf8')) as object), mode }))
      return job
    })
    expect(await Promise.all(jobs.map(run))).toEqual(jobs.map(() => 'done'))
    expect(await whatIsThere(scene)).toBe('after')
    expect(strayNames(scene)).toEqual([])
  }
})
