import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FileConfig } from '@svc/daemon'
import { type FakeBucket, startFakeBucket } from '@svc/testkit/fake-bucket'
import { type FakeCatalog, startFakeCatalog } from '@svc/testkit/fake-catalog'
import { type FakeHub, type FakeRepo, startFakeHub } from '@svc/testkit/fake-hub'
import { type FakeRegistry, startFakeRegistry } from '@svc/testkit/fake-registry'
import { startV1Peer } from '@svc/testkit/v1-peer'
import type { laterUndo } from '../support.ts'
import { put, putHub, putLlama, putOllama } from '../tool-caches.ts'
import { Gate } from './gate.ts'
import { type TaggedModel, taggedModel } from './tagged.ts'

/** Numbers of models whose quant is q8_0: each road brings in one of its own. */
let models = 0
const newModel = (): TaggedModel => taggedModel(2 * models++)
export const WEIGHTS = 'm-q8_0.gguf'
export const TOKEN = 'token-of-the-owner'
const KEYS = '[default]\naws_access_key_id = A\naws_secret_access_key = s\n'

let undo: ReturnType<typeof laterUndo>
export let folder: string
let hub: FakeHub
let registry: FakeRegistry
export let bucket: FakeBucket
let catalog: FakeCatalog
/** Packs what others import. */
export let origin: Gate
/** Repositories whose answers do not say who may have them. */
const unsaid = new Map<string, string>()

/** A model that came in: its name, and where the hub's mirror would have it. */
export interface Brought {
  readonly ref: string
  readonly hubPath: string
  /** Its weights, where they have not the usual name. */
  readonly file?: string | undefined
}
export type Verdict = 'given' | 'private' | 'restricted' | 'marked' | 'unknown-access'

export interface Road {
  readonly road: string
  readonly bring: (gate: Gate, name: string) => Promise<Brought>
  readonly verdict: Verdict
  /** The credential that `why` names. */
  readonly by?: string
  /** The hub's mirror has it: it came from there. */
  readonly isOfHub?: boolean
  readonly skip?: boolean
}

const own = (ref: string) => ({ ref, hubPath: `/${ref.split(':')[0]}/resolve/main/${WEIGHTS}` })

function folderOf({ files }: TaggedModel): string {
  const at = mkdtempSync(join(folder, 'model-'))
  for (const { name, bytes } of files) writeFileSync(join(at, name), bytes)
  return at
}

export const local =
  (more: object = {}): Road['bring'] =>
  async (gate, name) => {
    await gate.done(gate.client.importLocal({ paths: [folderOf(newModel())], as: name, ...more }))
    return own(`${name}:q8_0`)
  }

/** A repository of the hub with one commit, and a path of its mirror. */
function repoOf(
  access: Pick<FakeRepo, 'private' | 'gated' | 'branch'> = {},
  { isUnsaid = false }: { readonly isUnsaid?: boolean } = {}
): { readonly repo: string; readonly commit: string; readonly hubPath: string; readonly model: TaggedModel } {
  const model = newModel()
  const repo = `Acme/Repo-${model.files[0]!.tag}`
  const files = model.files.map(({ name, bytes }) => ({ path: name, content: bytes, lfs: name === WEIGHTS }))
  const commit = hub.commit({ id: repo, files, ...access })
  if (isUnsaid) unsaid.set(repo, JSON.stringify({ id: repo, sha: commit, siblings: [] }))
  return { repo, commit, hubPath: `/${repo}/resolve/${commit}/${WEIGHTS}`, model }
}

export const fromHub =
  (
    access: Parameters<typeof repoOf>[0] = {},
    more: object = {},
    how: Parameters<typeof repoOf>[1] = {}
  ): Road['bring'] =>
  async (gate) => {
    const { repo, hubPath } = repoOf(access, how)
    await gate.done(gate.client.importHf({ repo, ...more }))
    return { ref: `${repo.toLowerCase()}:q8_0`, hubPath }
  }

/** A model that the packing machine has, perhaps private there. */
export async function packed(name: string, { isPrivate = false } = {}): Promise<string> {
  const paths = [folderOf(newModel())]
  await origin.done(origin.client.importLocal({ paths, as: name, private: isPrivate }))
  return `${name}:q8_0`
}

export const layout =
  (file: string, { isPrivate = false } = {}): Road['bring'] =>
  async (gate, name) => {
    const ref = await packed(name, { isPrivate })
    const path = join(folder, name.replace('/', '-'), file)
    mkdirSync(join(path, '..'))
    await origin.svc('export', 'oci', ref, path, ...(isPrivate ? ['--withheld'] : []))
    await gate.done(gate.client.importOci({ path, as: name }))
    return own(ref)
  }

