import { existsSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { createLog } from '../../src/log.ts'
import { ApiClient, temporaryFolder, testDaemon } from '../support/daemon.ts'

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('a socket whose file is swept away is bound again, private, however often; open connections go on', async () => {
  const folder = temporaryFolder()
  const socketPath = join(folder, 'run', 's.sock')
  const api = await testDaemon({ folder, socketPath, socketCheckMs: 20 })
  expect((await api.get('/v1/status')).status).toBe(200)
  for (const sweep of [socketPath, dirname(socketPath), socketPath]) {
    rmSync(sweep, { recursive: true })
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

test("what somebody else puts in the socket's place is left alone, and said once", async () => {
  const said: string[] = []
  const log = createLog('error', 'json', { write: (line: string) => void said.push(JSON.parse(line).msg) })
  const folder = temporaryFolder()
  const socketPath = join(folder, 's.sock')
  const api = await testDaemon({ folder, socketPath, socketCheckMs: 10, log })
  // swapped in one step, so that no look finds the path empty
  writeFileSync(`${socketPath}.new`, 'mine')
  renameSync(`${socketPath}.new`, socketPath)
  await until(() => said.length > 0)
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(said).toHaveLength(1)
  await api.running.close({ quick: true })
  expect(readFileSync(socketPath, 'utf8')).toBe('mine')
})
