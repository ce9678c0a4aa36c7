import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished } from 'vitest'
import { openSwarm } from '../../src/app/open-swarm.ts'
import { HubJobs } from '../../src/jobs/hub-jobs.ts'
import { Node, pinned } from '../swarm/nodes.ts'
import { type ApiClient, type TestDaemon, testDaemon } from './daemon.ts'
import { type KillRig, type KillScenario, Refused, stateBytes } from './kill-sweep.ts'
import { gguf, MODEL, writeFiles } from './models.ts'
import { spawnDaemon } from './process.ts'

const FIRST_AND_LATER = [1, 2, 4, 7, 11]

/** Calls that change what is on the disk; the first one is the sample of the fast tier. */
const CHANGES: KillScenario['points'] = {
  rename: FIRST_AND_LATER,
  openat: FIRST_AND_LATER,
  pwrite64: FIRST_AND_LATER,
  fsync: FIRST_AND_LATER,
  fdatasync: [1, 2],
  fchmod: FIRST_AND_LATER,
  link: FIRST_AND_LATER,
  unlink: FIRST_AND_LATER,
  mkdir: FIRST_AND_LATER,
  ftruncate: [1, 2],
  close: FIRST_AND_LATER,
  getdents64: [1, 2]
}

const incoming = (root: string): string[] => readdirSync(join(root, 'incoming'))
interface Opened {
  readonly manifestDigest?: string
  readonly missing?: unknown
  readonly companions?: { readonly digest: string; readonly files: readonly { readonly path: string }[] } | undefined
}
const opened = async (api: ApiClient, ref: string): Promise<Opened> => (await api.open(ref)).body

/** What lies beside a model is here as a whole, or there is nothing of it. */
function expectWholeBeside({ companions }: Opened): void {
  const paths = companions?.files.map(({ path }) => path)
  expect(paths).toEqual(expect.arrayContaining(['README.md', 'generation_config.json']))
}

/** A job of this path and body, to its end as done. */
async function done(api: ApiClient, path: string, body: unknown): Promise<string | undefined> {
  const accepted = await api.post(path, body)
  if (accepted.status !== 201) throw new Refused(accepted.body.error)
  const job = await api.finished(accepted.body)
  if (job.state !== 'done') throw new Refused(job.error!)
  return job.result?.manifests?.[0]
}

async function ok(answer: ReturnType<ApiClient['call']>): Promise<void> {
  const { status, body } = await answer
  if (status !== 200) throw new Refused(body.error)
}

/** A root where `a/b` holds these files. */
async function rootWith(folder: string, files: Parameters<typeof writeFiles>[1]): Promise<void> {
  const first = await testDaemon({ folder })
  const job = await first.import([writeFiles(join(folder, 'old'), files)], 'a/b')
  expect(job.state).toBe('done')
  await first.running.close({ quick: true })
}

const localImport: KillScenario = {
  name: 'a local import',
  points: CHANGES,
  async prepare(folder) {
    await rootWith(folder, { 'm-q4_0.gguf': gguf(5_000, 1) })
    const before = stateBytes(join(folder, 'root'), 'a/b')
    const model = writeFiles(join(folder, 'new'), { ...MODEL, 'm-q4_0.gguf': gguf(3_000_000, 2) })
    const body = { paths: [model], as: 'a/b' }
    return {
      act: async (daemon) => void (await done(daemon, '/v1/import/local', body)),
      check: async (after) => {
        const isOld = stateBytes(after.root, 'a/b')!.equals(before!)
        expect((await opened(after, 'svc:///a/b:q4_0')).missing).toBe(undefined)
        expect(incoming(after.root)).toEqual([])
        await done(after, '/v1/import/local', body)
        return isOld ? 'old' : 'new'
      }
    }
  }
}

