// Twice what the hub's mirror gives of small files on demand (docs/budgets.md): how large, how many at a time, how many waiting, and how
// much of them in memory. Real clients, and a hub on loopback whose CDN answers when it may. What was seen is printed, for the table.
import { readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeModelFolder, seededBytes } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

const undo = laterUndo()
const MIB = 1 << 20
const MANY = 'Acme/Many'
const FULL = 'Acme/Full'
const HUGE = 'Acme/Huge'
/** Two that are fetched, and 64 that wait for them. */
const MOST = 2 + 64
const COUNT = 2 * MOST

let hub: FakeHub
let daemon: TestDaemon
let address: string
/** What the CDN has, by the path in its repository. */
const content = new Map<string, Buffer>()
const asked: string[] = []
let [open, mostOpen] = [0, 0]
let held: Promise<void> | undefined

const cdn = createServer(async ({ url, headers }, response) => {
  const path = decodeURIComponent(url!.slice(1))
  if (/^t\d+\.model$/.test(path)) {
    asked.push(path)
    mostOpen = Math.max(mostOpen, ++open)
    response.once('close', () => {
      open--
    })
    await held
  }
  const bytes = content.get(path)!
  const range = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '')
  const [start, last] = range === null ? [0, bytes.length - 1] : [Number(range[1]), Number(range[2])]
  response.writeHead(range === null ? 200 : 206, {
    'content-length': last + 1 - start,
    ...(range !== null && { 'content-range': `bytes ${start}-${last}/${bytes.length}` })
  })
  response.end(bytes.subarray(start, last + 1))
})

beforeAll(async () => {
  await new Promise<void>((resolve) => cdn.listen(0, '127.0.0.1', resolve))
  undo.later(() => void cdn.close())
  const { port } = cdn.address() as AddressInfo
  hub = await startFakeHub({ cdnAddress: (path) => `http://127.0.0.1:${port}/${encodeURIComponent(path)}` })
  undo.later(() => hub.close())
  const { mergeConfig } = await import('../../daemon/src/config/config.ts')
  daemon = await testDaemon({}, undo.later)
  await daemon.pause()
  const config = mergeConfig(
    {
      swarm: { enabled: false },
      hub: { endpoint: hub.endpoint },
      mirror: { hub_addr: '127.0.0.1:0', on_demand: true, on_demand_allow: ['acme/*'], on_demand_bytes: 1 << 30 }
    },
    { root: daemon.root },
    {}
  )
  daemon = await testDaemon({ folder: daemon.folder, config }, undo.later)
  address = JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8')).hubMirrorAddress
  const names = makeModelFolder(join(daemon.folder, 'base'), { ggufs: {} })
  const base = names.map((path) => ({ path, content: readFileSync(join(daemon.folder, 'base', path)) }))
  const commit = (id: string, extra: readonly (readonly [path: string, bytes: Buffer])[]): void => {
    const added = extra.map(([path, bytes]) => ({ path, content: bytes, lfs: true }))
    for (const { path, content: bytes } of [...base, ...added]) content.set(path, bytes)
    hub.commit({ id, files: [...base, ...added] })
  }
  const tokenizers = Array.from({ length: COUNT }, (_, n) => [`t${n}.model`, seededBytes(1_000, n)] as const)
  commit(MANY, tokenizers)
  commit(
    FULL,
    ['a', 'b', 'c', 'd'].map((name, n) => [`${name}.model`, seededBytes(32 * MIB, 200 + n)] as const)
  )
  commit(HUGE, [['tokenizer.model', seededBytes(128 * MIB, 300)]])
})
afterAll(undo.all)

interface Got {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly body: Buffer
  /** The connection broke before the end. */
  readonly isCut: boolean
}

