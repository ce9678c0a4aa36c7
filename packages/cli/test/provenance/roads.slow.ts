// Each road by which a model comes in, and what a daemon that is started again on the same root gives of it at each door.
import { join } from 'node:path'
import type { FileConfig } from '@svc/daemon'
import { haveLibtorrent } from '@svc/testkit/v1-peer'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { laterUndo } from '../support.ts'
import { Gate } from './gate.ts'
import {
  adoptedCache,
  adoptedFlat,
  adoptedFolder,
  adoptedOllama,
  adoptedOwn,
  type Brought,
  bucket,
  configOf,
  folder,
  fromCatalog,
  fromHub,
  image,
  layout,
  local,
  onDemand,
  openSources,
  origin,
  packed,
  pinned,
  pinnedOfListing,
  published,
  type Road,
  TOKEN,
  type Verdict,
  WEIGHTS
} from './roads.ts'

const undo = laterUndo()
const isOfHub = true
const LOCAL: readonly Road[] = [
  { road: 'a local folder', bring: local(), verdict: 'given' },
  { road: 'a local folder, with `private`', bring: local({ private: true }), verdict: 'private' },
  { road: 'an image layout', bring: layout('layout'), verdict: 'given' },
  { road: 'an archive of what was withheld', bring: layout('it.tar', { isPrivate: true }), verdict: 'marked' },
  { road: 'a registry that gives it to everybody', bring: image(false), verdict: 'given' },
  { road: 'a registry with a login', bring: image(true), verdict: 'restricted', by: 'registry-login' },
  { road: 'a pin, from an open webseed', bring: pinned('open'), verdict: 'given' },
  { road: 'a pin, from a signed webseed', bring: pinned('keyed'), verdict: 'restricted', by: 'webseed-key' },
  { road: 'a pin, from a webseed that says `Cache-Control: private`', bring: pinned('habit'), verdict: 'marked' },
  { road: 'a pin, from a webseed whose listing says `withheld`', bring: pinnedOfListing, verdict: 'marked' },
  {
    road: 'a pin, from an open front that redirects to signed requests',
    bring: pinned('front'),
    verdict: 'restricted',
    by: 'webseed-key'
  },
  { road: 'the command of a publication', bring: published(false), verdict: 'given' },
  { road: 'the command of a publication of what was withheld', bring: published(true), verdict: 'private' },
  { road: 'a folder of Ollama', bring: adoptedOllama, verdict: 'unknown-access' },
  { road: 'a folder of LM Studio', bring: adoptedFolder, verdict: 'unknown-access' },
  { road: 'a plain folder, adopted', bring: adoptedOwn, verdict: 'given' }
]

const HUB: readonly Road[] = [
  { road: 'the hub', bring: fromHub(), verdict: 'given', isOfHub },
  { road: 'the hub, with `private`', bring: fromHub({}, { private: true }), verdict: 'private' },
  { road: 'a hub cache of a public repository', bring: adoptedCache(), verdict: 'given', isOfHub },
  { road: 'a hub cache of a gated one', bring: adoptedCache({ gated: 'manual' }), verdict: 'unknown-access' },
  { road: 'a flat cache of a public repository', bring: adoptedFlat(), verdict: 'given' },
  { road: 'a flat cache of a gated one', bring: adoptedFlat({ gated: 'manual' }), verdict: 'unknown-access' },
  { road: 'a hub cache of a private one', bring: adoptedCache({ private: true }), verdict: 'unknown-access' }
]

const CATALOG: readonly Road[] = [
  { road: 'the catalog', bring: fromCatalog({}), verdict: 'given', skip: !haveLibtorrent }
]

const WITH_TOKEN: readonly Road[] = [
  { road: 'a gated repository', bring: fromHub({ gated: 'auto' }), verdict: 'restricted', by: 'hub-token' },
  { road: 'a private repository', bring: fromHub({ private: true }), verdict: 'restricted', by: 'hub-token' },
  {
    road: 'a hub that does not say who may have it',
    bring: fromHub({}, {}, { isUnsaid: true }),
    verdict: 'restricted',
    by: 'hub-token'
  },
  {
    road: 'the catalog, with a gated anchor',
    bring: fromCatalog({ gated: 'manual' }),
    verdict: 'restricted',
    by: 'hub-token',
    skip: !haveLibtorrent
  },
  { road: "the hub's mirror, at main", bring: onDemand(), verdict: 'given', isOfHub },
  { road: "the hub's mirror, at a commit of a branch", bring: onDemand('dev'), verdict: 'given', isOfHub }
]

const withheldAs =
  (verdict: Verdict) =>
  (road: Road): Road => ({ ...road, verdict, isOfHub: false })
/** What comes from this machine's disks. */
const FROM_DISK = [
  ...LOCAL.filter(({ road }) => /local|layout|Ollama|Studio|adopted/.test(road)),
  ...HUB.filter(({ road }) => road.includes('cache'))
]

interface Machine {
  readonly machine: string
  readonly habits: () => { readonly file: FileConfig; readonly hubToken?: string }
  readonly roads: readonly Road[]
}

