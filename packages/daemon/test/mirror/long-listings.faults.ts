// What 64 repositories of 100,000 long names cost a daemon process, and whether it still answers its owner.
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { startLongHub } from './long-listings.ts'

const REPOS = 64

async function startedDaemon(endpoint: string): Promise<{ readonly folder: string; readonly child: ChildProcess }> {
  const folder = temporaryFolder()
  const config = join(folder, 'config.toml')
  const mirror = '[mirror]\nhub_addr = "127.0.0.1:0"\non_demand = true\n'
  writeFileSync(config, `[swarm]\nenabled = false\n[hub]\nendpoint = "${endpoint}"\n${mirror}`)
  const program = join(import.meta.dirname, '../../../../bin/svcd')
  const env = { ...process.env, SVC_CONFIG: config, SVC_ROOT: join(folder, 'root'), SVC_SOCKET: join(folder, 's.sock') }
  const child = spawn(program, [], { env, stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  await expect.poll(() => readRuntime(folder), { timeout: 60_000 }).toBeDefined()
  return { folder, child }
}

function readRuntime(folder: string): string | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8')).hubMirrorAddress
  } catch {
    return undefined
  }
}

const rssMib = ({ pid }: ChildProcess): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

function statusOf(address: string, path: string, localAddress: string): Promise<number> {
  const [host, port] = address.split(':')
  return new Promise((resolve, reject) => {
    get({ host, port, path, localAddress, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    }).on('error', reject)
  })
}

test('64 listings of 100,000 long names do not crash the daemon, and the owner is answered meanwhile', async () => {
  const { endpoint } = await startLongHub()
  const { folder, child } = await startedDaemon(endpoint)
  const address = readRuntime(folder)!
  const client = createClient({ socketPath: join(folder, 's.sock') })
  let isOver = false
  const seen = { rssMib: 0, slowestMs: 0 }
  const watching = (async () => {
    while (!isOver) {
      const begunMs = performance.now()
      await client.status()
      seen.slowestMs = Math.max(seen.slowestMs, performance.now() - begunMs)
      seen.rssMib = Math.max(seen.rssMib, rssMib(child))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })()
  const asking = Array.from({ length: REPOS }, async (_, i) => {
    for (;;) {
      const status = await statusOf(address, `/api/models/acme/m${i}`, `127.0.1.${i + 1}`)
      if (status !== 429) return status
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  })
  const statuses = await Promise.all(asking)
  isOver = true
  await watching
  expect(child.exitCode).toBeNull()
  expect(new Set(statuses)).toEqual(new Set([404]))
  expect(seen.rssMib).toBeLessThan(500)
  expect(seen.slowestMs).toBeLessThan(2_000)
}, 300_000)
