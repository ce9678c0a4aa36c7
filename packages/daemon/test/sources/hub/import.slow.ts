import { expect, test } from 'vitest'
import {
  bigRepo,
  fakeHub,
  finished,
  importRepo,
  manifestsOf,
  rigOf,
  undoAfterTests,
  writeRepo,
  wrongBlobs
} from './fixtures.ts'

undoAfterTests()

test('300 files with odd names: sealed as a local import of the same files, but for the two hub annotations', async () => {
  const fake = await fakeHub({ pageSize: 50 })
  const rig = await rigOf(fake)
  const repo = bigRepo()
  expect(repo.files).toHaveLength(300)
  const commit = fake.commit(repo)
  const job = await importRepo(rig, repo.id)
  expect(job).toMatchObject({
    state: 'done',
    as: 'odd.org/big_model-7b',
    ref: 'odd.org/big_model-7b',
    filesDone: 300,
    filesTotal: 300
  })
  const local = await finished(
    rig,
    await rig.client.importLocal({ paths: [await writeRepo(repo.files)], as: 'local/copy' })
  )
  expect(local.state).toBe('done')
  expect(job.result?.quants).toEqual(['bf16', 'q4_k_m', 'q8_0'])
  expect(job.result?.skipped).toBe(local.result?.skipped)
  const [fromHub, fromDisk] = [await manifestsOf(rig, job), await manifestsOf(rig, local)]
  expect(fromHub.map((manifest) => manifest.files)).toEqual(fromDisk.map((manifest) => manifest.files))
  const hubNames = { 'svc.hf.repo': repo.id, 'svc.hf.revision': commit }
  expect(fromHub.map((manifest) => manifest.annotations)).toEqual(
    fromDisk.map((manifest) => ({ ...manifest.annotations, ...hubNames }))
  )
  expect(fromDisk[0]?.annotations['svc.license']).toBe('MIT')
  expect(await wrongBlobs(rig)).toEqual([])
  // every byte at the commit, never at the branch.
  const resolved = fake.requests.filter((request) => request.stage === 'resolve')
  expect(resolved.every((request) => request.url.includes(`/${commit}/`))).toBe(true)
  expect(
    new Set(fake.requests.filter((request) => request.stage === 'tree').map((request) => request.url)).size
  ).toBeGreaterThan(5)
})
