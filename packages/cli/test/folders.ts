import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { downloadFileToCacheDir } from '@huggingface/hub'
import { type Client, createClient, type Job, type OmittedFile } from '@svc/client'
import { startFakeBucket } from '@svc/testkit/fake-bucket'
import { startFakeHub } from '@svc/testkit/fake-hub'
import type { MadeRepository } from '@svc/testkit/made-repositories'
import { missingModules, PYTHON } from '@svc/testkit/python-loaders'
import { haveRegistry, startRegistry } from '@svc/testkit/registry'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { laterUndo, ok, QUIET_SWARM, type TestDaemon, testDaemon } from './support.ts'

interface Imported extends MadeRepository {
  /** One per quant. */
  readonly refs: readonly string[]
  readonly commit: string
  readonly omitted: readonly OmittedFile[]
}
type Folder = ReadonlyMap<string, Buffer>

/** The files below a folder, links followed. */
export function folderAt(path: string): Folder {
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) => name !== '.svc-view.json')
  const files = names.filter((name) => statSync(join(path, name)).isFile())
  return new Map(files.map((name) => [name, readFileSync(join(path, name))]))
}

/** Runs a command line that the `svc` of another daemon printed, split as by a shell. */
export async function typed(daemon: TestDaemon, command: string): Promise<string> {
  const words = execFileSync('/bin/sh', ['-c', `printf '%s\\n' ${command}`], { encoding: 'utf8' })
  return ok(daemon, ...words.trimEnd().split('\n').slice(1))
}
const lowerCase = (text: string): string => text.toLowerCase()
const view = async (daemon: TestDaemon, ref: string): Promise<Folder> =>
  folderAt(await ok(daemon, 'path', ref, '--dir'))

/** All quants together have the files of upstream, except those that were reported as left out. */
function expectWhole({ id, files, omitted }: Imported, found: Folder): void {
  const leftOut = new Set(omitted.filter(({ reason }) => reason !== 'artifact').map(({ path }) => path))
  const upstream = files.filter(({ path }) => !leftOut.has(path))
  expect([id, [...found.keys()].sort()]).toEqual([id, upstream.map(({ path }) => path).sort()])
  const differing = upstream.filter(({ path, content }) => !found.get(path)!.equals(content)).map(({ path }) => path)
  expect([id, differing]).toEqual([id, []])
}

/** The folder has no file of another one, and reports each of its own that is missing. */
function expectPart({ id, files, omitted }: Imported, found: Folder): void {
  const upstream = new Map(files.map(({ path, content }) => [path, Buffer.from(content)]))
  const strange = [...found].filter(([path, bytes]) => upstream.get(path)?.equals(bytes) !== true)
  expect([id, strange.map(([path]) => path)]).toEqual([id, []])
  const said = new Set(omitted.map(({ path }) => path))
  const unsaid = [...upstream.keys()].filter((path) => !found.has(path) && !said.has(path))
  expect([id, unsaid]).toEqual([id, []])
}

async function withClient<T>(daemon: TestDaemon, work: (client: Client) => Promise<T>): Promise<T> {
  const client = createClient({ socketPath: daemon.socketPath })
  try {
    return await work(client)
  } finally {
    client.close()
  }
}

/** The name that an import gives it: one without an owner is the hub's. */
const nameOf = ({ id }: MadeRepository): string => (id.includes('/') ? id : `hf.co/${id}`).toLowerCase()

/** What a daemon has of a repository that it imported under the repository's own name. */
const importedAt = (daemon: TestDaemon, repo: MadeRepository, commit: string): Promise<Imported> =>
  withClient(daemon, async (client) => {
    const name = nameOf(repo)
    const { members } = (await client.models()).namespaces.find((each) => `${each.ns}/${each.name}` === name)!
    const refs = members.map(({ quant }) => `${name}:${quant}`)
    const { companions } = await client.open(refs[0]!)
    return { ...repo, refs, commit, omitted: companions?.omitted ?? [] }
  })

/** Imports everything under the names it has, by the API: `svc` chooses among aux files, and normalizes names. */
const importAll = (
  daemon: TestDaemon,
  { id }: MadeRepository,
  start = (client: Client): Promise<Job> => client.importHf({ repo: id })
): Promise<void> =>
  withClient(daemon, async (client) => {
    const job = await client.waitJob(await start(client))
    expect([id, job.state, job.error]).toEqual([id, 'done', undefined])
  })