function ask(path: string): Promise<Got> {
  const [host, port] = address.split(':')
  return new Promise((resolve, reject) => {
    request({ host, port, path, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      const done = (isCut: boolean): void =>
        resolve({
          status: response.statusCode!,
          retryAfter: response.headers['retry-after'],
          body: Buffer.concat(chunks),
          isCut
        })
      response.on('error', () => done(true))
      response.on('end', () => done(false))
    })
      .on('error', reject)
      .end()
  })
}

/** Retries when it is told to, or when the connection broke, as clients of the hub do. */
async function whole(path: string): Promise<Buffer> {
  for (;;) {
    const { status, retryAfter, body, isCut } = await ask(path)
    if (status === 200 && !isCut) return body
    if (!isCut) expect(status).toBe(429)
    await delay(Number(retryAfter ?? 1) * 1_000)
  }
}

const seen = (what: string): void => console.log(`twice the budget: ${what}`)
const fileOf = (repo: string, name: string): string => `/${repo}/resolve/main/${name}`

async function imports(): Promise<number> {
  const { stdout } = await daemon.svc('jobs', '--json')
  return (JSON.parse(stdout) as { jobs: { kind: string }[] }).jobs.filter(({ kind }) => kind === 'import-hf').length
}

it('of 132 simultaneous small files, two are fetched, 64 wait, and the rest get a 429', async () => {
  // looks up the repository first, so that all requests are alike
  expect(await whole(fileOf(MANY, 'config.json'))).toEqual(content.get('config.json'))
  const { promise, resolve: goOn } = Promise.withResolvers<void>()
  held = promise
  let refused = 0
  const all = Array.from({ length: COUNT }, async (_, n) => {
    const got = await ask(fileOf(MANY, `t${n}.model`))
    if (got.status === 429) refused++
    return { n, got }
  })
  await expect.poll(() => refused, { timeout: 60_000 }).toBe(COUNT - MOST)
  expect(asked).toHaveLength(2)
  goOn()
  held = undefined
  const answers = await Promise.all(all)
  const served = answers.filter(({ got }) => got.status === 200)
  seen(
    `of ${COUNT} small files at once ${mostOpen} were fetched at a time, ${COUNT - served.length} clients told to come again`
  )
  expect([served.length, mostOpen]).toEqual([MOST, 2])
  for (const { n, got } of served) expect(got.body.equals(content.get(`t${n}.model`)!)).toBe(true)
  for (const { got } of answers)
    if (got.status !== 200) expect([got.status, Number(got.retryAfter) > 0]).toEqual([429, true])
  // a client that retries gets the file
  expect(await whole(fileOf(MANY, `t${COUNT - 1}.model`))).toEqual(content.get(`t${COUNT - 1}.model`))
  // without the bound all files were fetched; with it, on a slow machine, some requests come late enough to be fetched as well
  expect(new Set(asked).size).toBeLessThan((COUNT * 3) / 4)
})

it('128 MiB of small files: the oldest are not kept in memory', async () => {
  const sent = new Map<string, number>()
  cdn.on('request', ({ url }: { url?: string }) => sent.set(url!, (sent.get(url!) ?? 0) + 1))
  const fetched = async (name: string): Promise<boolean> => {
    const before = sent.get(`/${name}`) ?? 0
    expect((await whole(fileOf(FULL, name))).equals(content.get(name)!)).toBe(true)
    return (sent.get(`/${name}`) ?? 0) > before
  }
  for (const name of ['a', 'b', 'c', 'd']) expect(await fetched(`${name}.model`)).toBe(true)
  const again = [await fetched('d.model'), await fetched('c.model'), await fetched('a.model')]
  seen(`of four files of 32 MiB the last two were there, the first was fetched again`)
  expect(again).toEqual([false, false, true])
})

it('a 128 MiB small file is imported once, with its artifact, and not held in memory', async () => {
  const before = await imports()
  expect((await whole(fileOf(HUGE, 'tokenizer.model'))).equals(content.get('tokenizer.model')!)).toBe(true)
  seen(`a tokenizer of 128 MiB: ${(await imports()) - before} import`)
  expect(await imports()).toBe(before + 1)
})
