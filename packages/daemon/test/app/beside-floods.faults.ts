// How long a client that behaves waits while strangers and other clients flood each door of a daemon process. The floods are made in
// a thread of their own; the daemon, the floods and the client share the machine's cores. Between its requests the client asks a
// process that does nothing but answer, which nobody floods: what that one's answers take is the machine's part. Floods of requests are
// also made at such a process, with the client beside them: that is Node's part. The bar is for a machine that
// does nothing else; on a busy one the figures are printed with its load, and the bar is a loose one.
// `SVC_FLOODS` is a regular expression of the floods to make.
//
// Alone, in four minutes: pnpm exec vitest run --config vitest.faults.config.ts packages/daemon/test/app/beside-floods.faults.ts

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { ApiClient } from '../support/daemon.ts'
import { FLOOD_KINDS, type FloodData } from '../support/floods.ts'
import { startSeedingProcess } from '../support/seeding-process.ts'

const SECONDS = Number(process.env.SVC_FLOOD_SECONDS ?? 5)
/** A run queue of so many counts as quiet: what the test before this one left in the average. */
const QUIET = 1.5
const BAR_MS = 10
const BUSY_BAR_MS = 1_000

const KINDS = FLOOD_KINDS.filter((kind) => new RegExp(process.env.SVC_FLOODS ?? '').test(kind))
/** Floods that a server of a few lines can be given as well. */
const AT_BARE_SERVER = /^(requests|pipelining|lists of paths), (?!metrics)/

test(`a resolve beside ${KINDS.length} floods`, {
  timeout: 60_000 + KINDS.length * SECONDS * 20_000
}, async () => {
  const loadBefore = loadavg()[0]!
  const bar = loadBefore < QUIET ? BAR_MS : BUSY_BAR_MS
  const { daemon, ...seeding } = await startSeedingProcess({ sizeBytes: 16 << 20, dhtBootstrap: '127.0.0.1:9' })
  const body = (await daemon.resolve(seeding.ref)).bytes.toString()
  const { client: bare } = await bareServer(seeding.folder, 'bare', body)
  const control = await bareServer(seeding.folder, 'control', body, join(seeding.folder, 'm0', 'm-q8_0.gguf'))
  const measure = async (flooded: ApiClient = daemon): Promise<Record<'daemon' | 'bare', readonly number[]>> => {
    const times = { daemon: [] as number[], bare: [] as number[] }
    const end = performance.now() + SECONDS * 1_000
    while (performance.now() < end) {
      for (const [who, client] of Object.entries({ daemon: flooded, bare }) as ['daemon' | 'bare', ApiClient][]) {
        const begun = performance.now()
        const { status } = await client.resolve(seeding.ref)
        times[who].push(performance.now() - begun)
        expect(status).toBe(200)
      }
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    for (const each of Object.values(times)) each.sort((a, b) => a - b)
    return times
  }
  // what is called often is compiled by then
  await measure()
  const beside = async (
    data: FloodData,
    flooded: ApiClient
  ): Promise<Awaited<ReturnType<typeof measure>> & { sent: number }> => {
    const flood = new Worker(new URL('../support/flood-thread.ts', import.meta.url), { workerData: data })
    await new Promise((resolve) => flood.once('online', resolve))
    // connections are open and slots taken by then
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    const times = await measure(flooded)
    const ended = new Promise((resolve) => flood.once('exit', resolve))
    const sent = new Promise<number>((resolve) => flood.once('message', resolve))
    flood.postMessage('stop')
    const result = { ...times, sent: await sent }
    await ended
    return result
  }
  const at = (times: readonly number[], part: number): number =>
    Number(times[Math.floor(times.length * part)]!.toFixed(1))
  const rows: { kind: string; sent: number; p50: number; p99: number; bareP99: number; control: string }[] = []
  for (const kind of KINDS) {
    const { rssMiB: _, folder: __, ...doors } = seeding
    const data: FloodData = { kind, socketPath: daemon.socketPath, ...doors }
    const { daemon: times, bare: idle, sent } = await beside(data, daemon)
    const { socketPath } = control.client
    const { port } = control
    const flooded = AT_BARE_SERVER.test(kind)
      ? await beside({ ...data, socketPath, webseedPort: port, hubPort: port, ociPort: port }, control.client)
      : undefined
    const ofControl = flooded && `${at(flooded.daemon, 0.99)} ms (${flooded.sent} sent)`
    rows.push({
      kind,
      sent,
      p50: at(times, 0.5),
      p99: at(times, 0.99),
      bareP99: at(idle, 0.99),
      control: ofControl ?? ''
    })
  }
  const lines = rows.map(
    ({ kind, sent, p50, p99, bareP99, control: alike }) =>
      `| ${kind} | ${sent || ''} | ${p50} ms | ${p99} ms | ${bareP99} ms | ${alike} |`
  )
  console.log(`load before ${loadBefore.toFixed(1)}, RSS ${Math.round(seeding.rssMiB())} MiB\n${lines.join('\n')}`)
  expect(rows.filter(({ p99 }) => p99 > bar)).toEqual([])
  expect((await daemon.verify('all')).verify).toEqual({})
  expect(daemon.child.exitCode).toBe(null)
  expect(daemon.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
})

/** A process with `bare-server.ts`, ended with the test. */
async function bareServer(
  folder: string,
  name: string,
  ...told: readonly string[]
): Promise<{ readonly client: ApiClient; readonly port: number }> {
  const socketPath = join(folder, `${name}.sock`)
  const main = new URL('../support/bare-server.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [main, socketPath, ...told], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const client = new ApiClient(socketPath)
  onTestFinished(async () => {
    client.agent.destroy()
    child.kill('SIGKILL')
    await ended
  })
  const [port] = await once(child.stdout, 'data')
  return { client, port: Number(port) }
}
