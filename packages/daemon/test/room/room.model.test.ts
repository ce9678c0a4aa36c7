import type { Job, ModelMember } from '@svc/client/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fakeHub, finished, type Rig, rigOf, undoAfterTests, writeRepo } from '../sources/hub/fixtures.ts'

undoAfterTests()

const MODELS = 5
const MODEL_BYTES = 400_000
/** Three of them, and what an import sets aside for documents. */
const QUOTA = 3 * MODEL_BYTES + (1 << 20) + 100_000

type Step =
  | {
      readonly do: 'import' | 'evict' | 'ensure' | 'use' | 'pin' | 'unpin'
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
    arbitrary: fc.record({ do: fc.constantFrom('import', 'ensure', 'evict'), model, agreed: fc.boolean() })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('use', 'pin', 'unpin'), model, agreed: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('source'), model, is: fc.constantFrom('up', 'silent', 'gone') }) }
)

/** Model 0 is the owner's alone; the hub has the others. */
class World {
  readonly #rig: Rig
  readonly #own: string
  readonly #sources: Source[] = Array.from({ length: MODELS }, () => 'up')
  readonly #pinned = new Set<number>()
  #away = new Set<number>()

  constructor(rig: Rig, own: string) {
    this.#rig = rig
    this.#own = own
    rig.fake.setFaults(({ url }) => {
      const index = Number(/Org\/M(\d)|m(\d)-q8_0/.exec(url)?.slice(1).join('') ?? 0)
      return this.#sources[index] === 'silent' ? { kind: 'refuse' } : undefined
    })
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'source') {
      this.#sources[step.model] = step.is
      if (step.model > 0) this.#rig.fake.setAccess(`Org/M${step.model}`, { disabled: step.is === 'gone' })
      return
    }
    await this.#act(step)
    await this.#check()
  }

  /** All sources are back: what went can be had again, with the same digests. */
  async end(): Promise<void> {
    for (let index = 0; index < MODELS; index++) await this.take({ do: 'source', model: index, is: 'up' })
    for (const index of this.#away) {
      const job = await this.#done(this.#rig.client.ensure({ ref: refOf(index), evict: true }))
      // the others may be pinned: then there is no room, and nothing is lost
      expect(['done', 'E_NO_SPACE']).toContain(job.error?.code ?? job.state)
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
    else {
      const isDone = await client.setPinned({ ref, pinned: what === 'pin' }).then(
        () => true,
        () => false
      )
      if (isDone && what === 'pin') this.#pinned.add(index)
      else if (isDone) this.#pinned.delete(index)
    }
  }

  /** Undefined where the request is refused at once, as for what is not here. */
  async #done(job: Promise<Job>): Promise<Partial<Job>> {
    const started = await job.catch(() => undefined)
    return started === undefined ? {} : finished(this.#rig, started)
  }

  async #check(): Promise<void> {
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
      expect([index, this.#pinned.has(index), this.#sources[index] === 'gone', index === 0]).toEqual([
        index,
        false,
        false,
        false
      ])
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
      const rig = await rigOf(await fakeHub({ repos }), { store: { max_bytes: QUOTA } })
      const world = new World(rig, own)
      // not an empty store: the first steps decide most
      for (const index of [0, 1, 2]) await world.take({ do: 'import', model: index, agreed: true })
      for (const each of steps) await world.take(each)
      await world.end()
      await rig.daemon.close({ quick: true })
    }),
    { numRuns: Number(process.env.SVC_ROOM_RUNS ?? 1), endOnFailure: true }
  )
})
