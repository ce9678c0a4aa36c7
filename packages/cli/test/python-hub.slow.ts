// The hub's own Python client at the hub mirror: with the transfers that it has on by default, and without them.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf, makeModelFolder } from '@svc/testkit/models'
import { HUB_CLIENT, HUB_PYTHONS, PYTHON } from '@svc/testkit/python-loaders'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000 })
const undo = laterUndo()
afterAll(undo.all)

if (HUB_PYTHONS.length === 0) it.skip(`huggingface_hub is not installed for ${PYTHON}`, () => {})

const REPO = 'Acme/Tiny'
const WEIGHTS = 'model.safetensors'
const LEFT = 'pytorch_model.bin'
const DEMANDED = { repo: 'Acme/Later-GGUF', file: 'Later-Q4_K_M.gguf' }

interface Said {
  readonly snapshot: string
  readonly again: string
  readonly pinned: string
  readonly demanded: string
  readonly left: string
  readonly sizes: Record<string, number>
}

/** Passes requests on to a mirror and records them; can break a connection in the middle of the weights. */
async function recorder(address: string) {
  const seen: { method: string; path: string; range: string | undefined; status: number }[] = []
  const [host, port] = address.split(':')
  let broken: { readonly after: number } | undefined
  const server = createServer((incoming, response) => {
    const { method = '', url: path = '' } = incoming
    const onward = request({ host, port, method, path, headers: { ...incoming.headers, host: address } }, (answer) => {
      seen.push({ method, path, range: incoming.headers.range, status: answer.statusCode! })
      response.writeHead(answer.statusCode!, answer.headers)
      const cut = method === 'GET' && path.endsWith(WEIGHTS) ? broken : undefined
      if (cut === undefined) return void answer.pipe(response)
      broken = undefined
      let sent = 0
      answer.on('data', (chunk: Buffer) => {
        const part = chunk.subarray(0, cut.after - sent)
        sent += part.length
        if (sent === cut.after) answer.destroy()
        response.write(part, () => sent === cut.after && response.destroy())
      })
    })
    onward.on('error', () => response.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  undo.later(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    /** Breaks the next such connection. */
    breakOff: (how: { readonly after: number }): void => {
      broken = how
    }
  }
}

const mirrorOf = (daemon: TestDaemon): string =>
  JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8')).hubMirrorAddress

const OFFLINE = `
import json, sys
from huggingface_hub import get_cached_repo_tree, snapshot_download
repo, caches = sys.argv[1], sys.argv[2:]
said = []
for cache in caches:
    tree = get_cached_repo_tree(repo, cache_dir=cache)
    folder = snapshot_download(repo, cache_dir=cache, local_files_only=True)
    said.append([sorted(file.path for file in tree), {file.path: file.size for file in tree}, folder])
print(json.dumps(said))
`

describe.each(HUB_PYTHONS)('$version', ({ python }) => {
  it('huggingface_hub loads, resumes and caches, and learns what does not exist', async () => {
    const hub = await startFakeHub()
    undo.later(() => hub.close())
    const mirror = { hub_addr: '127.0.0.1:0' }
    const network = { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } }
    const daemon = await testDaemon({ fileConfig: { ...network, mirror } }, undo.later)
    const onDemand = { ...mirror, on_demand: true, on_demand_allow: ['acme/*'] }
    const fetching = await testDaemon({ fileConfig: { ...network, mirror: onDemand } }, undo.later)
    const folder = join(daemon.folder, 'Tiny')
    const names = makeModelFolder(folder, { ggufs: {} })
    mkdirSync(join(folder, 'extras'))
    writeFileSync(join(folder, 'extras/generation_config.json'), '{"temperature":0.6}')
    const kept = [...names, 'extras/generation_config.json'].sort()
    const files = kept.map((path) => ({ path, content: readFileSync(join(folder, path)) }))
    const commit = hub.commit({
      id: REPO,
      files: [...files, { path: LEFT, content: { seed: 3, sizeBytes: 1_100_000 } }]
    })
    const later = makeGguf({ seed: 11 })
    hub.commit({ id: DEMANDED.repo, files: [{ path: DEMANDED.file, content: later }] })
    hub.commit({ id: 'Other/Model', files: [{ path: DEMANDED.file, content: later }] })
    expect(await daemon.svc('import', 'hf', REPO)).toMatchObject({ code: 0 })
    const { url, seen, breakOff } = await recorder(mirrorOf(daemon))

    const weights = readFileSync(join(folder, WEIGHTS))
    const etag = createHash('sha256').update(weights).digest('hex')
    const cache = join(daemon.folder, 'cache')
    breakOff({ after: weights.length >> 1 })
    const ask = async (asked: object, env: Record<string, string> = {}): Promise<Said> => {
      const own = { HF_ENDPOINT: url, HF_HOME: join(daemon.folder, 'hf'), HF_HUB_DISABLE_TELEMETRY: '1' }
      const all = JSON.stringify({ repo: REPO, commit, weights: WEIGHTS, left: LEFT, ...asked })
      const { stdout } = await promisify(execFile)(python, [HUB_CLIENT, all], {
        env: { ...process.env, ...own, ...env }
      })
      return JSON.parse(stdout.trim().split('\n').at(-1)!)
    }
    const demand = { ...DEMANDED, endpoint: `http://${mirrorOf(fetching)}` }
    const said = await ask({ cache, all: true, demand })
    expect(said).toMatchObject({
      snapshot: expect.stringMatching(`/models--Acme--Tiny/snapshots/${commit}$`),
      again: said.snapshot,
      pinned: join(said.snapshot, 'config.json'),
      sha: commit,
      files: kept,
      tree: [...kept, 'extras'].sort(),
      paths: ['config.json'],
      refs: [[['main', commit]], [], [], []],
      left: expect.stringContaining(`the repository has ${LEFT}`),
      exists: [true, false, false],
      meta: [commit, etag, weights.length],
      failures: [
        expect.stringMatching(/EntryNotFoundError$/),
        'RepositoryNotFoundError',
        'RevisionNotFoundError',
        'RepositoryNotFoundError'
      ],
      not_allowed: 'RepositoryNotFoundError'
    })
    for (const name of kept) {
      expect(readFileSync(join(said.snapshot, name)).equals(readFileSync(join(folder, name))), name).toBe(true)
      expect(said.sizes[name]).toBe(readFileSync(join(folder, name)).length)
    }
    expect(readFileSync(said.demanded).equals(later)).toBe(true)
    // from the beginning, on from where the connection broke, and not at all the second time
    const bodies = seen.filter(({ method, path }) => method === 'GET' && path.endsWith(WEIGHTS))
    expect(bodies).toMatchObject([
      { status: 200, range: undefined },
      { status: 206, range: expect.stringMatching(/^bytes=[1-9]\d+-$/) }
    ])

    const without = await ask({ cache: join(daemon.folder, 'without') }, { HF_HUB_DISABLE_XET: '1' })
    for (const name of kept)
      expect(readFileSync(join(without.snapshot, name)).equals(readFileSync(join(folder, name))), name).toBe(true)
  })

  it('huggingface_hub reads the listing of a whole commit from our hub caches, and misses a file', async () => {
    const hub = await startFakeHub()
    undo.later(() => hub.close())
    const daemon = await testDaemon(
      { fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } },
      undo.later
    )
    const folder = join(daemon.folder, 'Tiny')
    const names = makeModelFolder(folder, { ggufs: {} }).sort()
    const commit = hub.commit({
      id: REPO,
      files: names.map((path) => ({ path, content: readFileSync(join(folder, path)) }))
    })
    expect(await daemon.svc('import', 'hf', REPO)).toMatchObject({ code: 0 })
    const caches = ['standing', 'made'].map((name) => join(daemon.folder, name))
    expect(await daemon.svc('view', 'add', 'hf', caches[0]!)).toMatchObject({ code: 0 })
    const ref = JSON.parse((await daemon.svc('ls', '--json')).stdout).models[0].ref
    expect(await daemon.svc('view', ref, caches[1]!, '--layout', 'hf')).toMatchObject({ code: 0 })
    const run = () =>
      promisify(execFile)(python, ['-c', OFFLINE, REPO, ...caches], { env: { ...process.env, HF_HUB_OFFLINE: '1' } })
    const said = JSON.parse((await run()).stdout)
    for (const [i, [files, sizes, at]] of said.entries()) {
      expect(files).toEqual(names)
      for (const name of names) expect(sizes[name]).toBe(readFileSync(join(folder, name)).length)
      expect(at).toBe(join(caches[i]!, `models--Acme--Tiny/snapshots/${commit}`))
    }
    rmSync(join(caches[0]!, `models--Acme--Tiny/snapshots/${commit}/config.json`))
    await expect(run()).rejects.toThrow('IncompleteSnapshotError')
  })
})