export const image =
  (isClosed: boolean): Road['bring'] =>
  async (gate, name) => {
    const ref = await packed(name)
    await origin.svc('push', ref, `${registry.address}/${name}:latest`)
    registry.setClosed(name, isClosed)
    await gate.done(gate.client.importOci({ image: `${registry.address}/${name}:latest`, as: name }))
    return own(ref)
  }

/** Of a bucket whose front redirects to signed requests, the documents are open. */
export const pinned =
  (from: 'open' | 'habit' | 'keyed' | 'front'): Road['bring'] =>
  async (gate, name) => {
    const ref = await packed(name)
    const part = join(folder, 'bucket', from === 'front' ? 'keyed' : from)
    await origin.svc('publish', ref, part)
    const { infohash, manifestDigest, name: torrent } = await origin.client.share(`svc:///${ref}`)
    const webseeds = [`${bucket.url}${from}/`]
    if (from === 'front') {
      const documents = join('open/documents', name)
      webseeds.push(`${bucket.url}${documents}/`)
      for (const each of ['bt', `${torrent}/manifest`])
        cpSync(join(part, each), join(folder, 'bucket', documents, each), { recursive: true })
    }
    await gate.done(gate.client.importBt({ infohash, manifestDigest, webseeds, as: name }))
    return own(ref)
  }

/** Pins what `svc publish --withheld` wrote, without its command: only the listing says that it was withheld. */
export const pinnedOfListing: Road['bring'] = async (gate, name) => {
  const ref = await packed(name, { isPrivate: true })
  const at = `open/${name.replace('/', '-')}`
  await origin.svc('publish', ref, join(folder, 'bucket', at), '--withheld')
  const { infohash, manifestDigest } = await origin.client.share(`svc:///${ref}`)
  await gate.done(gate.client.importBt({ infohash, manifestDigest, webseeds: [`${bucket.url}${at}/`], as: name }))
  return own(ref)
}

/** Types the command that a publication prints, in a folder of its own behind an open web server. */
export const published =
  (isPrivate: boolean): Road['bring'] =>
  async (gate, name) => {
    const ref = await packed(name, { isPrivate })
    const at = `open/${name.replace('/', '-')}`
    const options = ['--url', `${bucket.url}${at}/`, ...(isPrivate ? ['--withheld'] : [])]
    const { stdout } = await origin.svc('publish', ref, join(folder, 'bucket', at), ...options, '--json')
    const [{ command }] = JSON.parse(stdout).models
    const words = (command as string).split(' ').map((word) => word.replace(/^'|'$/g, ''))
    await gate.svc(...words.slice(1))
    return own(ref)
  }

export const fromCatalog =
  (access: Parameters<typeof repoOf>[0]): Road['bring'] =>
  async (gate, name) => {
    const { repo, commit, hubPath, model } = repoOf(access)
    const at = join(folder, `seed-${model.files[0]!.tag}`)
    put(join(at, 'model', WEIGHTS), model.files[0]!.bytes)
    const seed = await startV1Peer({ mode: 'seed', folder: at, name: 'model', piece_length: 65_536 })
    undo.later(() => seed.stop())
    const webseed = encodeURIComponent(`${hub.endpoint}/${repo}/resolve/${commit}`)
    catalog.list([{ repo, magnet: `magnet:?xt=urn:btih:${seed.infohash}&dn=${WEIGHTS}&ws=${webseed}` }])
    await gate.done(gate.client.importCatalog({ repo, peers: [seed.address], as: name }))
    return { ref: `${name}:q8_0`, hubPath }
  }

/** Nobody is asked here whether to share. */
const unlessDecided = async ({ client }: Gate): Promise<string[]> =>
  (await client.status()).seedLocal === undefined ? ['--share'] : []

export const adoptedCache =
  (access: Parameters<typeof repoOf>[0] = {}): Road['bring'] =>
  async (gate) => {
    const { repo, commit, hubPath, model } = repoOf(access)
    const root = join(folder, `cache-${model.files[0]!.tag}`)
    putHub(root, repo, Object.fromEntries(model.files.map(({ name, bytes }) => [name, bytes])), commit)
    await gate.svc('adopt', root, '--yes', ...(await unlessDecided(gate)))
    return { ref: `${repo.toLowerCase()}:q8_0`, hubPath }
  }

export const adoptedOllama: Road['bring'] = async (gate) => {
  const { files } = newModel()
  const root = join(folder, `ollama-${files[0]!.tag}`)
  putOllama(root, `tiny-${files[0]!.tag}`, 'latest', files[0]!.bytes)
  const { stdout } = await gate.svc('adopt', root, '--yes', '--json', ...(await unlessDecided(gate)))
  const [ref] = JSON.parse(stdout).models[0].refs
  const { files: inside } = await gate.client.open(`svc:///${ref}`)
  return { ...own(ref), file: inside.find(({ kind }) => kind === 'weights.gguf')!.name }
}