const MACHINES: readonly Machine[] = [
  { machine: 'as it is', habits: () => ({ file: configOf() }), roads: [...LOCAL, ...HUB, ...CATALOG] },
  {
    machine: 'with a token of the hub',
    habits: () => ({
      file: { ...configOf(), mirror: { on_demand: true, on_demand_allow: ['acme/*'] } },
      hubToken: TOKEN
    }),
    // what the catalog lists, or a flat cache names, this mirror has from the hub
    roads: [
      ...HUB.map((road) => (road.road.startsWith('a flat cache') ? { ...road, isOfHub } : road)),
      ...CATALOG.map((road) => ({ ...road, isOfHub })),
      ...WITH_TOKEN
    ]
  },
  {
    machine: 'with seed_local = false',
    habits: () => ({ file: { ...configOf(), swarm: { seed_local: false } } }),
    roads: [
      ...FROM_DISK.map(withheldAs('private')),
      // others gave it
      ...LOCAL.filter(({ road }) => /everybody|open webseed/.test(road)),
      ...HUB.slice(0, 1)
    ]
  },
  {
    machine: 'whose hub does not answer',
    habits: () => ({ file: { ...configOf(), hub: { endpoint: 'http://127.0.0.1:9' } } }),
    roads: HUB.filter(({ road }) => road.includes('cache')).map(withheldAs('unknown-access'))
  }
]

beforeAll(() => openSources(undo), 60_000)
afterAll(undo.all)

describe.each(MACHINES)('a machine $machine', ({ machine, habits, roads }) => {
  const taken = roads.filter(({ skip }) => skip !== true)
  const brought = new Map<string, Brought>()
  let gate: Gate

  beforeAll(async () => {
    gate = await Gate.start(join(folder, machine.replaceAll(' ', '-')), habits())
    undo.later(() => gate.close())
    for (const [i, { road, bring }] of taken.entries()) {
      const name = `m${MACHINES.findIndex((each) => each.machine === machine)}/road-${i}`
      brought.set(road, await bring(gate, name))
    }
    await gate.restart()
    // the start verifies what it will seed
    await vi.waitFor(
      async () => {
        const { swarm } = await gate.client.status()
        expect(swarm.seeding + swarm.heldBack.length).toBe(taken.length)
      },
      { timeout: 100_000 }
    )
  }, 60_000)

  it.each(taken)('$road: $verdict', async ({ road, verdict, isOfHub = false, by }) => {
    const { ref, file = WEIGHTS, hubPath } = brought.get(road)!
    const isGiven = verdict === 'given'
    expect(await gate.look(ref, file, hubPath)).toEqual({
      status: isGiven ? 'seeding' : 'held back',
      announced: isGiven,
      webseed: isGiven ? 200 : 404,
      hubMirror: isGiven && isOfHub ? 200 : 404,
      ociMirror: isGiven ? 200 : 404,
      s3Mirror: isGiven ? 200 : 404,
      why: [verdict],
      by
    })
  })
})

describe('imports of withheld models warn, and stay withheld', () => {
  let gate: Gate
  beforeAll(async () => {
    gate = await Gate.start(join(folder, 'marked'), { file: configOf() })
    undo.later(() => gate.close())
  })

  const doorsOf = async (ref: string): Promise<boolean[]> => [
    ...new Set((await gate.client.why(ref)).doors.map(({ given }) => given))
  ]

  it.each(['under a name', 'by its digest'])(
    'by a webseed, %s: the warning names the command that shares the model',
    async (how) => {
      const name = how === 'under a name' ? 'noted/by-name' : undefined
      const ref = await packed(name ?? 'noted/by-digest')
      await origin.svc('publish', ref, join(folder, 'bucket/habit'))
      const { infohash, manifestDigest } = await origin.client.share(`svc:///${ref}`)
      const asked = {
        infohash,
        manifestDigest,
        webseeds: [`${bucket.url}habit/`],
        ...(name !== undefined && { as: name })
      }
      const { result } = await gate.done(gate.client.importBt(asked))
      const warning = result?.warnings?.find((each) => each.includes('Cache-Control: private'))
      const command = /svc (private \S+ --off)/.exec(warning ?? '')?.[1]
      expect(command, warning).toBeDefined()
      const digestRef = `svc:///by/digest@${manifestDigest}`
      expect(await doorsOf(digestRef)).toEqual([false])
      await gate.svc(...command!.split(' '))
      expect(await doorsOf(digestRef)).toEqual([true])
      // the owner has said so: that is not said again
      const again = await gate.done(gate.client.importBt(asked))
      expect(again.result?.warnings ?? []).toEqual([])
    }
  )

  it('by a listing: the warning names the model and the command that shares it', async () => {
    const ref = await packed('noted/listed', { isPrivate: true })
    await origin.svc('publish', ref, join(folder, 'bucket/open/listed'), '--withheld')
    const { infohash, manifestDigest } = await origin.client.share(`svc:///${ref}`)
    const webseeds = [`${bucket.url}open/listed`]
    const { result } = await gate.done(gate.client.importBt({ infohash, manifestDigest, webseeds, as: 'noted/listed' }))
    expect(result?.warnings).toEqual([expect.stringContaining(`svc private ${ref} --off`)])
    expect(result?.warnings?.[0]).toContain(webseeds[0])
  })

  it('by an archive', async () => {
    const ref = await packed('noted/archive', { isPrivate: true })
    const path = join(folder, 'noted.tar')
    await origin.svc('export', 'oci', ref, path, '--withheld')
    const { result } = await gate.done(gate.client.importOci({ path, as: 'noted/archive' }))
    expect(result?.warnings).toEqual([expect.stringContaining(`svc private ${ref} --off`)])
  })
})