const hubImport: KillScenario = {
  name: 'an import from the hub',
  points: CHANGES,
  async prepare(folder) {
    const hub = await startFakeHub({
      repos: [
        {
          id: 'Org/Model',
          files: [
            { path: 'm-q8_0.gguf', content: gguf(2_000_000, 5) },
            { path: 'm-q4_0.gguf', content: gguf(900_000, 6) },
            { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') },
            { path: 'generation_config.json', content: Buffer.from('{"temperature":0.6}') },
            { path: 'README.md', content: Buffer.alloc(300_000, 'x') }
          ]
        }
      ]
    })
    onTestFinished(() => hub.close())
    await rootWith(folder, { 'm-q4_0.gguf': gguf(5_000, 1) })
    const env = { HF_ENDPOINT: hub.endpoint }
    const body = { repo: 'Org/Model' }
    return {
      env,
      after: {
        networks: { hub: (context) => new HubJobs(context) },
        fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } }
      },
      act: async (daemon) => void (await done(daemon, '/v1/import/hf', body)),
      check: async (after) => {
        const isOld = stateBytes(after.root, 'org/model') === undefined
        // quants come one by one, and each is whole from the moment that it can be found
        const found = []
        for (const quant of ['q8_0', 'q4_0']) {
          const { status, body: answer } = await after.open(`svc:///org/model:${quant}`)
          if (status === 200) expect([quant, answer.missing]).toEqual([quant, undefined])
          if (status === 200) expectWholeBeside(answer)
          found.push(status === 200)
        }
        expect((await opened(after, 'svc:///a/b:q4_0')).missing).toBe(undefined)
        await done(after, '/v1/import/hf', body)
        expect(incoming(after.root)).toEqual([])
        for (const quant of ['q8_0', 'q4_0'])
          expect((await opened(after, `svc:///org/model:${quant}`)).missing).toBe(undefined)
        return isOld ? 'old' : found.every(Boolean) ? 'new' : 'between'
      }
    }
  }
}

const SWARM = { dht: false, peer_addr: '127.0.0.1:0', webseed_addr: '127.0.0.1:0', fill_timeout: 30 }

const fill: KillScenario = {
  name: 'a fill from another daemon, with what lies beside the model',
  points: CHANGES,
  async prepare(folder) {
    await rootWith(folder, { 'm-q4_0.gguf': gguf(5_000, 1) })
    const seeder = await Node.start()
    const beside = { 'generation_config.json': '{"temperature":0.6}', 'README.md': Buffer.alloc(300_000, 'x') }
    const model = { 'model-q8_0.gguf': gguf(4_000_000, 9), 'tokenizer.json': '{"version":"1.0"}' }
    const share = await seeder.publish({ ...model, ...beside })
    expect(share.companions).toBeDefined()
    const body = { ...pinned(share), as: 'far/model' }
    const lines = Object.entries(SWARM).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    return {
      config: `[swarm]\n${lines.join('\n')}\n`,
      after: { networks: { swarm: (context) => openSwarm(context) }, fileConfig: { swarm: SWARM } },
      act: async (daemon) => void (await done(daemon, '/v1/import/bt', body)),
      check: async (after) => {
        expect((await opened(after, 'svc:///a/b:q4_0')).missing).toBe(undefined)
        const { status, body: answer } = await after.open(`svc:///far/model@${share.manifestDigest}`)
        const whole = status === 200 && answer.missing === undefined && answer.companions !== undefined
        if (answer.companions !== undefined) expectWholeBeside(answer)
        await done(after, '/v1/import/bt', body)
        const { missing, companions } = await opened(after, 'svc:///far/model:q8_0')
        expect([missing, companions?.digest]).toEqual([undefined, share.companions!.digest])
        expectWholeBeside({ companions })
        expect(incoming(after.root)).toEqual([])
        return whole ? 'new' : status === 200 ? 'between' : 'old'
      }
    }
  }
}

