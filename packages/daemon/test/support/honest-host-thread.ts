// A host that asks every door for what it may have, in turn, and notes how long each answer took.
import { request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { HONEST_HOST, type HonestReport, type HostileData } from './hostile-hosts.ts'
import { framed, u32 } from './wire-bytes.ts'

const { webseedPort, webseedPath, hubPort, ociPort, s3Port, metricsPort, peerPort, digest, handshake } =
  workerData as HostileData
const DAEMON = '127.0.0.1'
/** Whoever is told to come again does, for this long. */
const TIMEOUT_MS = 60_000
const report: Record<string, { timesMs: number[]; failures: string[] }> = {}
let isOver = false

interface Answer {
  readonly status: number
  readonly retryAfter: number
  readonly bytes: number
}

function get(port: number, path: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: DAEMON, port, path, headers, localAddress: HONEST_HOST, agent: false, timeout: 15_000 }
    const call = request(options, (response) => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => (bytes += chunk.length)).on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode!, retryAfter: Number(response.headers['retry-after'] ?? 1), bytes })
      )
    })
    call.on('timeout', () => call.destroy(new Error('nothing for 15 s'))).on('error', reject)
    call.end()
  })
}

/** As the clients of hubs and registries do: 429 and 503 are asked again, a broken connection too. */
async function served(port: number, path: string, headers?: Record<string, string>): Promise<void> {
  const until = performance.now() + TIMEOUT_MS
  for (;;) {
    const answer = await get(port, path, headers).catch((error: Error) => error)
    if (!(answer instanceof Error)) {
      if ([200, 206].includes(answer.status) && answer.bytes > 0) return
      if (![429, 503].includes(answer.status)) throw new Error(`${path}: ${answer.status}`)
    }
    if (performance.now() > until)
      throw new Error(`${path}: ${answer instanceof Error ? answer.message : answer.status}`)
    await delay(answer instanceof Error ? 500 : Math.min(5_000, answer.retryAfter * 1_000))
  }
}

/** One block of the model that everybody may have. */
function block(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: peerPort, host: DAEMON, localAddress: HONEST_HOST })
    const timer = setTimeout(() => socket.destroy(new Error('no block within a minute')), TIMEOUT_MS)
    let got = 0
    socket.on('error', reject).on('close', () => {
      clearTimeout(timer)
      reject(new Error('the connection was closed before a block came'))
    })
    socket.on('data', (chunk) => {
      got += chunk.length
      if (got < 16_384) return
      resolve()
      socket.destroy()
    })
    const id = Buffer.from('-HO0001-abcdefghijkl')
    socket.write(Buffer.concat([Buffer.from(handshake), id, framed(2)]))
    const asking = setInterval(() => socket.write(framed(6, u32(0, 0, 16_384))), 1_000)
    socket.once('close', () => clearInterval(asking))
  })
}

/** Peers that lost their connection come again. */
async function blockInTime(): Promise<void> {
  const until = performance.now() + TIMEOUT_MS
  for (;;) {
    const error = await block().then(
      () => undefined,
      (cause: Error) => cause
    )
    if (error === undefined) return
    if (performance.now() > until) throw error
    await delay(500)
  }
}

let fresh = 0
const DOORS: Readonly<Record<string, () => Promise<void>>> = {
  webseed: () => served(webseedPort, webseedPath, { Range: 'bytes=0-65535' }),
  hub: () => served(hubPort, '/acme/honest/resolve/main/m-q8_0.gguf', { Range: 'bytes=0-65535' }),
  'hub, signed': () => served(hubPort, '/acme/signed/resolve/main/m-q8_0.gguf', { Range: 'bytes=0-65535' }),
  'hub, tree': () => served(hubPort, '/api/models/acme/honest/tree/main?recursive=true'),
  'hub, on demand': () => served(hubPort, `/acme/fresh-${fresh++ % 100}/resolve/main/m-q8_0.gguf`),
  'oci, manifest': () => served(ociPort, '/v2/me/m0/manifests/q8_0'),
  'oci, blob': () => served(ociPort, `/v2/me/m0/blobs/${digest}`, { Range: 'bytes=0-65535' }),
  s3: () => served(s3Port, '/models/me/m0/q8_0/m-q8_0.gguf', { Range: 'bytes=0-65535' }),
  metrics: () => served(metricsPort, '/healthz'),
  peer: blockInTime
}

async function ask(door: string): Promise<void> {
  const row = (report[door] ??= { timesMs: [], failures: [] })
  while (!isOver) {
    const begun = performance.now()
    const failure = await DOORS[door]!().then(
      () => undefined,
      (error: Error) => error.message
    )
    if (isOver) return
    row.timesMs.push(performance.now() - begun)
    if (failure !== undefined) row.failures.push(failure)
    await delay(door === 'hub, on demand' ? 5_000 : 1_000)
  }
}

for (const door of Object.keys(DOORS)) void ask(door)
parentPort!.on('message', () => {
  isOver = true
  parentPort!.postMessage(report satisfies HonestReport)
  setTimeout(() => process.exit(), 50)
})
