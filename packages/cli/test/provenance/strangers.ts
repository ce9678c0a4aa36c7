import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Backup } from '@svc/publish'
import type { Sha256Digest } from '@svc/ref'
import { recordText } from '@svc/testkit/records'
import {
  type ClaimedFile,
  type HostileCompanions,
  type HostilePin,
  hostileCompanions,
  hostilePin
} from '../../../daemon/test/support/hostile-pins.ts'
import { COMPANION, pick, type Random, type TaggedFile, type Victim } from './tagged.ts'
import type { World } from './world.ts'

type Annotations = Readonly<Record<string, string>>

/** Where a record says that an artifact is from. */
interface Claimed {
  readonly kind: string
  readonly repo?: string
  readonly revision?: string
}

/** A pinned artifact of a stranger's, and what it only names. */
export interface StrangersPin extends HostilePin {
  /** All whose digests it names. */
  readonly claimed: readonly Victim[]
  /** Of the bytes that whoever wrote it does not have. */
  readonly named: readonly Victim[]
  readonly annotations: Annotations
  readonly webseed: string
  readonly companions?: HostileCompanions['pin']
  /** Companions that it really has. */
  readonly beside: readonly Victim[]
}

/** An OCI artifact of a stranger's, and what of it the registry or layout really has. */
export interface StrangersArtifact {
  readonly claimed: readonly Victim[]
  readonly given: readonly Victim[]
}

/** The kinds that a manifest may claim, with names that they may have. */
const ENTRIES: readonly Omit<ClaimedFile, 'bytes'>[] = [
  { kind: 'code', name: 'modeling_x.py', role: 'model' },
  { kind: 'code', name: 'processing_x.py', role: 'processor' },
  { kind: 'chat-template', name: 'chat_template.jinja' },
  { kind: 'weights.aux', name: 'imatrix.dat', role: 'imatrix' },
  { kind: 'weights.aux', name: 'mmproj.gguf', role: 'vision-projector' },
  { kind: 'weights.gguf', name: 'm-q8_0.gguf' },
  { kind: 'weights.safetensors', name: 'model.safetensors' },
  { kind: 'tokenizer', name: 'tokenizer.tar' },
  { kind: 'adapter', name: 'a/adapter.tar' },
  { kind: 'config', name: 'modelconfig.json' }
]
/** Names that an import recognizes, each in its way, or keeps beside the model. */
const NAMES_OF_USES = [
  'm-q8_0.gguf',
  'm-q4_0.gguf',
  'mmproj-f16.gguf',
  'imatrix.dat',
  'model.safetensors',
  'config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'modeling_x.py',
  'adapter_model.safetensors',
  'adapter_config.json',
  'LICENSE',
  'README.md',
  COMPANION
] as const
/** Of the records in a store. */
const FORMAT = 4
const ACCESSES = ['public', 'own', 'restricted', 'unknown'] as const
const REASONS = ['artifact', 'large', 'many', 'name', 'hidden', 'secret', 'unreadable'] as const

const WEIGHT_LAYER = 'application/vnd.cncf.model.weight.v1.raw'
const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json'

const shaOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** Those who know every digest and size, have none of the bytes but their own, and write documents for others to import. */
export class Strangers {
  readonly #world: World
  readonly #random: Random
  #documents = 0

  constructor(world: World, random: Random) {
    this.#world = world
    this.#random = random
  }

