import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, writeFiles } from '../support/models.ts'
import { spawnDaemon } from '../support/process.ts'
import { HAS_STRACE, inject } from '../support/strace.ts'

const CALLS = [
  'openat',
  'pwrite64',
  'fsync',
  'fchmod',
  'rename',
  'link',
  'linkat',
  'unlink',
  'mkdir',
  'ftruncate',
  'close'
]
const OCCURRENCES = [1, 2, 4, 7, 11]

it.skipIf(!HAS_STRACE)(
  'kill -9 at system calls of an import into a daemon: the state is the old or the new one, and all that is addressable is whole',
  async () => {
    const template = temporaryFolder()
    const first = await testDaemon({ folder: template })
    const old = await first.import([writeFiles(join(template, 'old'), { 'm-q4_0.gguf': gguf(5_000, 1) })], 'a/b')
    await first.running.close({ quick: true })
    const model = writeFiles(join(template, 'new'), { ...MODEL, 'm-q4_0.gguf': gguf(3_000_000, 2) })
    let kills = 0
    const outcomes = new Set<string>()
    for (const call of CALLS) {
      for (const when of OCCURRENCES) {
        const folder = temporaryFolder()
        cpSync(join(template, 'root'), join(folder, 'root'), { recursive: true, preserveTimestamps: true })
        const before = readFileSync(join(folder, 'root/state/repos/a/b.json'))
        const daemon = await spawnDaemon({ folder })
        const injection = await inject(daemon.child.pid!, `${call}:signal=KILL:when=${when}`)
        const how = await Promise.race([
          daemon.ended.then(() => 'killed'),
          daemon.import([model], 'a/b').then(
            (job) => job.state,
            () => daemon.ended.then(() => 'killed')
          )
        ])
        await injection.stop()
        daemon.agent.destroy()
        daemon.child.kill('SIGKILL')
        await daemon.ended
        const after = await testDaemon({ folder })
        const at = `${call} ${when}`
        expect([at, (await after.verify('all')).verify]).toEqual([at, {}])
        const { body } = await after.resolve('svc:///a/b:q4_0')
        const isOld = body.manifestDigest === old.manifest
        if (isOld) expect(readFileSync(join(folder, 'root/state/repos/a/b.json'))).toEqual(before)
        expect([at, (await after.open('svc:///a/b:q4_0')).body.missing]).toEqual([at, undefined])
        expect([at, readdirSync(join(folder, 'root/incoming'))]).toEqual([at, []])
        expect([at, (await after.import([model], 'a/b')).state]).toEqual([at, 'done'])
        await after.running.close({ quick: true })
        outcomes.add(`${how}, ${isOld ? 'old' : 'new'}`)
        // fewer calls than that: later occurrences would tell nothing new
        if (how !== 'killed') break
        kills++
      }
    }
    expect(kills).toBeGreaterThan(20)
    expect(outcomes).toContain('killed, old')
    expect(outcomes).not.toContain('done, old')
  }
)
