import { beforeAll, expect, test, vi } from 'vitest'
import { KINDS, madeRepository } from '../../support/made-repositories.ts'
import { gguf } from '../../support/models.ts'
import { fakeHub, importRepo, keepForAll, type Rig, rigOf, tempFolder, undoAfterTests } from './fixtures.ts'
import { expectWhole } from './whole-folders.ts'

vi.setConfig({ testTimeout: 60_000 })
undoAfterTests()

let rig: Rig
beforeAll(async () => {
  rig = await rigOf(await fakeHub(), { skipUnrecognized: true, mirror: true })
  keepForAll()
})

test.each(KINDS.map((kind, i) => [kind, i * 7 + 3] as const))('%s: view and mirror equal upstream', (kind, seed) =>
  expectWhole(rig, madeRepository(kind, seed), rig.mirror!)
)

test('a file that is neither in an artifact nor a companion is not fetched or listed by the mirror', async () => {
  const repo = madeRepository('whisper', 500)
  rig.fake.commit(repo)
  const before = rig.fake.bytesSent.get('tf_model.h5') ?? 0
  const job = await importRepo(rig, repo.id)
  expect(job.result?.warnings?.some((warning) => warning.includes('tf_model.h5'))).toBe(true)
  expect((rig.fake.bytesSent.get('tf_model.h5') ?? 0) - before).toBe(0)
})

test('a companion is fetched from its own repository, even if the store has its digest', async () => {
  // large-file storage, so that the listing names the SHA-256
  const secret = { path: 'secret.dat', content: { seed: 41, sizeBytes: 20_000 } }
  const weights = (seed: number) => ({ path: 'm-q8_0.gguf', content: gguf(20_000, seed) })
  rig.fake.commit({ id: 'Own/Private', files: [weights(42), secret], private: false })
  await rig.client.waitJob(await rig.client.importHf({ repo: 'Own/Private', private: true }))
  const liar = { ...secret, isNeverGiven: true }
  rig.fake.commit({ id: 'Some/Liar', files: [weights(43), liar] })
  expect((await importRepo(rig, 'Some/Liar')).error?.code).toBe('E_NOT_IMPORTABLE')
  rig.fake.commit({ id: 'Some/Honest', files: [weights(44), secret] })
  const honest = await importRepo(rig, 'Some/Honest')
  expect(honest).toMatchObject({ state: 'done', result: { skipped: 1, omitted: 0 } })
  // it gave the bytes itself, so nothing is withheld for them
  expect(honest.result?.warnings).toBeUndefined()
  const answer = await fetch(`http://${rig.mirror}/Some/Honest/resolve/main/secret.dat`)
  expect([answer.status, (await answer.arrayBuffer()).byteLength]).toEqual([200, 20_000])
  expect((await fetch(`http://${rig.mirror}/Own/Private/resolve/main/secret.dat`)).status).toBe(404)
})

test('one commit has one companion document, whatever an import selects', async () => {
  const repo = madeRepository('gguf', 900)
  rig.fake.commit(repo)
  const other = await rigOf(rig.fake, { root: await tempFolder() })
  const part = await other.client.waitJob(await other.client.importHf({ repo: repo.id, quants: ['q8_0'] }))
  expect(part.result?.quants).toEqual(['q8_0'])
  expect(part.result?.companions).toBe((await importRepo(rig, repo.id)).result?.companions)
})