/** The flat cache of llama.cpp, of a repository of the hub. */
export const adoptedFlat =
  (access: Parameters<typeof repoOf>[0] = {}): Road['bring'] =>
  async (gate) => {
    const { repo, model } = repoOf(access)
    const root = join(folder, `flat-${model.files[0]!.tag}`)
    putLlama(root, repo, WEIGHTS, model.files[0]!.bytes)
    const { stdout } = await gate.svc('adopt', root, '--yes', '--json', ...(await unlessDecided(gate)))
    return own(JSON.parse(stdout).models[0].refs[0])
  }

export const adoptedOwn: Road['bring'] = async (gate) => {
  const { files } = newModel()
  const root = join(folder, `plain-${files[0]!.tag}`)
  put(join(root, WEIGHTS), files[0]!.bytes)
  const { stdout } = await gate.svc('adopt', root, '--yes', '--json', ...(await unlessDecided(gate)))
  const [ref] = JSON.parse(stdout).models[0].refs
  return own(ref)
}

export const adoptedFolder: Road['bring'] = async (gate) => {
  const { files } = newModel()
  const root = join(folder, `studio-${files[0]!.tag}`)
  put(join(root, '.lmstudio/models/maker/tiny-GGUF', WEIGHTS), files[0]!.bytes)
  const { stdout } = await gate.svc(
    'adopt',
    join(root, '.lmstudio/models'),
    '--yes',
    '--json',
    ...(await unlessDecided(gate))
  )
  return own(JSON.parse(stdout).models[0].refs[0])
}

/** A stranger asks the hub's mirror for what the hub gives to everybody. */
export const onDemand =
  (branch?: string): Road['bring'] =>
  async (gate) => {
    const { repo, commit, hubPath } = repoOf(branch === undefined ? {} : { branch })
    if (branch !== undefined) hub.commit({ id: repo, files: [{ path: 'README.md', content: Buffer.from(repo) }] })
    const at = branch === undefined ? 'main' : commit
    const before = await namesIn(gate)
    const status = await gate.ask('hub', `/${repo}/resolve/${at}/${WEIGHTS}`)
    if (status !== 200) throw new Error(`the mirror answered ${status}`)
    for (const job of await gate.client.jobs()) await gate.done(Promise.resolve(job))
    const [ref] = (await namesIn(gate)).filter((each) => !before.includes(each))
    return { ref: ref!, hubPath }
  }

const namesIn = async (gate: Gate): Promise<string[]> =>
  (await gate.client.models()).namespaces.flatMap(({ ns, name, members }) =>
    members.map(({ quant }) => `${ns}/${name}:${quant}`)
  )

export const configOf = (): FileConfig => ({
  hub: { endpoint: hub.endpoint },
  catalog: { endpoint: catalog.endpoint },
  webseed: { [`${bucket.url}keyed/`]: { credentials_file: join(folder, 'keys') } }
})

/** Everything outside the machines, for the tests of a file. */
export async function openSources(until: ReturnType<typeof laterUndo>): Promise<void> {
  undo = until
  folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'svc-roads-'))
  undo.later(() => rmSync(folder, { recursive: true, force: true }))
  for (const part of ['open', 'habit', 'keyed']) mkdirSync(join(folder, 'bucket', part), { recursive: true })
  writeFileSync(join(folder, 'keys'), KEYS, { mode: 0o600 })
  hub = await startFakeHub({
    tokens: [TOKEN],
    faults: ({ stage, url }) => {
      const body = stage === 'info' ? [...unsaid].find(([repo]) => url.includes(repo))?.[1] : undefined
      return body === undefined ? undefined : { kind: 'status', status: 200, body }
    }
  })
  undo.later(() => hub.close())
  registry = await startFakeRegistry()
  undo.later(() => registry.close())
  bucket = await startFakeBucket(join(folder, 'bucket'))
  undo.later(() => bucket.close())
  catalog = await startFakeCatalog()
  undo.later(() => catalog.close())
  put(join(folder, 'docker/config.json'), registry.dockerConfig)
  const before = process.env.DOCKER_CONFIG
  process.env.DOCKER_CONFIG = join(folder, 'docker')
  undo.later(
    () => void (before === undefined ? delete process.env.DOCKER_CONFIG : (process.env.DOCKER_CONFIG = before))
  )
  origin = await Gate.start(join(folder, 'origin'), { file: { swarm: { seed: false } } })
  undo.later(() => origin.close())
}