const stateChange: KillScenario = {
  name: 'a change of a tag',
  points: { ...CHANGES, pwrite64: [1, 2], write: [1, 2], fsync: [1, 2, 3], rename: [1, 2], openat: [1, 2, 3, 4, 5, 6] },
  async prepare(folder) {
    await rootWith(folder, { 'm-q4_0.gguf': gguf(5_000, 1) })
    const before = stateBytes(join(folder, 'root'), 'a/b')
    const change = (api: ApiClient): Promise<void> => ok(api.call('PUT', '/v1/tags/a/b/kept', { body: {} }))
    return {
      act: change,
      check: async (after) => {
        const isOld = stateBytes(after.root, 'a/b')!.equals(before!)
        expect((await after.resolve('svc:///a/b:kept+q4_0')).status).toBe(isOld ? 404 : 200)
        expect(readdirSync(join(after.root, 'state/tmp'))).toEqual([])
        await change(after)
        expect((await opened(after, 'svc:///a/b:kept+q4_0')).missing).toBe(undefined)
        return isOld ? 'old' : 'new'
      }
    }
  }
}

const removal: KillScenario = {
  name: 'a removal and the collection behind it',
  points: { ...CHANGES, unlink: [1, 2, 3, 4, 5, 6, 7, 9, 11], rmdir: [1, 2, 4], getdents64: [1, 2, 4, 7, 11] },
  async prepare(folder) {
    await rootWith(folder, { ...MODEL, 'm-q4_0.gguf': gguf(300_000, 1), 'm-q6_k.gguf': gguf(200_000, 2) })
    const remove = async (api: ApiClient): Promise<void> => {
      const { status, body } = await api.call('DELETE', '/v1/models/a/b/q4_0')
      if (status !== 200 && status !== 404) throw new Refused(body.error)
      await done(api, '/v1/gc', { graceSeconds: 0 })
    }
    const blobs = (root: string): number =>
      readdirSync(join(root, 'blobs/sha256')).flatMap((two) => readdirSync(join(root, 'blobs/sha256', two))).length
    const all = blobs(join(folder, 'root'))
    let left: number | undefined
    return {
      act: remove,
      check: async (after) => {
        const { status, body } = await after.open('svc:///a/b:q4_0')
        if (status === 200) expect(body.missing).toBe(undefined)
        // the index of what stays may have come in already
        if (status === 200) expect(blobs(after.root)).toBeGreaterThanOrEqual(all)
        expect((await opened(after, 'svc:///a/b:q6_k')).missing).toBe(undefined)
        const found = blobs(after.root)
        await remove(after)
        left ??= blobs(after.root)
        expect(blobs(after.root)).toBe(left)
        expect(left).toBeLessThan(all)
        expect((await opened(after, 'svc:///a/b:q6_k')).missing).toBe(undefined)
        return status === 200 ? 'old' : found === left ? 'new' : 'between'
      }
    }
  }
}

const placeOf = (root: string): string => join(root, '..', 'place')

const view: KillScenario = {
  name: 'a view that takes the place of another',
  points: { ...CHANGES, symlink: FIRST_AND_LATER, rmdir: [1, 2] },
  async prepare(folder) {
    await rootWith(folder, { ...MODEL, 'm-q4_0.gguf': gguf(300_000, 1), 'm-q6_k.gguf': gguf(200_000, 2) })
    const make = (api: ApiClient, root: string, quant: string): Promise<void> =>
      ok(api.post('/v1/views', { ref: `svc:///a/b:${quant}`, path: placeOf(root), mode: 'copy' }))
    return {
      act: async (daemon, root) => {
        await make(daemon, root, 'q4_0')
        await make(daemon, root, 'q6_k')
      },
      check: async (after) => {
        const listed = (await after.get('/v1/views')).body.views as { path: string; manifestDigest: string }[]
        const [found] = listed
        const quants = existsSync(placeOf(after.root))
          ? ['q4_0', 'q6_k'].filter((quant) => existsSync(join(placeOf(after.root), `m-${quant}.gguf`)))
          : []
        // whatever stands at the place is whole, one view alone, and known
        expect(quants.length).toBeLessThan(2)
        expect(listed).toHaveLength(quants.length)
        if (quants.length > 0) {
          const { manifestDigest } = (await after.resolve(`svc:///a/b:${quants[0]}`)).body
          expect(found).toMatchObject({ path: placeOf(after.root), present: true, manifestDigest })
          const size = quants[0] === 'q4_0' ? 300_024 : 200_024
          expect(statSync(join(placeOf(after.root), `m-${quants[0]}.gguf`)).size).toBe(size)
        }
        await make(after, after.root, 'q6_k')
        expect(readdirSync(placeOf(after.root)).filter((name) => name.startsWith('m-'))).toEqual(['m-q6_k.gguf'])
        expect(readdirSync(join(after.root, '..')).filter((name) => name.startsWith('.place'))).toEqual([])
        await ok(after.call('DELETE', '/v1/views', { body: { path: placeOf(after.root) } }))
        return quants[0] === 'q6_k' ? 'new' : quants[0] === 'q4_0' ? 'between' : 'old'
      }
    }
  }
}

