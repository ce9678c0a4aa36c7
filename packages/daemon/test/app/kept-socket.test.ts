import { existsSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { createLog } from '../../src/log.ts'
import { ApiClient, temporaryFolder, testDaemon } from '../support/daemon.ts'

/** Longer than between two looks at the socket's file. */
const LOOK_MS = 40_000

test('a socket whose file is deleted is bound again, private, any number of times; open connections continue', async () => {
  const folder = temporaryFolder()
  const socketPath = join(folder, 'run', 's.sock')
  const clock = new VirtualClock()
  const api = await testDaemon({ folder, socketPath, clock })
  expect((await api.get('/v1/status')).status).toBe(200)
  for (const sweep of [socketPath, dirname(socketPath), socketPath]) {
    rmSync(sweep, { recursive: true })
    await clock.advance(LOOK_MS)
    await until(() => existsSync(socketPath))
    expect(lstatSync(socketPath).mode & 0o777).toBe(0o600)
    const fresh = new ApiClient(socketPath)
    expect((await fresh.get('/v1/status')).status).toBe(200)
    // kept from before the sweep
    expect((await api.get('/v1/status')).status).toBe(200)
    fresh.agent.destroy()
  }
  const runtime = join(dirname(socketPath), 'runtime.json')
  await until(() => existsSync(runtime))
  expect(JSON.parse(readFileSync(runtime, 'utf8')).pid).toBe(process.pid)
  await api.running.close({ quick: true })
  expect([existsSync(socketPath), existsSync(runtime)]).toEqual([false, false])
})

test("a foreign file in the socket's place is not touched, and reported once", async () => {
  const said: string[] = []
  const log = createLog('error', 'json', { write: (line: string) => void said.push(JSON.parse(line).msg) })
  const folder = temporaryFolder()
  const socketPath = join(folder, 's.sock')
  const clock = new VirtualClock()
  const api = await testDaemon({ folder, socketPath, clock, log })
  // swapped in one step, so that no look finds the path empty
  writeFileSync(`${socketPath}.new`, 'mine')
  renameSync(`${socketPath}.new`, socketPath)
  await clock.advance(LOOK_MS)
  await until(() => said.length > 0)
  for (let n = 0; n < 5; n++) {
    await clock.advance(LOOK_MS)
    // a look at the file takes no longer than these.
    for (let look = 0; look < 5; look++) await stat(socketPath)
  }
  expect(said).toHaveLength(1)
  await api.running.close({ quick: true })
  expect(readFileSync(socketPath, 'utf8')).toBe('mine')
})
