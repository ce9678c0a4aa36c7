import { recognize } from '@svc/classify'
import { expect, it, onTestFinished } from 'vitest'
import { Offload } from '../../../internal/state/src/offload/pool.ts'
import { bytesToRead, planListing } from '../../../library/src/import/plan.ts'
import type { ImportSource } from '../../../library/src/import/source.ts'

const sourceOf = (names: readonly string[], kind: ImportSource['kind'] = 'local'): ImportSource => ({
  kind,
  files: names.map((name, i) => ({
    name,
    sizeBytes: i,
    open: () => Promise.reject(new Error('a plan reads nothing'))
  })),
  annotations: {},
  fetchUnrecognized: false,
  concurrency: 1,
  provenance: () => ({ access: 'own' }),
  origin: { kind: 'local' },
  warnings: [],
  close: async () => undefined
})

it('a long listing gives the same plan in another thread, and the same refusal', async () => {
  const offload = new Offload()
  onTestFinished(() => offload.close())
  const names = Array.from({ length: 1_000 }, (_, i) =>
    i % 2 === 0 ? `m-${String(i / 2 + 1).padStart(5, '0')}-of-00500.safetensors` : `x/${i}.bin`
  )
  const source = sourceOf(names)
  const plan = await planListing(source, offload)
  expect(plan.recognition).toEqual(recognize(source.files.map(({ name, sizeBytes }) => ({ name, sizeBytes }))))
  // the weights, which the odd ones are not, and what is kept beside them: all of these are small
  expect(bytesToRead(plan)).toBe((1_000 * 999) / 2)
  const bad = [...names, 'a/../b']
  await expect(planListing(sourceOf(bad), offload)).rejects.toMatchObject({ code: 'E_INVALID' })
  await expect(planListing(sourceOf(bad, 'hub' as never), offload)).rejects.toMatchObject({
    code: 'E_BAD_LISTING'
  })
})