const hubFolder: KillScenario = {
  name: 'a model that is added to a hub folder of others, and taken out',
  points: { ...CHANGES, symlink: FIRST_AND_LATER, rmdir: [1, 2] },
  async prepare(folder) {
    await rootWith(folder, { ...MODEL, 'm-q4_0.gguf': gguf(300_000, 1), 'm-q6_k.gguf': gguf(200_000, 2) })
    const make = (api: ApiClient, root: string, quant: string): Promise<void> =>
      ok(api.post('/v1/views', { ref: `svc:///a/b:${quant}`, path: placeOf(root), mode: 'copy', layout: 'hf' }))
    const add = async (api: ApiClient, root: string): Promise<void> => {
      await make(api, root, 'q4_0')
      await make(api, root, 'q6_k')
    }
    const takeOut = (api: ApiClient, root: string): Promise<void> =>
      ok(api.call('DELETE', '/v1/views', { body: { path: placeOf(root), ref: 'svc:///a/b:q6_k' } }))
    return {
      act: async (daemon, root) => {
        await add(daemon, root)
        await takeOut(daemon, root)
      },
      check: async (after) => {
        const snapshots = join(placeOf(after.root), 'models--a--b/snapshots')
        const filesIn = (): string[] =>
          readdirSync(snapshots).flatMap((commit) =>
            readdirSync(join(snapshots, commit)).filter((name) => statSync(join(snapshots, commit, name)).size > 0)
          )
        const found = ['q4_0', 'q6_k'].filter((quant) => existsSync(snapshots) && filesIn().includes(`m-${quant}.gguf`))
        const listed = (await after.get('/v1/views')).body.views as {
          manifestDigest: string
          others?: string[]
        }[]
        expect(listed).toHaveLength(found.length === 0 ? 0 : 1)
        const held = listed.flatMap(({ manifestDigest, others = [] }) => [manifestDigest, ...others])
        const manifests = await Promise.all(
          found.map(async (quant) => (await after.resolve(`svc:///a/b:${quant}`)).body.manifestDigest as string)
        )
        expect(held.sort()).toEqual(manifests.sort())
        // what was there before goes with nothing
        if (found.includes('q6_k')) expect(found).toContain('q4_0')
        await add(after, after.root)
        expect(filesIn()).toEqual(expect.arrayContaining(['m-q4_0.gguf', 'm-q6_k.gguf', 'README.md']))
        await takeOut(after, after.root)
        expect(filesIn().filter((name) => name.startsWith('m-'))).toEqual(['m-q4_0.gguf'])
        expect(readdirSync(join(after.root, '..')).filter((name) => name.startsWith('.place'))).toEqual([])
        await ok(after.call('DELETE', '/v1/views', { body: { path: placeOf(after.root) } }))
        return found.length === 2 ? 'between' : found.length === 1 ? 'new' : 'old'
      }
    }
  }
}

/** Starts write little, and much of it in the main thread: the calls that set a root up and clear what is left of a kill. */
const START: KillScenario['points'] = {
  mkdir: [1, 2, 3, 5, 9, 40, 200],
  fsync: [1, 2, 3, 5, 8, 12],
  rename: [1, 2, 3],
  link: [1],
  unlink: [1, 2, 3, 4, 6],
  pwrite64: [1, 2],
  ftruncate: [1],
  fchmod: [1, 2],
  chmod: [1, 2],
  openat: [1, 20, 60],
  close: [1, 20, 60],
  getdents64: [2, 6, 14, 40],
  bind: [1, 2],
  listen: [1],
  flock: [1]
}

