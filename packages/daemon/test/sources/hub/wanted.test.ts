// What readers wait for is fetched first, in the order in which they asked: the hub has no proofs of parts.
import { createHash } from 'node:crypto'
import { digestFromBytes } from '@svc/ref'
import { expect, test, vi } from 'vitest'
import { gguf } from '../../support/models.ts'
import { fakeHub, importRepo, rigOf, undoAfterTests } from './fixtures.ts'

vi.setConfig({ testTimeout: 30_000 })
undoAfterTests()

const FILES = ['q4_0', 'q5_0', 'q6_k', 'q8_0'].map((quant, i) => ({
  path: `model-${quant}.gguf`,
  content: gguf(600_000 - i * 100_000, i + 1)
}))
const digestOf = (at: number) => digestFromBytes(createHash('sha256').update(FILES[at]!.content).digest())

/** The paths of files in the order in which the last byte of each was asked for. */
async function orderOf(wanted: readonly number[]): Promise<string[]> {
  const fake = await fakeHub({ repos: [{ id: 'Acme/M', files: FILES }] })
  const rig = await rigOf(fake, { hub: { limits: { ranges: 1, rangesPerFile: 4 } } })
  const leaves = wanted.map((at) => rig.daemon.context.wanted.add(digestOf(at)))
  expect(await importRepo(rig, 'Acme/M')).toMatchObject({ state: 'done' })
  for (const leave of leaves) leave()
  expect(rig.daemon.context.wanted.rankOf(digestOf(0))).toBeUndefined()
  const paths = fake.requests.map(({ path }) => FILES.findIndex((file) => path?.includes(file.path) === true))
  const last = FILES.map((_, at) => ({ at, index: paths.lastIndexOf(at) }))
  return last.sort((a, b) => a.index - b.index).map(({ at }) => FILES[at]!.path)
}

test.each([[[3, 1]], [[2]], [[1, 3]]])('files %o are fetched first', async (wanted) => {
  const order = await orderOf(wanted)
  expect(order.slice(0, wanted.length)).toEqual(wanted.map((at) => FILES[at]!.path))
})