/**
 * Generated repositories of the kinds that loaders know: on every road, the folder stays the same byte for byte, except for files that
 * were reported as missing.
 */
export function testFolders(repositories: readonly MadeRepository[]): void {
  const undo = laterUndo()
  afterAll(undo.all)
  let from: TestDaemon
  let mirror: string
  const imported: Imported[] = []

  beforeAll(async () => {
    const hub = await startFakeHub()
    undo.later(() => hub.close())
    const network = { swarm: QUIET_SWARM, hub: { endpoint: hub.endpoint } }
    from = await testDaemon({ fileConfig: { ...network, mirror: { hub_addr: '127.0.0.1:0' } } }, undo.later)
    mirror = `http://${JSON.parse(readFileSync(join(from.folder, 'runtime.json'), 'utf8')).hubMirrorAddress}`
    for (const repo of repositories) {
      const commit = hub.commit(repo)
      await importAll(from, repo)
      imported.push(await importedAt(from, repo, commit))
    }
  })

  /** The files of the views of all quants in another daemon. */
  async function wholeOf(daemon: TestDaemon, repo: Imported): Promise<Folder> {
    const files = new Map<string, Buffer>()
    for (const ref of (await importedAt(daemon, repo, repo.commit)).refs)
      for (const [path, bytes] of await view(daemon, ref)) files.set(path, bytes)
    return files
  }

  /** Checks the folders of all quants of a repository on a road, each alone and then together. */
  async function expectRoad(road: (ref: string, repo: Imported) => Promise<Folder>, repos = imported): Promise<void> {
    expect(repos).toHaveLength(repositories.length)
    for (const repo of repos) {
      const folders: Folder[] = []
      for (const ref of repo.refs) folders.push(await road(ref, repo))
      for (const folder of folders) expectPart(repo, folder)
      expectWhole(repo, new Map(folders.flatMap((folder) => [...folder])))
    }
  }

  it('the folder that svc path prints', () => expectRoad((ref) => view(from, ref)))

  it('a hub cache', () =>
    expectRoad(async (ref) =>
      folderAt(await ok(from, 'view', ref, join(from.folder, ref.replace('/', '-')), '--layout', 'hf'))
    ))

  it("the hub mirror's listing and files", async () => {
    for (const repo of imported) {
      const tree = await fetch(`${mirror}/api/models/${repo.id}/tree/${repo.commit}?recursive=true`)
      const paths = ((await tree.json()) as { type: string; path: string }[])
        .filter(({ type }) => type === 'file')
        .map(({ path }) => path)
      const found = new Map<string, Buffer>()
      for (const path of paths) {
        const at = path.split('/').map(encodeURIComponent).join('/')
        const answer = await fetch(`${mirror}/${repo.id}/resolve/${repo.commit}/${at}`)
        expect([repo.id, path, answer.status]).toEqual([repo.id, path, 200])
        found.set(path, Buffer.from(await answer.arrayBuffer()))
      }
      expectPart(repo, found)
      expectWhole(repo, found)
    }
  })

  it('what svc imports: the same files, with lower-case names of GGUFs', async () => {
    const to = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: mirror } } })
    for (const repo of imported) {
      await ok(to, 'import', 'hf', repo.id, '--all', '--aux', 'all')
      const whole = await wholeOf(to, repo)
      const lower = (path: string): string => (path.endsWith('.gguf') ? path.replace(/[^/]+$/, lowerCase) : path)
      const upstream = new Set(repo.files.map(({ path }) => lower(path)))
      // a name without a quant gets the header's
      const plain = (path: string): string => (upstream.has(path) ? path : path.replace(/-q8_0\.gguf$/, '.gguf'))
      const found = new Map([...whole].map(([path, bytes]) => [plain(lower(path)), bytes]))
      // another form of the same weights comes on request, and is reported
      const said = new Set((await importedAt(to, repo, repo.commit)).omitted.map(({ path }) => lower(path)))
      const files = repo.files
        .map((file) => ({ ...file, path: lower(file.path) }))
        .filter(({ path }) => found.has(path) || !said.has(path))
      expectWhole({ ...repo, files }, found)
    }
  })

  it('the JavaScript client at the mirror, for names that it can request', async () => {
    const told = vi.spyOn(console, 'debug').mockReturnValue()
    onTestFinished(() => told.mockRestore())
    const cacheDir = join(from.folder, 'javascript')
    for (const repo of imported) {
      // it puts names into addresses unescaped, and requests the first byte of each file
      const files = repo.files.filter(
        ({ path, content }) => content.length > 0 && new URL(`http://hub/${path}`).pathname === encodeURI(`/${path}`)
      )
      const omitted = new Set(repo.omitted.filter(({ reason }) => reason !== 'artifact').map(({ path }) => path))
      const found = new Map<string, Buffer>()
      for (const { path } of files)
        if (!omitted.has(path))
          found.set(path, readFileSync(await downloadFileToCacheDir({ repo: repo.id, path, hubUrl: mirror, cacheDir })))
      expectWhole({ ...repo, files }, found)
    }
  })

  it.skipIf(missingModules.includes('huggingface_hub'))(
    'the Python client at the mirror, and its cache, adopted',
    async () => {
      const cache = join(from.folder, 'python')
      const script =
        'import huggingface_hub as h, json, sys; print(json.dumps([h.snapshot_download(r) for r in sys.argv[1:]]))'
      const env = { ...process.env, HF_ENDPOINT: mirror, HF_HUB_CACHE: cache, HF_HUB_DISABLE_XET: '1' }
      const { stdout } = await promisify(execFile)(PYTHON, ['-c', script, ...imported.map(({ id }) => id)], { env })
      for (const [i, folder] of (JSON.parse(stdout) as string[]).entries()) expectWhole(imported[i]!, folderAt(folder))
      const to = await testDaemon()
      await ok(to, 'adopt', cache, '--yes', '--keep-names')
      for (const repo of imported) expectWhole(repo, await wholeOf(to, repo))
    }
  )

  it('a daemon that imports from the mirror', async () => {
    const to = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: mirror } } })
    await expectRoad(async (ref, repo) => {
      if (ref === repo.refs[0]) await importAll(to, repo)
      return view(to, ref)
    })
  })

  it('an OCI layout, imported by another daemon', async () => {
    const to = await testDaemon()
    let count = 0
    await expectRoad(async (ref) => {
      const layout = join(from.folder, `layout-${count++}`)
      await ok(from, 'export', 'oci', ref, layout)
      await ok(to, 'import', 'oci', layout, '--as', ref.split(':')[0]!)
      return view(to, ref)
    })
  })

  it('a share, by the two pins of its command', async () => {
    const to = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } })
    await expectRoad(async (ref) => {
      await typed(to, (await ok(from, 'share', ref)).split('\n').at(-1)!)
      return view(to, ref)
    })
  })

  it('a publication, imported from a web server', async () => {
    const www = join(from.folder, 'www')
    mkdirSync(www)
    const server = await startFakeBucket(www)
    onTestFinished(() => server.close())
    const to = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } })
    await expectRoad(async (ref) => {
      const printed = await ok(from, 'publish', ref, join(www, 'open'), '--url', `${server.url}open/`)
      await typed(to, printed.split('\n')[0]!)
      return view(to, ref)
    })
  })

  it.skipIf(!haveRegistry)('a registry', async () => {
    const registry = await startRegistry(join(from.folder, 'registry'))
    onTestFinished(() => registry.stop())
    const to = await testDaemon()
    await expectRoad(async (ref) => {
      const [name, quant] = ref.split(':')
      await ok(from, 'push', ref, `${registry.address}/${name}:${quant}`)
      await ok(to, 'import', 'oci', `${registry.address}/${name}:${quant}`, '--as', name!)
      return view(to, ref)
    })
  })

  it('an archive on a disk, to a machine without a network', async () => {
    const to = await testDaemon({ fileConfig: { swarm: { enabled: false } } })
    const archive = join(from.folder, 'models.tar')
    const exported = await ok(from, 'export', 'oci', ...imported.flatMap(({ refs }) => refs), archive, '--json')
    for (const { ref, digest } of JSON.parse(exported).manifests)
      await ok(to, 'import', 'oci', archive, '--tag', digest, '--as', ref.split(':')[0])
    await expectRoad((ref) => view(to, ref))
  })

  it('a folder on disk, imported without its hidden files', async () => {
    const to = await testDaemon()
    const local: Imported[] = []
    for (const repo of repositories) {
      const folder = join(to.folder, 'sources', repo.id)
      for (const { path, content } of repo.files) {
        mkdirSync(dirname(join(folder, path)), { recursive: true })
        writeFileSync(join(folder, path), content)
      }
      await importAll(to, repo, (client) => client.importLocal({ paths: [folder], as: nameOf(repo) }))
      local.push(await importedAt(to, repo, ''))
    }
    await expectRoad((ref) => view(to, ref), local)
  })
}
