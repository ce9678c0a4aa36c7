// Collections under parallel imports, reads, tags and removals, against a model: a set of names and what each must hold.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Sha256Digest } from '@svc/ref'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

/** Few contents under few names, so that imports, removals and collections often meet in the same blobs. */
const NAMES = ['a/x', 'a/y', 'b/x'] as const
const CONTENTS = [1, 2, 3, 4] as const
const QUANTS = ['q4_0', 'q8_0', 'f16'] as const

type Step =
  | { readonly do: 'import'; readonly name: string; readonly files: readonly (readonly [string, number])[] }
  | { readonly do: 'remove'; readonly name: string; readonly quant: string | undefined; readonly allTags: boolean }
  | { readonly do: 'tag'; readonly name: string; readonly tag: string }
  | { readonly do: 'gc' }
  | { readonly do: 'verify' }

const file = fc.tuple(fc.constantFrom(...QUANTS), fc.constantFrom(...CONTENTS))
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('import' as const),
      name: fc.constantFrom(...NAMES),
      files: fc.uniqueArray(file, { minLength: 1, maxLength: 3, selector: ([quant]) => quant })
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('remove' as const),
      name: fc.constantFrom(...NAMES),
      quant: fc.option(fc.constantFrom(...QUANTS), { nil: undefined }),
      allTags: fc.boolean()
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('tag' as const),
      name: fc.constantFrom(...NAMES),
      tag: fc.constantFrom('v1', 'v2')
    })
  },
  { weight: 4, arbitrary: fc.constant({ do: 'gc' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'verify' as const }) }
)

async function perform(api: TestDaemon, folder: string, step: Step): Promise<void> {
  switch (step.do) {
    case 'import': {
      const path = join(folder, `${step.name.replace('/', '-')}-${Math.random().toString(36).slice(2)}`)
      writeFiles(path, {
        ...Object.fromEntries(step.files.map(([quant, seed]) => [`m-${quant}.gguf`, gguf(3000, seed)])),
        'tokenizer.json': '{}'
      })
      const job = await api.import([path], step.name)
      expect(job.error).toBeUndefined()
      return
    }
    case 'remove': {
      const quant = step.quant === undefined ? '' : `/${step.quant}`
      const { status } = await api.call('DELETE', `/v1/models/${step.name}${quant}${step.allTags ? '?tags=all' : ''}`)
      expect([200, 404]).toContain(status)
      return
    }
    case 'tag': {
      const { status } = await api.call('PUT', `/v1/tags/${step.name}/${step.tag}`, { body: {} })
      expect([200, 404]).toContain(status)
      return
    }
    case 'gc': {
      const { body } = await api.post('/v1/gc', { graceSeconds: 0 })
      expect((await api.finished(body)).error).toBeUndefined()
      return
    }
    case 'verify':
      return void (await api.verify('all'))
  }
}

/** Checks that everything the state names is here and correct, and that one more collection leaves nothing else. */
async function expectExact(api: TestDaemon): Promise<void> {
  expect(await api.verify('all')).toMatchObject({ state: 'done', verify: {} })
  for (const { ns, name, members } of (await api.get('/v1/models')).body.namespaces)
    for (const { quant, complete } of members)
      expect({ ref: `${ns}/${name}:${quant}`, complete }).toMatchObject({ complete: true })
  await perform(api, '', { do: 'gc' })
  const { store, needed, artifacts } = api.running.context
  const here: Sha256Digest[] = []
  for await (const { digest } of store.list()) here.push(digest)
  expect(here).toEqual([...(await needed.blobs())].sort())
  for await (const { manifestDigest } of artifacts.list()) expect(await needed.has(manifestDigest)).toBe(true)
}

test('any mix of parallel work keeps needed blobs, and others can be removed', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 }),
      async (lanes) => {
        const undo: (() => void | Promise<void>)[] = []
        const folder = temporaryFolder((work) => void undo.push(work))
        const api = await testDaemon({}, (work) => void undo.push(work))
        try {
          await Promise.all(
            lanes.map(async (steps) => {
              for (const each of steps) await perform(api, folder, each)
            })
          )
          await expectExact(api)
        } finally {
          for (const work of undo.reverse()) await work()
        }
      }
    ),
    { numRuns: Number(process.env.SVC_MODEL_RUNS ?? 8) }
  )
})

test('fifty imports of the same few files beside collections that never stop', async () => {
  const api = await testDaemon()
  const folder = temporaryFolder()
  let over = false
  const collecting = (async () => {
    let rounds = 0
    for (; !over; rounds++) await perform(api, folder, { do: 'gc' })
    return rounds
  })()
  const removing = (async () => {
    while (!over)
      for (const name of NAMES) await perform(api, folder, { do: 'remove', name, quant: 'q8_0', allTags: true })
  })()
  const imports = Array.from({ length: 50 }, (_, i) =>
    perform(api, folder, {
      do: 'import',
      name: NAMES[i % NAMES.length]!,
      files: [
        ['q4_0', (i % 4) + 1],
        ['q8_0', ((i + 1) % 4) + 1]
      ]
    })
  )
  await Promise.all(imports)
  over = true
  expect(await collecting).toBeGreaterThan(0)
  await removing
  await expectExact(api)
  rmSync(folder, { recursive: true, force: true })
})
