import { join } from 'node:path'
import type { Job, ModelMember } from '@svc/client/protocol'
import { parseDigest } from '@svc/ref'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fakeHub, finished, type Rig, rigOf, tempFolder, undoAfterTests, writeRepo } from '../sources/hub/fixtures.ts'

undoAfterTests()

const MODELS = 5
const MODEL_BYTES = 400_000
/** Three of them, and what an import sets aside for documents. */
const QUOTA = 3 * MODEL_BYTES + (1 << 20) + 100_000
const DAY_MS = 24 * 3600_000

const WORK = ['import', 'ensure', 'evict'] as const
const HOLDS = ['pin', 'unpin', 'view', 'hide', 'read', 'close'] as const

type Step =
  | {
      readonly do: (typeof WORK)[number] | (typeof HOLDS)[number] | 'use' | 'later'
      readonly model: number
      readonly agreed: boolean
    }
  | { readonly do: 'source'; readonly model: number; readonly is: Source }
/** `silent` comes back one day; `gone` does not. */
type Source = 'up' | 'silent' | 'gone'

const model = fc.nat(MODELS - 1)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom(...WORK), model, agreed: fc.boolean() })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom(...HOLDS), model, agreed: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('use', 'later'), model, agreed: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('source'), model, is: fc.constantFrom('up', 'silent', 'gone') }) }
)

const act = (what: Exclude<Step, { do: 'source' }>['do'], of = 1): Step => ({ do: what, model: of, agreed: true })
const source = (is: Source): Step => ({ do: 'source', model: 1, is })
const UNASKED: Step = { do: 'import', model: 3, agreed: false }
/** Whatever keeps a model is tried once, after its eviction has proven a copy. */
const EACH: readonly Step[] = [
  ...[UNASKED, act('evict'), act('evict', 0), act('ensure')],
  ...(['pin', 'view', 'read'] as const).flatMap((hold, i) => {
    const release = (['unpin', 'hide', 'close'] as const)[i]!
    return [act(hold), act('evict'), act('import', 3), act('evict', 3), act(release)]
  }),
  ...[source('gone'), act('evict'), source('up'), act('evict'), act('ensure')],
  ...[source('silent'), act('later'), act('evict'), source('gone'), act('evict'), act('import', 4)]
]

/** Model 0 is the owner's alone; the hub has the others. */
class World {
  readonly #rig: Rig
  readonly #clock: VirtualClock
  readonly #own: string
  readonly #views: string
  readonly #sources: Source[] = Array.from({ length: MODELS }, () => 'up')
  /** When a source that is not up was. */
  readonly #upMs: number[] = Array.from({ length: MODELS }, () => 0)
  /** What keeps a model, by its name, and how to let go. */
  readonly #held = new Map<string, () => Promise<unknown>>()
  #away = new Set<number>()

  constructor(rig: Rig, clock: VirtualClock, { own, views }: { readonly own: string; readonly views: string }) {
    this.#rig = rig
    this.#clock = clock
    this.#own = own
    this.#views = views
    rig.fake.setFaults(({ url }) => {
      const index = Number(/Org\/M(\d)|m(\d)-q8_0/.exec(url)?.slice(1).join('') ?? 0)
      return this.#sources[index] === 'silent' ? { kind: 'refuse' } : undefined
    })
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'source') {
      if (this.#sources[step.model] === 'up') this.#upMs[step.model] = this.#clock.now()
      this.#sources[step.model] = step.is
      if (step.model > 0) this.#rig.fake.setAccess(`Org/M${step.model}`, { disabled: step.is === 'gone' })
      return
    }
    const nowMs = this.#clock.now()
    await this.#act(step)
    await this.#check(nowMs, step.do === 'evict' || step.agreed)
  }

