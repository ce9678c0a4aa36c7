import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { KILL_SCENARIOS } from '../support/kill-scenarios.ts'
import { describeDaemonErrors } from '../support/kill-sweep.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { spawnDaemon } from '../support/process.ts'
import { HAS_STRACE, inject } from '../support/strace.ts'

vi.setConfig({ testTimeout: 120_000 })

// One scenario, for every commit; `errors.faults.ts` has them all, and `process.slow.ts` more of the local import.
describeDaemonErrors(
  KILL_SCENARIOS.filter(({ name }) => name.includes('tag')),
  [0],
  Infinity
)

test.skipIf(!HAS_STRACE)('an unreadable state file is an input/output error, and stays as it is', async () => {
  const folder = temporaryFolder()
  const first = await spawnDaemon({ folder })
  expect((await first.import([writeFiles(join(folder, 'm'), { 'm-q4_0.gguf': gguf(5_000, 1) })], 'a/b')).state).toBe(
    'done'
  )
  first.child.kill('SIGTERM')
  await first.ended
  first.agent.destroy()
  const statePath = join(folder, 'root/state/repos/a/b.json')
  const before = readFileSync(statePath)
  const daemon = await spawnDaemon({ folder })
  const injection = await inject(daemon.child.pid!, 'pread64:error=EIO')
  const { status, body } = await daemon.resolve('svc:///a/b:q4_0')
  await injection.stop()
  expect([status, body.error.code]).toEqual([500, 'E_INTERNAL'])
  expect(body.error.message).toContain('input/output error (EIO)')
  expect(readFileSync(statePath)).toEqual(before)
  expect((await daemon.resolve('svc:///a/b:q4_0')).status).toBe(200)
})