async function wholeAfterStart(after: TestDaemon): Promise<void> {
  expect([incoming(after.root), readdirSync(join(after.root, 'state/tmp'))]).toEqual([[], []])
  const model = writeFiles(join(after.folder, 'm'), { 'm-q4_0.gguf': gguf(20_000, 3) })
  await done(after, '/v1/import/local', { paths: [model], as: 'c/d' })
}

const firstStart: KillScenario = {
  name: 'a first start',
  starting: true,
  points: START,
  prepare: async () => ({
    act: async () => undefined,
    check: async (after) => {
      await wholeAfterStart(after)
      return 'new'
    }
  })
}

const recovery: KillScenario = {
  name: 'a start that clears up after a kill',
  starting: true,
  points: { unlink: [], ...START },
  async prepare(folder) {
    await rootWith(folder, { 'm-q4_0.gguf': gguf(5_000, 1) })
    const model = writeFiles(join(folder, 'new'), { 'm-q8_0.gguf': gguf(60 << 20, 2) })
    const daemon = await spawnDaemon({ folder })
    const root = join(folder, 'root')
    await daemon.post('/v1/import/local', { paths: [model], as: 'a/b' })
    // of the weights: small files come and go in there
    const begun = (name: string): boolean =>
      (statSync(join(root, 'incoming', name), { throwIfNoEntry: false })?.size ?? 0) > 1 << 20
    while (!incoming(root).some(begun)) await new Promise((resolve) => setImmediate(resolve))
    daemon.agent.destroy()
    daemon.child.kill('SIGKILL')
    await daemon.ended
    expect(incoming(root).length).toBeGreaterThan(0)
    writeFiles(join(root, 'state/tmp'), { 'half-written': '{' })
    return {
      act: async () => undefined,
      check: async (after) => {
        expect((await opened(after, 'svc:///a/b:q4_0')).missing).toBe(undefined)
        await wholeAfterStart(after)
        return 'new'
      }
    }
  }
}

const eviction: KillScenario = {
  name: 'an eviction, and the way back',
  points: CHANGES,
  async prepare(folder) {
    const files = [
      { path: 'm-q8_0.gguf', content: gguf(900_000, 8) },
      { path: 'mmproj-f16.gguf', content: gguf(300_000, 9) },
      { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }
    ]
    const hub = await startFakeHub({ repos: [{ id: 'Org/Model', files }] })
    onTestFinished(() => hub.close())
    const options = {
      networks: { hub: (context) => new HubJobs(context) },
      fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } }
    } satisfies KillRig['after']
    const first = await testDaemon({ folder, ...options })
    await done(first, '/v1/import/hf', { repo: 'Org/Model' })
    await first.running.close({ quick: true })
    const ref = 'svc:///org/model:q8_0'
    return {
      env: { HF_ENDPOINT: hub.endpoint },
      after: options,
      act: async (daemon) => {
        await done(daemon, '/v1/evict', { ref })
        await done(daemon, '/v1/ensure', { ref })
      },
      check: async (after) => {
        const member = (await after.get('/v1/models')).body.namespaces[0].members[0]
        // what is not here is away, and never lost
        expect(member.complete || member.away === true).toBe(true)
        // what a collection takes now, nothing needs
        await done(after, '/v1/gc', { graceSeconds: 0 })
        if (member.complete) await done(after, '/v1/evict', { ref })
        expect((await opened(after, ref)).missing).toHaveLength(2)
        await done(after, '/v1/ensure', { ref })
        expect((await opened(after, ref)).missing).toBe(undefined)
        return member.complete ? 'new' : 'between'
      }
    }
  }
}

/** Everything that changes a root, and what must hold wherever it is cut. */
export const KILL_SCENARIOS: readonly KillScenario[] = [
  localImport,
  hubImport,
  fill,
  stateChange,
  removal,
  eviction,
  view,
  hubFolder,
  firstStart,
  recovery
]