  /** All sources are back: what went can be had again, with the same digests. */
  async end(): Promise<void> {
    for (const release of this.#held.values()) await release()
    this.#held.clear()
    for (let index = 0; index < MODELS; index++) await this.take({ do: 'source', model: index, is: 'up' })
    for (const index of this.#away) {
      const job = await this.#done(this.#rig.client.ensure({ ref: refOf(index), evict: true }))
      expect(job).toMatchObject({ state: 'done' })
    }
    expect(await this.#done(this.#rig.client.verify({ target: 'all' }))).toMatchObject({ state: 'done', verify: {} })
  }

  async #act({ do: what, model: index, agreed }: Exclude<Step, { do: 'source' }>): Promise<void> {
    const { client } = this.#rig
    const ref = refOf(index)
    if (what === 'import')
      await this.#done(
        index === 0
          ? client.importLocal({ paths: [this.#own], as: 'org/m0', evict: agreed })
          : client.importHf({ repo: `Org/M${index}`, evict: agreed })
      )
    else if (what === 'evict') await this.#done(client.evict({ ref }))
    else if (what === 'ensure') await this.#done(client.ensure({ ref, evict: agreed }))
    else if (what === 'use') await client.open(ref).catch(() => undefined)
    else if (what === 'later') await this.#clock.advance(DAY_MS + 1)
    else if (what === 'pin' || what === 'view' || what === 'read') await this.#hold(what, index)
    else await this.#release({ unpin: 'pin', hide: 'view', close: 'read' }[what], index)
  }

  async #hold(what: 'pin' | 'view' | 'read', index: number): Promise<void> {
    const key = `${what} ${index}`
    if (this.#held.has(key)) return
    const release = await this.#begin(what, index).catch(() => undefined)
    if (release !== undefined) this.#held.set(key, release)
  }

  async #begin(what: 'pin' | 'view' | 'read', index: number): Promise<() => Promise<unknown>> {
    const { client, daemon } = this.#rig
    const ref = refOf(index)
    if (what === 'pin') {
      await client.setPinned({ ref, pinned: true })
      return () => client.setPinned({ ref, pinned: false })
    }
    if (what === 'view') {
      const path = join(this.#views, `${index}`)
      await client.makeView({ ref, path })
      return () => client.removeView({ path })
    }
    const { files } = await client.open(ref)
    const { digest } = files.find(({ kind }) => kind === 'weights.gguf')!
    const reader = await daemon.context.store.open(parseDigest(digest))
    return () => reader.close()
  }

  async #release(what: string, index: number): Promise<void> {
    const key = `${what} ${index}`
    await this.#held.get(key)?.()
    this.#held.delete(key)
  }

  /** Undefined where the request is refused at once, as for what is not here. */
  async #done(job: Promise<Job>): Promise<Partial<Job>> {
    const started = await job.catch(() => undefined)
    return started === undefined ? {} : finished(this.#rig, started)
  }

  /** @param nowMs before what was done @param mayEvict the owner said so */
  async #check(nowMs: number, mayEvict: boolean): Promise<void> {
    const { namespaces } = await this.#rig.client.models()
    const members = new Map<number, ModelMember>()
    for (const {
      name,
      members: [member]
    } of namespaces)
      members.set(Number(name.slice(1)), member!)
    const away = new Set<number>()
    for (const [index, { complete, away: isAway }] of members) {
      expect([index, complete || isAway]).toEqual([index, true])
      if (isAway !== true) continue
      away.add(index)
      if (this.#away.has(index)) continue
      const held = [...this.#held.keys()].filter((key) => key.endsWith(` ${index}`))
      const isProven =
        this.#sources[index] === 'up' || (this.#sources[index] === 'silent' && nowMs - this.#upMs[index]! <= DAY_MS)
      expect([index, held, isProven, mayEvict, index === 0]).toEqual([index, [], true, true, false])
    }
    this.#away = away
  }
}

const refOf = (index: number): string => `svc:///org/m${index}:q8_0`

test('random operations never evict a model that cannot be fetched again', async () => {
  const own = await writeRepo([{ path: 'm0-q8_0.gguf', content: { seed: 60_000, sizeBytes: MODEL_BYTES } }])
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 20 }), async (steps) => {
      const repos = Array.from({ length: MODELS }, (_, index) => ({
        id: `Org/M${index}`,
        files: [{ path: `m${index}-q8_0.gguf`, content: { seed: 60_000 + index, sizeBytes: MODEL_BYTES } }]
      }))
      const clock = new VirtualClock()
      const rig = await rigOf(await fakeHub({ repos }), { store: { max_bytes: QUOTA, proof_days: 1 }, clock })
      const world = new World(rig, clock, { own, views: await tempFolder() })
      // not an empty store: the first steps decide most
      for (const index of [0, 1, 2]) await world.take({ do: 'import', model: index, agreed: true })
      for (const each of steps) await world.take(each)
      await world.end()
      await rig.daemon.close({ quick: true })
    }),
    { numRuns: 1 + Number(process.env.SVC_ROOM_RUNS ?? 0), examples: [[[...EACH]]], endOnFailure: true }
  )
})