  #isSometimes(oneIn: number): boolean {
    return this.#random(oneIn) === 0
  }

  /** Some have some of the bytes by other ways; nobody has what never leaves. */
  #has({ tag }: Victim): boolean {
    return this.#isSometimes(12) && tag?.startsWith('n') === false
  }

  #distinct<T>(all: readonly T[], most: number): T[] {
    const chosen = new Set<T>()
    for (let i = this.#random(most); i >= 0; i--) chosen.add(pick(this.#random, all))
    return [...chosen]
  }

  /** @param taken names of files, which no licence has: such a manifest is refused */
  #annotations(taken: readonly string[] = []): Annotations {
    const random = this.#random
    const repo = pick(random, this.#world.repos)
    const claimed = pick(random, [undefined, ...repo.names, 'acme/Nowhere'])
    const licence = pick(random, ['LICENSE', 'modeling_y.py', 'm-q8_0.gguf', 'chat_template.jinja'])
    return {
      ...(claimed !== undefined && {
        'svc.hf.repo': claimed,
        'svc.hf.revision': this.#isSometimes(4) ? 'a'.repeat(40) : pick(random, repo.commits).sha
      }),
      ...(this.#isSometimes(3) && !taken.includes(licence) && { [`svc.license.file.${licence}`]: 'a text' })
    }
  }

  /** Files of these kinds, whose bytes the stranger has or not, with the merkle roots of these bytes or of others. */
  #claims(victims: readonly Victim[], entries: readonly Omit<ClaimedFile, 'bytes'>[]): ClaimedFile[] {
    const chosen = this.#distinct(entries, 3)
    const bytes = this.#distinct(victims, 3)
    const roots = new Map<string, Pick<ClaimedFile, 'rootOf'>>()
    return chosen.slice(0, bytes.length).map((entry, i) => {
      const { bytes: of, sha256 } = bytes[i]!
      const drawn = this.#isSometimes(4) ? { rootOf: Buffer.alloc(of.length, 'x') } : {}
      // no manifest has two merkle roots for one digest
      const root = roots.get(sha256) ?? drawn
      roots.set(sha256, root)
      return { ...entry, bytes: of, ...root, isGiven: this.#has(bytes[i]!) }
    })
  }

  /** A manifest at a webseed, with companions that lie beside it or not. */
  pin(victims: readonly Victim[]): StrangersPin {
    const part = `open/strangers-${this.#documents}`
    const pin = this.#pin(victims)
    for (const [path, bytes] of pin.content) this.#put(`bucket/${part}/${path}`, bytes)
    return { ...pin, webseed: `${this.#world.bucket.url}${part}/` }
  }

  #pin(victims: readonly Victim[]): Omit<StrangersPin, 'webseed'> {
    const label = `${this.#documents++}`
    const claims = this.#claims(victims, ENTRIES)
    const annotations = this.#annotations(claims.map(({ name }) => name))
    const pin = hostilePin(claims, { annotations, label })
    const beside = this.#isSometimes(4) ? this.#companions(victims) : undefined
    const byHash = new Map(victims.map((victim) => [victim.sha256, victim]))
    const victimOf = ({ bytes }: ClaimedFile): Victim => byHash.get(shaOf(Buffer.from(bytes)))!
    const lacking = claims.filter(({ isGiven, rootOf }) => isGiven !== true || rootOf !== undefined)
    return {
      ...pin,
      content: new Map([...pin.content, ...(beside?.made.content ?? [])]),
      annotations,
      claimed: claims.map(victimOf),
      named: lacking.map(victimOf),
      beside: beside?.given.map(victimOf) ?? [],
      ...(beside !== undefined && { companions: beside.made.pin })
    }
  }

  /** A store whose records say of bytes that it does not have that everybody may have them, and who gave them. */
  backup(victims: readonly Victim[]): {
    readonly backup: Backup
    readonly pins: readonly Omit<StrangersPin, 'webseed'>[]
  } {
    const pins = Array.from({ length: 8 }, () => this.#pin(victims))
    const blobs = new Map<string, Buffer>()
    const state = new Map<string, Buffer>()
    const sources = new Map<object, Claimed>()
    const note = (path: string, fields: object): unknown => state.set(path, Buffer.from(recordText(fields, FORMAT)))
    for (const pin of pins) {
      for (const [path, bytes] of pin.content) if (!path.startsWith('bt/')) blobs.set(`sha256:${shaOf(bytes)}`, bytes)
      const record = this.#record(pin)
      sources.set(pin, record.source)
      note(`artifacts/${pin.manifestDigest.slice('sha256:'.length)}.json`, record)
      for (const { sha256 } of this.#isSometimes(2) ? pin.named : []) {
        const from = [pick(this.#random, [`bt:${pin.manifestDigest}`, this.#source()])]
        note(`arrivals/${sha256}.json`, { from, committed: true })
      }
    }
    const sizes = [...blobs].map(([digest, { length }]) => [digest as Sha256Digest, length] as const)
    const snapshot = {
      storeId: '00000000-0000-4000-8000-000000000000',
      createdAt: '2026-01-01T00:00:00.000Z',
      state,
      blobs: new Map(sizes)
    }
    const read: Backup['read'] = async (digest, start, end) => blobs.get(digest)?.subarray(start, end)
    // what it has, it may speak of
    const lacking = ({ named }: Omit<StrangersPin, 'webseed'>) =>
      named.filter(({ sha256 }) => !blobs.has(`sha256:${sha256}`))
    // a record names the repository, whatever the manifest says
    const described = pins.map((pin) => {
      const { repo, revision } = sources.get(pin)!
      const claims = repo === undefined ? {} : { 'svc.hf.repo': repo, 'svc.hf.revision': revision! }
      return { ...pin, named: lacking(pin), annotations: { ...pin.annotations, ...claims } }
    })
    return { pins: described, backup: { snapshot, keyOf: (digest) => digest, read } }
  }

  #source(): string {
    return `hf:${pick(this.#random, pick(this.#random, this.#world.repos).names).toLowerCase()}`
  }

  /** Whatever a record can say of an artifact. */
  #record({
    manifestDigest,
    companions,
    annotations
  }: Omit<StrangersPin, 'webseed'>): Readonly<Record<string, unknown>> & { readonly source: Claimed } {
    const repo = annotations['svc.hf.repo'] ?? pick(this.#random, this.#world.repos).names[0]!
    const kind = pick(this.#random, ['local', 'hf', 'oci', 'bt'] as const)
    const isOfRepo = kind === 'hf' || kind === 'oci'
    return {
      source: { kind, ...(isOfRepo && { repo, revision: annotations['svc.hf.revision'] ?? manifestDigest }) },
      provenance: {
        access: pick(this.#random, ACCESSES),
        ...(this.#isSometimes(2) && { decision: { is: 'shared' } }),
        ...(this.#isSometimes(4) && { confirmedPublicAt: '2026-01-01T00:00:00.000Z' })
      },
      pinned: true,
      hints: { trackers: [], webseeds: [], peers: [] },
      ...(kind === 'bt' && this.#isSometimes(2) && { incomplete: true }),
      ...(this.#isSometimes(4) && { futureName: 'me/one' }),
      ...(this.#isSometimes(8) && { away: true }),
      ...(companions !== undefined && { companions: { 'me/one': companions.digest } })
    }
  }

  /** Files that they have not, and lists of omissions that lie about the rest. */
  #companions(victims: readonly Victim[]): { readonly made: HostileCompanions; readonly given: ClaimedFile[] } {
    const names = this.#distinct(NAMES_OF_USES, 3).map((name) => ({ kind: 'code' as const, name }))
    const claims = this.#claims(victims, names)
    const omitted = this.#distinct([...NAMES_OF_USES, 'modelconfig.json', 'model.sig'], 4).map((path) => ({
      path,
      size: this.#random(3000),
      reason: pick(this.#random, REASONS)
    }))
    return { made: hostileCompanions(claims, omitted), given: claims.filter(({ isGiven }) => isGiven === true) }
  }

  /** Layers under names of all uses: some have the bytes, others only name them, or give others in their place. */
  #artifact(
    victims: readonly Victim[]
  ): StrangersArtifact & { readonly manifest: Buffer; readonly blobs: ReadonlyMap<string, Buffer> } {
    const own = this.#world.newModel().files
    const names = this.#distinct(NAMES_OF_USES, 4)
    const bytes = this.#distinct(victims, 4)
    const blobs = new Map<string, Buffer>()
    const given: Victim[] = []
    const give = (victim: Victim): void => {
      blobs.set(victim.sha256, victim.bytes)
      given.push(victim)
    }
    const layerOf = (name: string, { sha256, bytes: { length: size } }: Victim) => ({
      mediaType: WEIGHT_LAYER,
      digest: `sha256:${sha256}`,
      size,
      annotations: { 'org.cncf.model.filepath': name }
    })
    // most have weights, which an import asks for
    const hasOwn = !names.some((name) => name.endsWith('.gguf')) || this.#isSometimes(2)
    const ownFiles = hasOwn ? own.filter(({ name }) => !(names as readonly string[]).includes(name)) : []
    for (const file of ownFiles) give(file)
    const claimed = names.slice(0, bytes.length).map((name, i) => ({ name, victim: bytes[i]! }))
    for (const { victim } of claimed) {
      if (this.#has(victim)) give(victim)
      else if (this.#isSometimes(2)) blobs.set(victim.sha256, Buffer.alloc(victim.bytes.length, 'x'))
    }
    const config = Buffer.from('{}')
    blobs.set(shaOf(config), config)
    const annotations = this.#annotations()
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: OCI_MANIFEST,
        artifactType: 'application/vnd.cncf.model.manifest.v1+json',
        config: {
          mediaType: 'application/vnd.cncf.model.config.v1+json',
          digest: `sha256:${shaOf(config)}`,
          size: config.length
        },
        layers: [
          ...ownFiles.map((file) => layerOf(file.name, file)),
          ...claimed.map(({ name, victim }) => layerOf(name, victim))
        ],
        annotations: {
          ...annotations,
          ...(this.#isSometimes(2) && { 'svc.manifest': `sha256:${pick(this.#random, victims).sha256}` })
        }
      })
    )
    return { manifest, blobs, given, claimed: claimed.map(({ victim }) => victim) }
  }

  /** In a registry that anybody may read. */
  async image(victims: readonly Victim[]): Promise<StrangersArtifact & { readonly image: string }> {
    const { address, dockerConfig } = this.#world.registry
    const { manifest, blobs, ...artifact } = this.#artifact(victims)
    const repository = `strangers/m${this.#documents++}`
    const { auth } = (JSON.parse(dockerConfig) as { auths: Record<string, { auth: string }> }).auths[address]!
    const write = async (path: string, body: Buffer, type: string): Promise<void> => {
      const headers = { authorization: `Basic ${auth}`, 'content-type': type }
      const answer = await fetch(`http://${address}/v2/${repository}/${path}`, { method: 'PUT', body, headers })
      if (answer.status !== 201) throw new Error(`the registry answered ${answer.status}`)
    }
    for (const [hex, bytes] of blobs)
      await write(`blobs/uploads/?digest=sha256:${hex}`, bytes, 'application/octet-stream')
    await write('manifests/latest', manifest, OCI_MANIFEST)
    return { ...artifact, image: `${address}/${repository}:latest` }
  }

  /** On the owner's disk, where whoever packed it put it. */
  layout(victims: readonly Victim[]): StrangersArtifact & { readonly path: string } {
    const { manifest, blobs, ...artifact } = this.#artifact(victims)
    const path = `strangers-layout-${this.#documents++}`
    const index = { mediaType: OCI_MANIFEST, digest: `sha256:${shaOf(manifest)}`, size: manifest.length }
    this.#put(`${path}/oci-layout`, Buffer.from('{"imageLayoutVersion":"1.0.0"}'))
    this.#put(`${path}/index.json`, Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [index] })))
    for (const [hex, bytes] of [...blobs, [shaOf(manifest), manifest] as const])
      this.#put(`${path}/blobs/sha256/${hex}`, bytes)
    return { ...artifact, path: join(this.#world.folder, path) }
  }

  /** Names that nobody chose for these bytes. */
  listing(victims: readonly TaggedFile[]): TaggedFile[] {
    const names = this.#distinct(NAMES_OF_USES, 3)
    return this.#distinct(victims, 3)
      .slice(0, names.length)
      .map((file, i) => ({ ...file, name: names[i]! }))
  }

  #put(path: string, bytes: Buffer): void {
    const at = join(this.#world.folder, path)
    mkdirSync(dirname(at), { recursive: true })
    writeFileSync(at, bytes)
  }
}
